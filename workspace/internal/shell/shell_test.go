package shell_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/workspace/internal/shell"
)

// show writes a script one command a line: + for a certain command, a word that is
// not exact with a ?, and the redirections.
func show(s shell.CommandList) string {
	var b strings.Builder
	for _, c := range s.Commands {
		mark := "-"
		if c.Certain {
			mark = "+"
		}
		b.WriteString(mark)
		if c.From >= 0 {
			fmt.Fprintf(&b, " (%d)", c.From)
		}
		if c.Piped {
			b.WriteString(" |")
		}
		if c.Dir != "" || c.Lost {
			fmt.Fprintf(&b, " in:%s", c.Dir)
			if c.Lost {
				b.WriteString("?")
			}
		}
		word := func(w shell.Word) {
			text := w.Text
			if text == "" || strings.ContainsAny(text, " \n") {
				text = strconv.Quote(text)
			}
			b.WriteString(" " + text)
			if !w.Exact {
				b.WriteString("?")
			}
		}
		for _, w := range c.Words {
			word(w)
		}
		for _, r := range c.Redirects {
			b.WriteString(" " + r.FD + r.Op)
			word(r.Target)
			if r.Op == "<<" {
				fmt.Fprintf(&b, " %q", r.Body)
			}
		}
		b.WriteString("\n")
	}
	if s.Unsure {
		b.WriteString("unsure\n")
	}
	return b.String()
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{``, ``},
		{`rm -rf 'a b' "c d" e\ f`, "+ rm -rf \"a b\" \"c d\" \"e f\"\n"},
		{`rm "$HOME/x" *.go ~/y a{b,c}`, "+ rm $HOME/x? *.go? ~/y? a{b,c}?\n"},
		{`echo 'it'"'"'s' "" "a\"b\x"`, "+ echo it's \"\" a\"b\\x\n"},
		{`a && b`, "+ a\n+ b\n"},
		{`a; b`, "- a\n+ b\n"},
		{"a\nb\n", "- a\n+ b\n"},
		{`a || b`, "- a\n- b\n"},
		{`a | b`, "- a\n+ | b\n"},
		{`a & b`, "- a\n+ b\n"},
		{`a;`, "+ a\n"},
		{`if true; then rm x; fi`, "- true\n- rm x\n"},
		{`for f in *; do rm "$f"; done; rm y`, "- rm $f?\n- rm y\n"},
		{`f() { rm x; }; f`, "- f\n- rm x\n- f\n"},
		{`cd a && cd b && rm x; cd /c; rm y`, "- cd a\n- in:a cd b\n- in:a/b rm x\n- in:a/b cd /c\n+ in:/c rm y\n"},
		{`cd "$X" && rm x`, "+ cd $X?\n+ in:? rm x\n"},
		{`(cd a && rm x) && rm y`, "+ cd a\n+ in:a rm x\n+ in:a? rm y\n"},
		{`X=1 Y="a b" rm x`, "+ rm x\n"},
		{`echo a >b 2>&1 >>c`, "+ echo a > b 2>& 1 >> c\n"},
		{`echo a &>b`, "+ echo a &> b\n"},
		{`echo a2>b`, "+ echo a2 > b\n"},
		{"cat > f <<'EOF'\n$x\nEOF\nls", "- cat > f << EOF \"$x\\n\"\n+ ls\n"},
		{"cat > f <<EOF\n$x\nEOF\n", "+ cat > f << EOF? \"$x\\n\"\n"},
		{"cat > f <<EOF && ls\nx\nEOF\n", "+ cat > f << EOF \"x\\n\"\n+ ls\n"},
		{"cat > f <<EOF; ls\nx\nEOF\n", "- cat > f << EOF \"x\\n\"\n+ ls\n"},
		{"cat <<-A <<B\n\tx\n\tA\ny\nB\n", "+ cat << A \"x\\n\" << B \"y\\n\"\n"},
		{"cat <<EOF\nx\n", "+ cat << EOF \"x\\n\"\n"},
		{"cat <<EOF", "+ cat << EOF \"\"\nunsure\n"},
		{"bash <<'EOF'\nrm x\nEOF", "+ bash << EOF \"rm x\\n\"\n+ (0) rm x\n"},
		{`sh -c 'rm x; ls' && ls`, "+ sh -c \"rm x; ls\"\n- (0) rm x\n+ (0) ls\n+ ls\n"},
		{`bash -lc "rm $x"`, "+ bash -lc \"rm $x\"?\n- (0) rm $x?\nunsure\n"},
		{`eval "rm x"`, "+ eval \"rm x\"\n+ (0) rm x\n"},
		{`sudo -u root sh -c 'rm x'`, "+ sudo -u root sh -c \"rm x\"\n+ (0) rm x\n"},
		{`echo $(rm x) "a$(ls "b)")c"`, "+ echo \"$(rm x)\"? \"a$(ls \\\"b)\\\")c\"?\n- (0) rm x\n- (0) ls b)\n"},
		{"echo `rm x`", "+ echo \"`rm x`\"?\n- (0) rm x\n"},
		{`bash <(curl x)`, "+ bash \"<(curl x)\"?\n- (0) curl x\n"},
		{`a # b; c`, "+ a\n"},
		{"a \\\n b", "+ a b\n"},
		{`echo 'x`, "+ echo x?\nunsure\n"},
		{`echo "x`, "+ echo x?\nunsure\n"},
		{`echo $(x`, "+ echo $(x)?\n- (0) x\nunsure\n"},
		{`{ rm x; }`, "- rm x\n"},
		{`find . -name x -exec rm {} \;`, "+ find . -name x -exec rm {} ;\n"},
		{`$'a'x $'\n'`, "+ ax \\n?\n"},
	} {
		assert.Equal(t, test.want, show(shell.Parse(test.text)), "of %q", test.text)
	}
}

