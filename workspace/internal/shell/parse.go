package shell

import (
	"path"
	"strings"
)

// parser reads one text.
type parser struct {
	s     *CommandList
	text  string
	at    int
	depth int
	from  int

	base    bool      // commands of the list run if the script succeeds
	certain bool      // the next command does
	piped   bool      // the next command reads a pipe
	dir     string    // see [SimpleCommand.Dir]
	lost    bool      // see [SimpleCommand.Lost]
	wait    []waiting // here-documents whose bodies follow the end of the line

	words     []Word
	redirects []Redirect
	subs      []string // scripts within the words of the command
	first     int      // the index of the first command of the and-list
}

// waiting is a here-document whose body is not read yet.
type waiting struct {
	redirect int // index in the command
	command  int // index in the script; -1 for the command that is being read
	strip    bool
	quoted   bool
}

func (s *CommandList) parse(text string, depth, from int, certain bool) {
	if depth > maxNesting || len(text) > MaxText {
		s.Unsure = true
		return
	}
	p := &parser{s: s, text: text, depth: depth, from: from, base: certain, certain: certain, first: len(s.Commands)}
	if from >= 0 {
		p.dir, p.lost = s.Commands[from].Dir, s.Commands[from].Lost
	}
	p.run()
}

func (p *parser) run() {
	for p.at < len(p.text) && len(p.s.Commands) < MaxCommands {
		c := p.text[p.at]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			p.at++
		case c == '\\' && p.next(1) == '\n':
			p.at += 2
		case c == '\n':
			p.at++
			p.end("\n")
			p.bodies()
		case c == '#':
			p.at += indexOr(p.text[p.at:], '\n')
		case c == ';':
			p.at++
			for p.next(0) == ';' || p.next(0) == '&' {
				p.at++ // the ends of the branches of a case
			}
			p.end(";")
		case c == '&' && p.next(1) == '&':
			p.at += 2
			p.end("&&")
		case c == '|' && p.next(1) == '|':
			p.at += 2
			p.end("||")
		case c == '&' && p.next(1) == '>':
			p.redirect("")
		case c == '&':
			p.at++
			p.end("&")
		case c == '|':
			p.at++
			if p.next(0) == '&' {
				p.at++
			}
			p.end("|")
		case c == '(' || c == ')':
			if c == '(' && p.next(1) == ')' && len(p.words) == 1 {
				p.base, p.certain = false, false // the definition of a function
			}
			// A subshell: its commands run, in a directory of their own.
			p.at++
			p.end("(")
			if c == ')' {
				p.lost = p.lost || p.dir != ""
			}
		case (c == '<' || c == '>') && p.next(1) == '(':
			p.word() // a process substitution
		case c == '<' || c == '>':
			p.redirect("")
		default:
			p.word()
		}
	}
	if p.at < len(p.text) {
		p.s.Unsure = true
	}
	p.end("")
	if len(p.wait) > 0 {
		p.s.Unsure = true // the body of a here-document is missing
	}
}

func (p *parser) next(n int) byte {
	if p.at+n < len(p.text) {
		return p.text[p.at+n]
	}
	return 0
}

func indexOr(s string, c byte) int {
	if i := strings.IndexByte(s, c); i >= 0 {
		return i
	}
	return len(s)
}

// keywords are words of the grammar at the place of a command. What follows runs
// under conditions, or repeatedly, or later.
var keywords = map[string]bool{
	"if": true, "then": true, "elif": true, "else": true, "fi": true, "for": true, "while": true, "until": true, "do": true,
	"done": true, "case": true, "esac": true, "select": true, "function": true, "!": true, "in": true,
}

