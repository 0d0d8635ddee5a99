package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// output writes results in the format of -o.
type output struct {
	*bufio.Writer
	format string
	items  int
}

func (a *app) output() *output {
	return &output{Writer: bufio.NewWriterSize(a.stdout, 64<<10), format: a.format}
}

// item writes one of a list of results: a line of text, or JSON, compact. A
// list ends with end. The error is that of the stream, so that a reader that went
// away ends the work.
func (o *output) item(text string, value []byte) error {
	o.items++
	switch o.format {
	case "text":
		_, err := o.WriteString(text + "\n")
		return err
	case "jsonl":
		_, err := o.Write(append(value, '\n'))
		return err
	}
	opening := ",\n"
	if o.items == 1 {
		opening = "[\n"
	}
	_, err := o.WriteString(opening)
	if err != nil {
		return err
	}
	_, err = o.Write(value)
	return err
}

// end ends a list of items.
func (o *output) end() error {
	if o.format == "json" {
		closing := "\n]\n"
		if o.items == 0 {
			closing = "[]\n"
		}
		if _, err := o.WriteString(closing); err != nil {
			return err
		}
	}
	return o.Flush()
}

// one writes a single result: text as it is, or JSON, indented for json and in
// one line for jsonl.
func (o *output) one(text string, value any) error {
	if o.format == "text" {
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if _, err := o.WriteString(text); err != nil {
			return err
		}
		return o.Flush()
	}
	data, err := marshal(value)
	if err != nil {
		return err
	}
	if o.format == "json" {
		data = indented(data)
	}
	if _, err := o.Write(append(data, '\n')); err != nil {
		return err
	}
	return o.Flush()
}

// marshal is json.Marshal without the escapes that are only good inside HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func indented(data []byte) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return data
	}
	return b.Bytes()
}

// printable replaces what a terminal would act on instead of showing it. What
// a recording holds is not trusted.
func printable(s string) string {
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hidden(r rune) bool {
	return r != ' ' && !unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r)
}

// clip cuts a text to a width in runes.
func clip(s string, width int) string {
	if len(s) <= width {
		return s
	}
	n := 0
	for i := range s {
		if n == width-1 {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// clockText writes session time as minutes, seconds and milliseconds, with
// hours where there are some.
func clockText(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	ms := d / time.Millisecond
	h, m, s, ms := ms/3600000, ms/60000%60, ms/1000%60, ms%1000
	if h > 0 {
		return fmt.Sprintf("%s%d:%02d:%02d.%03d", sign, h, m, s, ms)
	}
	return fmt.Sprintf("%s%02d:%02d.%03d", sign, m, s, ms)
}

// entryText writes an entry as one line of a table.
func entryText(e *eventlog.Entry) string {
	const width = 90
	word, detail := "", ""
	switch e.Kind {
	case eventlog.KindSignal:
		sig, err := signal.Decode(e.Data)
		if err != nil {
			detail = "cannot be read: " + err.Error()
			break
		}
		word = sig.Type
		if sig.Problem != "" {
			detail = "! " + sig.Problem + " "
		}
		body := sig.Payload
		if sig.Raw != nil {
			body = sig.Raw
		}
		detail += string(body.AppendJSON(nil))
	case eventlog.KindDefine:
		word = "choreography"
		d, err := sajou.DeclarationOf(e)
		if err != nil {
			detail = "cannot be read: " + err.Error()
			break
		}
		word = d.Word()
		detail = string(d.Value().AppendJSON(nil))
	case eventlog.KindEffect:
		r, err := sajou.WorldRecordOf(e)
		if err != nil {
			detail = "cannot be read: " + err.Error()
			break
		}
		word, detail = worldText(r)
	case eventlog.KindBeat:
		r, err := sajou.BeatOf(e)
		if err != nil {
			detail = "cannot be read: " + err.Error()
			break
		}
		word, detail = beatText(r)
	default:
		view := sajou.EntryView(e)
		member := view[e.Kind.String()]
		if member == nil {
			member = view["data"]
		}
		if data, err := marshal(member); err == nil {
			detail = string(data)
		}
	}
	return fmt.Sprintf("%6d  %s  %-7s  %-18s  %s", e.Seq, clockText(e.At), e.Kind, clip(printable(word), 40), clip(printable(detail), width))
}

// entryItem writes an entry as an item.
func (o *output) entryItem(e *eventlog.Entry) error {
	if o.format == "text" {
		return o.item(entryText(e), nil)
	}
	return o.item("", sajou.AppendEntryJSON(nil, e))
}

// headView is a Head for JSON.
type headView struct {
	Seq  eventlog.Seq `json:"seq"`
	Hash string       `json:"hash"`
}

func viewHead(h eventlog.Head) headView { return headView{h.Seq, h.Hash.String()} }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
