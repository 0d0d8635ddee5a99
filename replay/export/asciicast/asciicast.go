// Package asciicast writes the stage of a session, drawn as text, in the format asciicast
// v2, which asciinema plays in a terminal and on a web page.
//
// An event holds the rows that have changed. The last row has the session, the address and
// the time of the moment. Dispatched tasks, completions and errors are markers, to which a
// player can jump.
//
// docs/glossary.md has the nouns of all packages.
package asciicast

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// The bounds of the terminal.
const (
	MinCols = 20
	MaxCols = 500
	MinRows = 5
	MaxRows = 200
)

// Options of a cast.
type Options struct {
	Cols, Rows int           // of the terminal, within the bounds; 0 is 100 and 30
	Frame      time.Duration // of session time, at which something that moves is drawn; 0 is 100 ms
	Rate       float64       // session time that passes in one second; 0 is 1
	Idle       time.Duration // the longest wait between two frames in the cast; 0 means unlimited
}

// Write writes the cast of a range and returns the number of its frames. A last moment
// that is the zero Moment stands for the end, when nothing moves any more, but at most
// [replay.MaxRest] after the last entry. Memory does not depend on the length of the
// range. Errors are those of the replay, of the reel and of w.
func Write(ctx context.Context, w io.Writer, reel *film.Reel, from, to replay.Moment, o Options) (frames int, err error) {
	c := caster{ctx: ctx, w: bufio.NewWriterSize(w, 64<<10), reel: reel, cols: o.Cols, rows: o.Rows, rate: o.Rate, idle: o.Idle}
	if c.cols == 0 {
		c.cols = 100
	}
	if c.rows == 0 {
		c.rows = 30
	}
	if o.Frame == 0 {
		o.Frame = 100 * time.Millisecond
	}
	if !(c.rate > 0) {
		c.rate = 1
	}
	if c.cols < MinCols || c.cols > MaxCols || c.rows < MinRows || c.rows > MaxRows {
		return 0, fmt.Errorf("asciicast: %d columns and %d rows: must be from %d to %d and from %d to %d", c.cols, c.rows, MinCols, MaxCols, MinRows, MaxRows)
	}
	if to.IsZero() {
		last := replay.Moment{Seq: reel.Travel().Head().Seq}
		if to, err = reel.Travel().Rest(ctx, last); err != nil {
			return 0, err
		}
		to.Offset = min(to.Offset, replay.MaxRest)
	}
	if err := c.header(); err != nil {
		return 0, err
	}
	player, err := replay.NewPlayer(ctx, reel.Travel(), replay.PlayerConfig{From: from, To: to, Frame: o.Frame, Screen: &c})
	for more := err == nil; more && err == nil; {
		more, err = player.Next(ctx)
	}
	if err != nil {
		return c.frames, err
	}
	if err := c.event("o", fmt.Sprintf("\x1b[%d;1H\x1b[0m\x1b[?25h\r\n", c.rows)); err != nil {
		return c.frames, err
	}
	return c.frames, c.w.Flush()
}

// caster is the screen of a player that writes events.
type caster struct {
	ctx        context.Context // of Write; the method of a screen receives none
	w          *bufio.Writer
	reel       *film.Reel
	cols, rows int
	rate       float64
	idle       time.Duration

	frames int
	shown  []string      // the rows of the last frame
	seq    eventlog.Seq  // of the last frame
	at     time.Duration // session time of the last frame
	clock  time.Duration // in the cast
}

func (c *caster) header() error {
	fork, err := session.ReadFork(c.ctx, c.reel.Travel())
	if err != nil {
		return err
	}
	title := c.reel.Name()
	if fork != nil {
		title += ", " + fork.String()
	}
	head, err := json.Marshal(struct {
		Version int               `json:"version"`
		Width   int               `json:"width"`
		Height  int               `json:"height"`
		Title   string            `json:"title"`
		Env     map[string]string `json:"env"`
	}{2, c.cols, c.rows, title, map[string]string{"TERM": "xterm-256color"}})
	if err == nil {
		_, err = c.w.Write(append(head, '\n'))
	}
	return err
}

// event writes one event at the present time of the cast.
func (c *caster) event(kind, text string) error {
	data, err := json.Marshal(text)
	if err == nil {
		us := c.clock.Microseconds()
		_, err = fmt.Fprintf(c.w, "[%d.%06d, %q, %s]\n", us/1e6, us%1e6, kind, termtext.PrintableJSON(data))
	}
	return err
}

// Show implements [replay.Screen].
func (c *caster) Show(fold *projection.Fold, m replay.Moment) (changed bool, err error) {
	shot, err := c.reel.ShotOf(c.ctx, fold, m)
	if err != nil {
		return false, err
	}
	rows := strings.Split(strings.TrimSuffix(picture.Terminal(shot.Frame, c.cols, c.rows-1, true), "\n"), "\n")
	for len(rows) < c.rows-1 {
		rows = append(rows, "")
	}
	label := ""
	if m.Offset == 0 && m.Seq != c.seq {
		if label, err = c.reel.Caption(c.ctx, m); err != nil {
			return false, err
		}
	}
	status := label
	if status == "" {
		status = m.String()
	}
	rows = append(rows, termtext.Clip(termtext.Printable(fmt.Sprintf("%s  %v  %s", c.reel.Name(), shot.At.Round(time.Millisecond), status)), c.cols-1))
	var out strings.Builder
	if c.frames == 0 {
		out.WriteString("\x1b[?25l\x1b[2J")
	}
	for i, row := range rows {
		if c.frames == 0 && row != "" || c.frames > 0 && row != c.shown[i] {
			fmt.Fprintf(&out, "\x1b[%d;1H\x1b[0m%s\x1b[0m\x1b[K", i+1, row)
		}
	}
	if out.Len() == 0 {
		return false, nil
	}
	if c.frames > 0 {
		wait := time.Duration(float64(shot.At-c.at) / c.rate)
		if c.idle > 0 {
			wait = min(wait, c.idle)
		}
		c.clock += wait
	}
	c.frames++
	c.shown, c.at = rows, shot.At
	if err := c.event("o", out.String()); err != nil {
		return false, err
	}
	if label != "" {
		if err := c.marker(m, label); err != nil {
			return false, err
		}
	}
	c.seq = m.Seq
	return true, nil
}

// marker writes a marker at the signals to which people jump.
func (c *caster) marker(m replay.Moment, label string) error {
	if m.Seq == 0 {
		return nil
	}
	e, err := c.reel.Entry(c.ctx, m.Seq)
	if err != nil || e.Kind != eventlog.KindSignal {
		return err
	}
	sig, err := session.SignalOf(&e)
	if err != nil {
		return nil //nolint:nilerr // the stage ignores it too
	}
	switch sig.Type {
	case "task_dispatch", "completion", "error":
		return c.event("m", termtext.Clip(termtext.Printable(label), 80))
	}
	return nil
}