func TestOfArguments(t *testing.T) {
	assert.Equal(t, "+ ls a*\n", show(shell.OfArguments([]string{"ls", "a*"})), "no shell expands the argument")
	assert.Equal(t, "+ rm x\n", show(shell.OfArguments([]string{"bash", "-lc", "rm x"})))
	assert.Equal(t, "", show(shell.OfArguments([]string{"bash", "-c", ""})))
	assert.Equal(t, "", (&shell.SimpleCommand{}).Name())
}

func TestRun(t *testing.T) {
	for _, test := range []struct {
		text, want   string
		root, unsure bool
	}{
		{"rm x", "rm x", false, false},
		{"sudo rm x", "rm x", true, false},
		{"sudo -u bob A=b -n rm x", "-n rm x", true, false},
		{"sudo -E -u bob rm x", "rm x", true, false},
		{"env A=b C=d timeout -k 5 10 rm x", "rm x", false, false},
		{"/usr/bin/nice -n 5 nohup rm x", "rm x", false, false},
		{"xargs -0 rm -f", "rm -f", false, true},
		{"command -v rm", "", false, false},
		{"sudo", "", true, false},
	} {
		r := shell.Run(shell.Parse(test.text).Commands[0].Words)
		var words []string
		for _, w := range r.Words {
			words = append(words, w.Text)
		}
		assert.Equal(t, test.want, strings.Join(words, " "), "of %q", test.text)
		assert.Equal(t, []bool{test.root, test.unsure}, []bool{r.Root, r.Unsure}, "of %q", test.text)
	}
}

// Nesting, length and the number of commands are bounded, and said to be.
func TestBounds(t *testing.T) {
	deep := "rm x"
	for range 20 {
		deep = "$(" + deep + ")"
	}
	s := shell.Parse(deep)
	assert.True(t, s.Unsure)
	assert.LessOrEqual(t, len(s.Commands), 20)
	s = shell.Parse(strings.Repeat("a;", shell.MaxCommands+10))
	assert.True(t, s.Unsure)
	assert.Len(t, s.Commands, shell.MaxCommands)
	s = shell.Parse(strings.Repeat("a ", shell.MaxText))
	assert.True(t, s.Unsure)
	assert.Empty(t, s.Commands)
}

// No text makes the parser panic, hang or exceed its bounds, and the commands refer to
// commands before them.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"a && b || c; d | e & f", "cat <<A <<-'B'\nx\nA\n\ty\nB\n", `sh -c "a $(b '`, "x $((1+2)) ${a:-$(b)} `c`", "((", "a<>b 3>&1", "\\", "f(){\n}", "<<", "a <<\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := shell.Parse(text)
		if len(s.Commands) > shell.MaxCommands {
			t.Fatal(len(s.Commands), "commands")
		}
		for i, c := range s.Commands {
			if c.From >= i {
				t.Fatal("command", i, "is from", c.From)
			}
			shell.Run(c.Words)
		}
	})
}
