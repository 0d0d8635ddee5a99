package transcript

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// plainForm writes plain text: a head with the time and the entry, the body below it,
// indented by the depth of the agent.
type plainForm struct{ w io.Writer }

func (f *plainForm) begin(title, note string) error {
	if note != "" {
		note += "\n"
	}
	_, err := fmt.Fprintf(f.w, "%s\n%s", title, note)
	return err
}

func (f *plainForm) block(b *block) error {
	indent := strings.Repeat("    ", b.depth)
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s%s  %s  (entry %d)\n", indent, clock(b.at), b.head, b.seq)
	sign := "  "
	if b.sort == thought {
		sign = "~ "
	}
	for _, line := range bodyLines(b) {
		fmt.Fprintf(&out, "%s\n", strings.TrimRight(indent+"  "+sign+line, " "))
	}
	_, err := io.WriteString(f.w, out.String())
	return err
}

func (f *plainForm) end() error { return nil }

// bodyLines returns the lines of a body, with one about what was left out.
func bodyLines(b *block) []string {
	var lines []string
	if b.body != "" {
		lines = strings.Split(strings.TrimRight(b.body, "\n"), "\n")
	}
	if b.cut > 0 {
		lines = append(lines, leftOut(b.cut))
	}
	return lines
}

func leftOut(cut int) string {
	if cut == 1 {
		return "… 1 more line"
	}
	return fmt.Sprintf("… %d more lines", cut)
}

// markdownForm writes Markdown. All recorded text stands in code: names in spans, texts in
// fences.
type markdownForm struct{ w io.Writer }

func (f *markdownForm) begin(title, note string) error {
	if note != "" {
		note = "\n" + span(note) + "\n"
	}
	_, err := fmt.Fprintf(f.w, "# %s\n%s", span(title), note)
	return err
}

func (f *markdownForm) block(b *block) error {
	var out strings.Builder
	lines := bodyLines(b)
	head := span(b.head) + fmt.Sprintf(" · %s · entry %d", clock(b.at), b.seq)
	switch b.sort {
	case prompt:
		head = "## " + head
	case failure, fault:
		head = "**✗** " + head
	default:
	}
	folded := b.sort == thought && len(lines) > 0
	if folded {
		fmt.Fprintf(&out, "<details><summary>thinking</summary>\n\n%s\n\n", head)
	} else {
		fmt.Fprintf(&out, "%s\n\n", head)
	}
	if len(lines) > 0 {
		fence := fenceOf(lines)
		fmt.Fprintf(&out, "%stext\n%s\n%s\n\n", fence, strings.Join(lines, "\n"), fence)
	}
	if folded {
		out.WriteString("</details>\n\n")
	}
	prefix := strings.Repeat("> ", b.depth)
	text := strings.TrimSuffix(out.String(), "\n")
	if prefix != "" {
		text = prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix) + "\n"
	}
	_, err := io.WriteString(f.w, "\n"+text)
	return err
}

func (f *markdownForm) end() error { return nil }

// fenceOf returns a fence that no line can close: longer than every run of backticks.
func fenceOf(lines []string) string {
	longest := 2
	for _, line := range lines {
		longest = max(longest, longestRun(line))
	}
	return strings.Repeat("`", longest+1)
}

// span returns a name as a span of code that the name cannot close.
func span(name string) string {
	if strings.Trim(name, " ") == "" {
		return "``` ```"
	}
	ticks := strings.Repeat("`", longestRun(name)+1)
	if strings.HasPrefix(name, "`") || strings.HasSuffix(name, "`") {
		name = " " + name + " "
	}
	return ticks + name + ticks
}

// longestRun returns the length of the longest run of backticks.
func longestRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// htmlForm writes one HTML document.
type htmlForm struct{ w io.Writer }

const htmlHead = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%[1]s</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
section { margin: .6em 0; padding-left: .8em; border-left: 3px solid #8886; overflow-wrap: anywhere; }
section.prompt { border-color: #2a7ae2; margin-top: 1.6em; }
section.text { border-color: #3a9d5d; }
section.failure, section.fault { border-color: #d3402f; }
header, summary { font-weight: 600; }
header small, summary small { font-weight: 400; opacity: .6; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3em 0; font: inherit; }
.call pre, .result pre, .failure pre { font: 13px/1.4 ui-monospace, monospace; }
.thought pre { font-style: italic; opacity: .8; }
.cut { opacity: .6; margin: 0; }
%[2]s</style>
</head>
<body>
<h1>%[1]s</h1>
%[3]s`

func (f *htmlForm) begin(title, note string) error {
	var depths strings.Builder
	for d := 1; d <= maxDepth; d++ {
		fmt.Fprintf(&depths, ".d%d { margin-left: %dem; }\n", d, 2*d)
	}
	if note != "" {
		note = "<p>" + html.EscapeString(note) + "</p>\n"
	}
	_, err := fmt.Fprintf(f.w, htmlHead, html.EscapeString(title), depths.String(), note)
	return err
}

func (f *htmlForm) block(b *block) error {
	class := string(b.sort)
	if b.depth > 0 {
		class += fmt.Sprintf(" d%d", b.depth)
	}
	body := ""
	if b.body != "" {
		body = "<pre>" + html.EscapeString(strings.TrimRight(b.body, "\n")) + "</pre>\n"
	}
	if b.cut > 0 {
		body += `<p class="cut">` + leftOut(b.cut) + "</p>\n"
	}
	head := fmt.Sprintf("%s <small>%s · entry %d</small>", html.EscapeString(b.head), clock(b.at), b.seq)
	format := "<section class=\"%s\" id=\"e%d\">\n<header>%s</header>\n%s</section>\n"
	if b.sort == thought && body != "" {
		format = "<section class=\"%s\" id=\"e%d\">\n<details>\n<summary>%s</summary>\n%s</details>\n</section>\n"
	}
	_, err := fmt.Fprintf(f.w, format, class, b.seq, head, body)
	return err
}

func (f *htmlForm) end() error {
	_, err := io.WriteString(f.w, "</body>\n</html>\n")
	return err
}
