package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
)

// ItemOf writes an item: a line, or the value as JSON.
func (o *Output) ItemOf(text string, value any) error {
	data, err := Marshal(value)
	if err != nil {
		return err
	}
	return o.Item(text, data)
}

// Output writes results in the format of -o.
type Output struct {
	*bufio.Writer
	Format string
	Items  int
}

// Output returns the buffered writer of results, in the format of -o.
func (a *App) Output() *Output {
	return &Output{Writer: bufio.NewWriterSize(a.Stdout, 64<<10), Format: a.Format}
}

// Item writes one result of a list: a line of text, or compact JSON. The caller
// ends the list with End, and stops its work at an error of the stream, so that a
// closed pipe ends the command.
func (o *Output) Item(text string, value []byte) error {
	o.Items++
	value = termtext.PrintableJSON(value)
	switch o.Format {
	case "text":
		_, err := o.WriteString(text + "\n")
		return err
	case "jsonl":
		_, err := o.Write(append(value, '\n'))
		return err
	}
	opening := ",\n"
	if o.Items == 1 {
		opening = "[\n"
	}
	_, err := o.WriteString(opening)
	if err != nil {
		return err
	}
	_, err = o.Write(value)
	return err
}

// End ends a list of items.
func (o *Output) End() error {
	if o.Format == "json" {
		closing := "\n]\n"
		if o.Items == 0 {
			closing = "[]\n"
		}
		if _, err := o.WriteString(closing); err != nil {
			return err
		}
	}
	return o.Flush()
}

// One writes a single result: the text, or the value as JSON, indented for json and
// in one line for jsonl.
func (o *Output) One(text string, value any) error {
	if o.Format == "text" {
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if _, err := o.WriteString(text); err != nil {
			return err
		}
		return o.Flush()
	}
	data, err := Marshal(value)
	if err != nil {
		return err
	}
	data = termtext.PrintableJSON(data)
	if o.Format == "json" {
		data = Indented(data)
	}
	if _, err := o.Write(append(data, '\n')); err != nil {
		return err
	}
	return o.Flush()
}

// JSON implements [play.Display].
func (o *Output) JSON() bool { return o.Format != "text" }

// WriteLine implements [play.Display].
func (o *Output) WriteLine(line string) error {
	_, err := o.WriteString(line + "\n")
	return err
}

// WriteEvent implements [play.Display].
func (o *Output) WriteEvent(value any) error { return o.ItemOf("", value) }

// Marshal is [answer.Marshal].
func Marshal(v any) ([]byte, error) { return answer.Marshal(v) }

// Indented indents JSON; other text stays as it is.
func Indented(data []byte) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return data
	}
	return b.Bytes()
}

// HeadView is a head of a log for JSON.
type HeadView = session.HeadView

// ViewHead returns the view of h.
func ViewHead(h eventlog.Head) HeadView { return session.ViewHead(h) }

// Plural returns n with the noun in its number.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// ClockText writes session time as minutes, seconds and milliseconds, from one hour
// on with hours.
func ClockText(d time.Duration) string {
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

// Text writes a text in every format.
func (o *Output) Text(s string) error {
	if _, err := fmt.Fprintln(o, s); err != nil {
		return err
	}
	return o.Flush()
}