// end ends the command that is being read, at an operator.
func (p *parser) end(op string) {
	words := p.words
	for len(words) > 0 && (isAssignment(words[0].Text) || words[0].Text == "{" || words[0].Text == "}") {
		words = words[1:]
	}
	for len(words) > 0 && keywords[words[0].Text] {
		p.base, p.certain = false, false
		head := words[0].Text
		words = words[1:]
		if head == "for" || head == "case" || head == "select" || head == "function" {
			words = nil
		}
	}
	index := len(p.s.Commands)
	if len(words) > 0 || len(p.redirects) > 0 || len(p.subs) > 0 {
		c := SimpleCommand{
			Words: words, Redirects: p.redirects, Certain: p.certain && op != "||" && op != "&" && op != "|",
			Piped: p.piped, Pipes: op == "|", From: p.from, Dir: p.dir, Lost: p.lost,
		}
		p.s.add(c, p.depth)
		for i := range p.wait {
			if p.wait[i].command < 0 {
				p.wait[i].command = index
			}
		}
		p.changeDir(words)
		for _, sub := range p.subs {
			if index < len(p.s.Commands) {
				p.s.parse(sub, p.depth+1, index, false)
			}
		}
	}
	p.words, p.redirects, p.subs = nil, nil, nil
	p.piped = op == "|"
	switch op {
	case ";", "\n", "&":
		// The failure of a command before ; is not that of the script.
		for i := p.first; i < len(p.s.Commands) && op != "&"; i++ {
			if p.rest() {
				p.s.Commands[i].Certain = false
			}
		}
		p.first, p.certain = len(p.s.Commands), p.base
	case "||":
		for i := p.first; i < len(p.s.Commands); i++ {
			p.s.Commands[i].Certain = false
		}
		p.certain = false
	}
}

// rest reports whether more than space and comments follows.
func (p *parser) rest() bool {
	at := p.at
	if len(p.wait) > 0 {
		if at == 0 || p.text[at-1] != '\n' {
			line := indexOr(p.text[at:], '\n')
			if strings.TrimSpace(p.text[at:at+line]) != "" {
				return true
			}
			at = min(at+line+1, len(p.text))
		}
		// The bodies of the here-documents come first.
		for _, w := range p.wait {
			_, size := body(p.text[at:], p.delimiter(w), w.strip)
			at += size
		}
	}
	return strings.TrimSpace(p.text[at:]) != ""
}

// changeDir notes a cd.
func (p *parser) changeDir(words []Word) {
	if len(words) == 0 {
		return
	}
	switch words[0].Text {
	case "cd", "pushd":
	case "popd":
		p.lost = true
		return
	default:
		return
	}
	switch {
	case len(words) != 2 || !words[1].Exact || words[1].Text == "-" || strings.HasPrefix(words[1].Text, "~"):
		p.lost = true
	case path.IsAbs(words[1].Text):
		p.dir, p.lost = words[1].Text, false
	default:
		p.dir = path.Join(p.dir, words[1].Text)
	}
}

