package workspace

import (
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// outputText returns the text of a tool's output: of the member that has it, or of the
// parts of a list. A text that says that it was cut is none.
func outputText(output signal.Value) (string, bool) {
	text, ok := rawText(output, 0)
	if !ok {
		return "", false
	}
	text = unwrapped(text)
	for _, mark := range cutMarks {
		if strings.Contains(text, mark) {
			return "", false
		}
	}
	return text, true
}

// cutMarks are what tools write in place of the part of an output that they omit.
var cutMarks = []string{
	"<response clipped>", "[TRUNCATED", "[truncated", "... truncated", "tokens truncated", "lines truncated", "characters truncated",
	"chars truncated", "lines omitted", "characters omitted", "Output truncated", "output truncated", "<elided_chars>", "Observation truncated",
	"[Previous line repeated",
}

// rawText returns the text of an output, as it is.
func rawText(v signal.Value, depth int) (string, bool) {
	if depth > 3 {
		return "", false
	}
	switch v.Kind() {
	case signal.KindString:
		return v.Text()
	case signal.KindArray:
		var b strings.Builder
		for e := range v.Elements() {
			text, ok := rawText(e, depth+1)
			if !ok {
				return "", false
			}
			b.WriteString(text)
		}
		return b.String(), v.Len() > 0
	case signal.KindObject:
		for _, name := range []string{"value", "stdout", "output", "content", "aggregated_output", "result", "text", "message"} {
			if m, ok := v.Get(name); ok {
				return rawText(m, depth+1)
			}
		}
	default:
	}
	return "", false
}

// unwrapped removes what agents put around the output of a command.
func unwrapped(text string) string {
	if rest, ok := strings.CutPrefix(text, "<returncode>"); ok {
		if _, after, ok := strings.Cut(rest, "<output>\n"); ok {
			return strings.TrimSuffix(strings.TrimSuffix(after, "\n"), "</output>")
		}
	}
	if strings.HasPrefix(text, "Chunk ID: ") || strings.HasPrefix(text, "Exit code: ") || strings.HasPrefix(text, "Wall time: ") {
		if _, after, ok := strings.Cut(text, "\nOutput:\n"); ok {
			return after
		}
	}
	return text
}

// numbered reads the lines of a listing with line numbers, such as that of cat -n. The
// numbers follow each other; separator is what stands behind a number. Other text may
// stand before and behind the lines; after is the text behind them.
func numbered(text string) (start int, lines []string, after string, ok bool) {
	rest := text
	separator := ""
	next := 0
	for rest != "" {
		line, tail, more := strings.Cut(rest, "\n")
		if !more {
			tail = ""
		}
		n, sep, content, is := numberedLine(line)
		switch {
		case next == 0 && is:
			start, next, separator = n, n+1, sep
			lines = append(lines, content)
		case next == 0:
		case is && n == next && sep == separator:
			lines = append(lines, content)
			next++
		default:
			return start, lines, rest, true
		}
		rest = tail
	}
	return start, lines, "", next > 0
}

// numberedLine splits "  12→text", "  12\ttext", "12 | text" and "12:text".
func numberedLine(line string) (n int, separator, text string, ok bool) {
	s := strings.TrimLeft(line, " ")
	i := 0
	for i < len(s) && i < 9 && s[i] >= '0' && s[i] <= '9' {
		n = n*10 + int(s[i]-'0')
		i++
	}
	if i == 0 || n == 0 {
		return 0, "", "", false
	}
	s = s[i:]
	for _, sep := range []string{"→", "\t", " | ", " |", ":"} {
		if text, ok := strings.CutPrefix(s, sep); ok {
			return n, strings.TrimSpace(sep), strings.TrimSuffix(text, "\r"), true
		}
	}
	return 0, "", "", false
}

// shownLines returns lines of a listing as lines of a file. The last one ends the file
// without a line end if last is true.
func shownLines(texts []string, last bool) (old []string, lines []newLine) {
	if last && len(texts) > 0 && texts[len(texts)-1] == "" {
		// Tools that split at line ends number the empty text behind the last one.
		texts, last = texts[:len(texts)-1], false
	}
	for i, t := range texts {
		if !last || i < len(texts)-1 {
			t += "\n"
		}
		old = append(old, t)
		lines = append(lines, newLine{text: t, shown: true, kind: Known})
	}
	return old, lines
}
