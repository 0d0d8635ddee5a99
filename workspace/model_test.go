package workspace_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/workspace"
)

// realFile is a file as a machine has it, with the writer of each line. It is the model of
// the tests: it edits texts with package strings alone.
type realFile struct {
	lines   []string // with their line ends
	writers []uint64
}

func (f *realFile) text() string { return strings.Join(f.lines, "") }

// set gives the file another text, of which the lines before and after the changed ones
// keep their writers.
func (f *realFile) set(text string, writer uint64) {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	head := 0
	for head < len(lines) && head < len(f.lines) && lines[head] == f.lines[head] {
		head++
	}
	tail := 0
	for tail < len(lines)-head && tail < len(f.lines)-head && lines[len(lines)-1-tail] == f.lines[len(f.lines)-1-tail] {
		tail++
	}
	writers := slices.Clone(f.writers[:head])
	for range len(lines) - head - tail {
		writers = append(writers, writer)
	}
	f.lines, f.writers = lines, append(writers, f.writers[len(f.writers)-tail:]...)
}

func quote(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// agree compares what is known of a file with the file: the known parts are parts of
// it in their order, and a line with a number is the line of that number.
func agree(t *rapid.T, f *workspace.TrackedFile, disk *realFile, log []string) {
	fail := func(format string, args ...any) {
		t.Fatalf("%s\nafter\n%s\nthe file is\n%q\nand is thought to be\n%s", fmt.Sprintf(format, args...), strings.Join(log, "\n"), disk.lines, shown(f))
	}
	if f.Complete() {
		if f.Text() != disk.text() {
			fail("the text differs")
		}
	}
	rest := disk.text()
	parts := strings.Split(f.Text(), workspace.Gap)
	for i, part := range parts {
		if i > 0 {
			part = strings.TrimPrefix(part, "\n")
		}
		at := strings.Index(rest, part)
		if at < 0 || i == 0 && at > 0 {
			fail("%q is not there", part)
		}
		rest = rest[at+len(part):]
	}
	for l := range f.Lines() {
		if l.Number == 0 || l.Certainty != workspace.Known || l.Partial {
			continue
		}
		if l.Number > len(disk.lines) || strings.TrimSuffix(disk.lines[l.Number-1], "\n") != l.Text {
			fail("line %d is not %q", l.Number, l.Text)
		}
		// Of equal lines it is not defined which of them stayed.
		if l.By != 0 && strings.ContainsAny(l.Text, "0123456789") && strings.Count(disk.text(), l.Text) == 1 && uint64(l.By) != disk.writers[l.Number-1] {
			fail("line %d was written by %d, not by %d", l.Number, disk.writers[l.Number-1], l.By)
		}
	}
	if n, ok := f.CountLines(); ok && n != len(disk.lines) {
		fail("it has %d lines, not %d", len(disk.lines), n)
	}
}

// A random sequence of tool calls on a disk file: whatever the fold says that it knows
// is so, and after a whole view it knows everything.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		unique := 0
		line := func(label string) string {
			unique++
			if rapid.IntRange(0, 3).Draw(rt, label) == 0 {
				return "}"
			}
			return fmt.Sprintf("line %d of", unique)
		}
		disk := &realFile{}
		for range rapid.IntRange(0, 12).Draw(rt, "lines") {
			disk.lines = append(disk.lines, line("line")+"\n")
			disk.writers = append(disk.writers, 0)
		}
		s := newSession(t)
		var log []string
		call := func(tool, input, output string) {
			log = append(log, fmt.Sprintf("%d %s %s -> %s", s.seq+1, tool, input, output))
			s.call(tool, input)
			s.result(true, output)
			if f, err := s.state.File("/f"); err == nil {
				agree(rt, f, disk, log)
			}
		}
		for range rapid.IntRange(1, 10).Draw(rt, "calls") {
			now := uint64(s.seq + 1)
			n := len(disk.lines)
			switch rapid.IntRange(0, 6).Draw(rt, "tool") {
			case 0: // a whole write
				var b strings.Builder
				for range rapid.IntRange(0, 8).Draw(rt, "size") {
					b.WriteString(line("new") + "\n")
				}
				disk.set(b.String(), now)
				call("Write", fmt.Sprintf(`{"file_path":"/f","content":%s}`, quote(b.String())), "{}")
			case 1, 2: // an edit of a text that stands there once
				if n == 0 {
					continue
				}
				from := rapid.IntRange(0, n-1).Draw(rt, "from")
				to := rapid.IntRange(from, min(n-1, from+3)).Draw(rt, "to")
				old := strings.Join(disk.lines[from:to+1], "")
				cut := rapid.IntRange(0, 4).Draw(rt, "cut")
				if len(old) > 2*cut+1 {
					old = old[cut : len(old)-cut]
				}
				if strings.Count(disk.text(), old) != 1 {
					continue
				}
				text := ""
				for range rapid.IntRange(0, 3).Draw(rt, "size") {
					text += line("new") + "\n"
				}
				if rapid.Bool().Draw(rt, "open") {
					text = strings.TrimSuffix(text, "\n")
				}
				disk.set(strings.Replace(disk.text(), old, text, 1), now)
				call("Edit", fmt.Sprintf(`{"file_path":"/f","old_string":%s,"new_string":%s}`, quote(old), quote(text)), "{}")
			case 3: // lines behind another
				if n > 0 && !strings.HasSuffix(disk.lines[n-1], "\n") {
					continue
				}
				at := rapid.IntRange(0, n).Draw(rt, "at")
				text := line("new")
				disk.set(strings.Join(disk.lines[:at], "")+text+"\n"+strings.Join(disk.lines[at:], ""), now)
				call("str_replace_editor", fmt.Sprintf(`{"command":"insert","path":"/f","insert_line":%d,"new_str":%s}`, at, quote(text)), "{}")
			case 4: // a view of some lines
				if n == 0 {
					continue
				}
				from := rapid.IntRange(1, n).Draw(rt, "from")
				to := rapid.IntRange(from, n).Draw(rt, "to")
				content := strings.TrimSuffix(strings.Join(disk.lines[from-1:to], ""), "\n")
				total := n
				if strings.HasSuffix(disk.lines[n-1], "\n") {
					total++ // Claude Code counts the empty text behind the last line end
				}
				call("Read", `{"file_path":"/f","offset":1}`, fmt.Sprintf(`{"type":"text","file":{"content":%s,"startLine":%d,"totalLines":%d}}`, quote(content), from, total))
			case 5: // a patch without places
				if n < 3 {
					continue
				}
				at := rapid.IntRange(0, n-3).Draw(rt, "at")
				old := strings.Join(disk.lines[at:at+3], "")
				if strings.Count(disk.text(), old) != 1 || !strings.HasSuffix(old, "\n") || strings.Contains(old, "}") {
					continue
				}
				text := line("new") + "\n"
				patch := "*** Begin Patch\n*** Update File: /f\n@@\n " + disk.lines[at] + "-" + disk.lines[at+1] + "+" + text + " " + disk.lines[at+2] + "*** End Patch\n"
				disk.set(strings.Replace(disk.text(), old, disk.lines[at]+text+disk.lines[at+2], 1), now)
				call("apply_patch", `{"input":`+quote(patch)+`}`, "{}")
			case 6: // every occurrence
				if n == 0 || !strings.Contains(disk.text(), "of") {
					continue
				}
				for i := range disk.lines {
					if strings.Contains(disk.lines[i], "of") {
						disk.lines[i], disk.writers[i] = strings.ReplaceAll(disk.lines[i], "of", "OF"), now
					}
				}
				call("Edit", `{"file_path":"/f","old_string":"of","new_string":"OF","replace_all":true}`, "{}")
			}
		}
		call("Read", `{"file_path":"/f"}`, fmt.Sprintf(`{"type":"text","file":{"content":%s,"startLine":1,"totalLines":%d}}`, quote(disk.text()), strings.Count(disk.text(), "\n")+1))
		f, err := s.state.File("/f")
		if err != nil || f.Text() != disk.text() || !f.Complete() {
			rt.Fatalf("%v: after a whole view it is not known", err)
		}
	})
}