// redirect reads a redirection; fd is what stood before it.
func (p *parser) redirect(fd string) {
	op := ""
	for _, known := range []string{"&>>", "<<<", "<<-", "&>", "<<", ">>", ">|", ">&", "<&", "<>", "<", ">"} {
		if strings.HasPrefix(p.text[p.at:], known) {
			op = known
			break
		}
	}
	p.at += len(op)
	for p.next(0) == ' ' || p.next(0) == '\t' {
		p.at++
	}
	begin := p.at
	target, ok := p.readWord()
	if !ok {
		p.s.Unsure = true
		return
	}
	r := Redirect{Op: op, FD: fd, Target: target}
	if op == "<<" || op == "<<-" {
		r.Op = "<<"
		p.wait = append(p.wait, waiting{
			redirect: len(p.redirects), command: -1, strip: op == "<<-",
			quoted: strings.ContainsAny(p.text[begin:p.at], `'"\`),
		})
	}
	p.redirects = append(p.redirects, r)
}

func (p *parser) delimiter(w waiting) string {
	if w.command >= 0 && w.command < len(p.s.Commands) {
		return p.s.Commands[w.command].Redirects[w.redirect].Target.Text
	}
	if w.redirect < len(p.redirects) {
		return p.redirects[w.redirect].Target.Text
	}
	return ""
}

// bodies reads the here-documents of the line that has ended.
func (p *parser) bodies() {
	for _, w := range p.wait {
		if w.command < 0 || w.command >= len(p.s.Commands) {
			p.s.Unsure = true
			continue
		}
		r := &p.s.Commands[w.command].Redirects[w.redirect]
		text, size := body(p.text[p.at:], r.Target.Text, w.strip)
		p.at += size
		r.Body = text
		r.Target.Exact = w.quoted || !strings.ContainsAny(text, "$`\\")
		c := &p.s.Commands[w.command]
		if run := Run(c.Words); IsShell((&SimpleCommand{Words: run.Words}).Name()) && len(run.Words) == 1 {
			p.s.parse(text, p.depth+1, w.command, c.Certain && r.Target.Exact)
		}
	}
	p.wait = nil
}

// body returns the text up to the line that is the delimiter, and the size with that
// line. A text without that line ends at its end.
func body(text, delimiter string, strip bool) (string, int) {
	var b strings.Builder
	at := 0
	for at < len(text) {
		n := indexOr(text[at:], '\n')
		line := text[at : at+n]
		at = min(at+n+1, len(text))
		if strip {
			line = strings.TrimLeft(line, "\t")
		}
		if line == delimiter {
			return b.String(), at
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String(), at
}

// word reads a word of a command.
func (p *parser) word() {
	begin := p.at
	w, ok := p.readWord()
	if !ok {
		p.s.Unsure = true
		if p.at == begin {
			p.at++
		}
		return
	}
	if c := p.next(0); (c == '<' || c == '>') && w.Exact && isDigits(w.Text) && p.at-begin == len(w.Text) {
		p.redirect(w.Text)
		return
	}
	p.words = append(p.words, w)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// readWord reads a word and removes its quotes.
func (p *parser) readWord() (w Word, ok bool) {
	w.Exact = true
	var b strings.Builder
	begin := p.at
	for p.at < len(p.text) {
		c := p.text[p.at]
		switch c {
		case ' ', '\t', '\n', '\r', ';', '&', '|', ')':
			w.Text = b.String()
			return w, p.at > begin
		case '(':
			if p.at > begin && strings.IndexByte("?*+@!", p.text[p.at-1]) >= 0 {
				w.Exact = false // an extended pattern
			} else {
				w.Text = b.String()
				return w, p.at > begin
			}
			p.skipParens(&b)
		case '<', '>':
			if p.next(1) == '(' && p.at == begin {
				p.at += 2
				b.WriteByte(c)
				p.substitution(&b)
				w.Exact = false
				continue
			}
			w.Text = b.String()
			return w, p.at > begin
		case '\\':
			if p.at+1 >= len(p.text) {
				p.at++
				b.WriteByte('\\')
				continue
			}
			if p.text[p.at+1] != '\n' {
				b.WriteByte(p.text[p.at+1])
			}
			p.at += 2
		case '\'':
			n := strings.IndexByte(p.text[p.at+1:], '\'')
			if n < 0 {
				b.WriteString(p.text[p.at+1:])
				p.at, p.s.Unsure, w.Exact = len(p.text), true, false
				continue
			}
			b.WriteString(p.text[p.at+1 : p.at+1+n])
			p.at += n + 2
		case '"':
			p.at++
			p.doubleQuoted(&b, &w)
		case '$':
			p.dollar(&b, &w)
		case '`':
			p.backquoted(&b)
			w.Exact = false
		case '*', '?', '[', '{':
			// A brace alone is a word of the grammar, and {} one of find.
			if !(c == '{' && (p.at == begin && strings.IndexByte(" \n\t}", p.next(1)) >= 0)) {
				w.Exact = false
			}
			b.WriteByte(c)
			p.at++
		case '~':
			if p.at == begin {
				w.Exact = false
			}
			b.WriteByte(c)
			p.at++
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	w.Text = b.String()
	return w, p.at > begin
}

// skipParens copies a group in parentheses that is part of a word.
func (p *parser) skipParens(b *strings.Builder) {
	n := indexOr(p.text[p.at:], ')')
	n = min(n+1, len(p.text)-p.at)
	b.WriteString(p.text[p.at : p.at+n])
	p.at += n
}

func (p *parser) doubleQuoted(b *strings.Builder, w *Word) {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; c {
		case '"':
			p.at++
			return
		case '\\':
			switch n := p.next(1); n {
			case '$', '`', '"', '\\':
				b.WriteByte(n)
			case '\n':
			case 0:
				b.WriteByte(c)
			default:
				b.WriteByte(c)
				b.WriteByte(n)
			}
			p.at = min(p.at+2, len(p.text))
		case '$':
			p.dollar(b, w)
		case '`':
			p.backquoted(b)
			w.Exact = false
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	p.s.Unsure, w.Exact = true, false
}

// dollar reads an expansion, which stays in the word as it is written.
func (p *parser) dollar(b *strings.Builder, w *Word) {
	switch n := p.next(1); {
	case n == '(' && p.next(2) == '(':
		w.Exact = false
		b.WriteString("$((")
		p.at += 3
	case n == '(':
		w.Exact = false
		p.at += 2
		b.WriteByte('$')
		p.substitution(b)
	case n == '\'':
		// ANSI quotes: only texts without escapes are exact.
		end := strings.IndexByte(p.text[p.at+2:], '\'')
		if end < 0 {
			p.s.Unsure = true
			end = len(p.text) - p.at - 2
		}
		text := p.text[p.at+2 : p.at+2+end]
		w.Exact = w.Exact && !strings.Contains(text, `\`)
		b.WriteString(text)
		p.at = min(p.at+3+end, len(p.text))
	case n == '{' || n == '_' || n >= 'a' && n <= 'z' || n >= 'A' && n <= 'Z' || n >= '0' && n <= '9' || n != 0 && strings.IndexByte("@*#?$!-", n) >= 0:
		w.Exact = false
		b.WriteByte('$')
		p.at++
	default:
		b.WriteByte('$')
		p.at++
	}
}

// substitution reads a script up to its closing parenthesis.
func (p *parser) substitution(b *strings.Builder) {
	begin := p.at
	depth := 1
	for p.at < len(p.text) && depth > 0 {
		switch p.text[p.at] {
		case '(':
			depth++
		case ')':
			depth--
		case '\\':
			p.at++
		case '\'':
			p.at += 1 + indexOr(p.text[min(p.at+1, len(p.text)):], '\'')
		case '"':
			for p.at++; p.at < len(p.text) && p.text[p.at] != '"'; p.at++ {
				if p.text[p.at] == '\\' {
					p.at++
				}
			}
		}
		p.at++
	}
	p.at = min(p.at, len(p.text))
	end := p.at
	if depth == 0 {
		end--
	} else {
		p.s.Unsure = true
	}
	p.subs = append(p.subs, p.text[begin:end])
	b.WriteString("(")
	b.WriteString(p.text[begin:end])
	b.WriteString(")")
}

func (p *parser) backquoted(b *strings.Builder) {
	begin := p.at + 1
	for p.at++; p.at < len(p.text) && p.text[p.at] != '`'; p.at++ {
		if p.text[p.at] == '\\' {
			p.at++
		}
	}
	end := min(p.at, len(p.text))
	if p.at >= len(p.text) {
		p.s.Unsure = true
	}
	p.at = min(p.at+1, len(p.text))
	sub := p.text[begin:end]
	p.subs = append(p.subs, sub)
	b.WriteString("`" + sub + "`")
}
