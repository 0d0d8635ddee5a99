package sajou

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrNoEpisode says that no episode is played at a moment of a session.
var ErrNoEpisode = errors.New("sajou: no episode is played")

// Board is how far an episode has come, beat by beat.
type Board struct {
	Episode *director.Episode
	Play    int          // counts the episodes of the session, from 1
	Began   eventlog.Seq // the entry that began it
	Turn    int          // the newest; 0 before the first
	Failed  bool
	Beats   []BoardBeat   // in the episode's order
	Choices []BoardChoice // likewise; those of beats and legacy ones
	Flags   []string      // that are set, sorted
}

// BoardBeat is one beat of a [Board].
type BoardBeat struct {
	Beat      *director.Beat
	Status    string // "pending", "detected", "completed" or "missed"
	Directed  Turns  // the turns whose guidance named it
	Overdue   int    // how many of them said that it must happen now
	Landed    int    // the turn in which it landed; 0: it has not
	Seq       eventlog.Seq
	Heard     int    // the turn in whose response it was found
	Method    string // "semantic", "keyword", "automatic" or "forced"
	Assurance string // "verified", "assumed" or "forced"
}

// Late returns how many turns behind its target the beat landed, less than zero
// if before; false if it has not.
func (b *BoardBeat) Late() (turns int, ok bool) { return b.Landed - b.Beat.Target, b.Landed > 0 }

// BoardChoice is one choice point of a [Board].
type BoardChoice struct {
	Point  *director.ChoicePoint
	Status string // "", "open", "selected" or "declined"
	Option string // the one that was selected
	Label  string
	Turn   int // in which it was selected or declined
}

// Turns is a list of turns that may be long: how many, and the first of them as
// spans of turns that follow each other, each with its first and last.
type Turns struct {
	Count int
	Spans [][2]int
}

// maxSpans bounds what a list of turns shows.
const maxSpans = 32

func (t *Turns) add(n int) {
	i := len(t.Spans) - 1
	if i >= 0 && t.Spans[i][1] == n {
		return // guided again
	}
	t.Count++
	switch {
	case i >= 0 && t.Spans[i][1] == n-1:
		t.Spans[i][1] = n
	case len(t.Spans) < maxSpans:
		t.Spans = append(t.Spans, [2]int{n, n})
	}
}

// String returns the turns as "2-4, 7".
func (t Turns) String() string {
	var b strings.Builder
	shown := 0
	for i, s := range t.Spans {
		if i > 0 {
			b.WriteString(", ")
		}
		if shown += s[1] - s[0] + 1; s[0] == s[1] {
			fmt.Fprintf(&b, "%d", s[0])
		} else {
			fmt.Fprintf(&b, "%d-%d", s[0], s[1])
		}
	}
	if shown < t.Count {
		fmt.Fprintf(&b, " and %d more", t.Count-shown)
	}
	return b.String()
}

// Board returns how far the episode has come that is played at an entry. The
// error is [ErrNoEpisode] if none is, or [eventlog.ErrNoSession].
func (r *Replay) Board(ctx context.Context, at eventlog.Seq) (*Board, error) {
	if err := r.exists(); err != nil {
		return nil, err
	}
	w := boardWriter{}
	for e, err := range r.Script(ctx, at) {
		if err != nil {
			return nil, err
		}
		w.event(&e)
	}
	if w.state == nil || w.state.Episode() == nil {
		return nil, fmt.Errorf("%w in session %q at entry %d", ErrNoEpisode, r.name, at)
	}
	return w.board(), nil
}

func (r *Replay) exists() error {
	_, err := r.Open()
	return err
}

// boardWriter gathers what a board tells beside the director's state. What it
// keeps is by id, so that it outlasts another version of the episode.
type boardWriter struct {
	state *director.State
	play  int
	began eventlog.Seq
	beats map[string]*BoardBeat
	made  map[string]BoardChoice
}

func (w *boardWriter) beat(id string) *BoardBeat {
	b := w.beats[id]
	if b == nil {
		b = &BoardBeat{}
		w.beats[strings.Clone(id)] = b
	}
	return b
}

func (w *boardWriter) event(e *Scripted) {
	w.state = e.State
	v := e.Value
	switch e.Word {
	case director.EpisodeStarted:
		w.play++
		w.began, w.beats, w.made = e.Seq, map[string]*BoardBeat{}, map[string]BoardChoice{}
	case director.GuidanceIssued:
		d, _ := v.Get("directive")
		if id := textMember(d, "beat"); id != "" {
			b := w.beat(id)
			count := b.Directed.Count
			if b.Directed.add(e.State.Turn()); b.Directed.Count > count && textMember(d, "urgency") == director.Overdue.String() {
				b.Overdue++
			}
		}
	case director.BeatLanded:
		b := w.beat(textMember(v, "beat"))
		b.Landed, b.Heard, b.Seq = intMember(v, "turn"), intMember(v, "heard_at_turn"), e.Seq
		b.Method, b.Assurance = strings.Clone(textMember(v, "method")), strings.Clone(textMember(v, "assurance"))
	case director.ChoiceSelected, director.ChoiceDeclined:
		c := BoardChoice{Status: "selected", Option: textMember(v, "choice"), Label: textMember(v, "label"), Turn: intMember(v, "turn")}
		if e.Word == director.ChoiceDeclined {
			c.Status = "declined"
		}
		w.made[strings.Clone(textMember(v, "choice_point"))] = c
	}
}

func (w *boardWriter) board() *Board {
	e := w.state.Episode()
	view, _ := w.state.View().(map[string]any)
	beats, _ := view["beats"].(map[string]any)
	flags, _ := view["flags"].(map[string]any)
	b := &Board{Episode: e, Play: w.play, Began: w.began, Turn: w.state.Turn()}
	b.Failed, _ = view["failed"].(bool)
	for name := range flags {
		b.Flags = append(b.Flags, name)
	}
	slices.Sort(b.Flags)
	for i := range e.Beats {
		row := BoardBeat{}
		if kept := w.beats[e.Beats[i].ID]; kept != nil {
			row = *kept
		}
		at, _ := beats[e.Beats[i].ID].(map[string]any)
		row.Beat = &e.Beats[i]
		row.Status, _ = at["status"].(string)
		if at["assurance"] == nil {
			// It landed in a response that was dropped.
			row.Landed, row.Heard, row.Seq, row.Method, row.Assurance = 0, 0, 0, "", ""
		}
		b.Beats = append(b.Beats, row)
	}
	for i := range e.Choices {
		c := w.made[e.Choices[i].ID]
		c.Point = &e.Choices[i]
		for _, o := range w.state.Open() {
			if o.ID == c.Point.ID {
				c = BoardChoice{Point: c.Point, Status: "open"}
			}
		}
		b.Choices = append(b.Choices, c)
	}
	return b
}

// PlayedTurn is what the director recorded of one turn.
type PlayedTurn struct {
	Play   int // counts the episodes of the session, from 1
	Number int
	Events []Beat // in their order
	Left   int    // how many came after those, and are not told
	bytes  int    // of the events
}

// What is kept of one turn. That of an honest log has a few events for each
// beat, and each is short.
const (
	maxTurnEvents = 1 << 16
	maxTurnBytes  = 32 << 20
)

func (t *PlayedTurn) add(b Beat) {
	if t.Left > 0 || len(t.Events) == maxTurnEvents || t.bytes+len(b.Value) > maxTurnBytes {
		t.Left++
		return
	}
	t.Events, t.bytes = append(t.Events, b), t.bytes+len(b.Value)
}

// Turns returns what was played, turn by turn, from one entry to another, both
// included. A verdict that came late is in the turn in which it came.
func (r *Replay) Turns(ctx context.Context, from, to eventlog.Seq) iter.Seq2[PlayedTurn, error] {
	return func(yield func(PlayedTurn, error) bool) {
		var turn PlayedTurn
		play := 0
		// flush hands out the turn in hand, if there is one.
		flush := func() bool {
			done := turn
			turn = PlayedTurn{}
			return done.Number == 0 || yield(done, nil)
		}
		for e, err := range r.Script(ctx, to) {
			if err != nil {
				yield(PlayedTurn{}, err)
				return
			}
			if e.Word == director.EpisodeStarted {
				play++
			}
			if e.Word == director.EpisodeStarted || e.Word == director.Word {
				if e.Word == director.EpisodeStarted && !flush() {
					return
				}
				continue
			}
			if e.Seq < from {
				continue
			}
			if n := e.State.Turn(); n != turn.Number {
				if !flush() {
					return
				}
				turn.Play, turn.Number = play, n
			}
			turn.add(e.Beat)
		}
		flush()
	}
}

// textMember returns a member of an event that is a text, "" if it has none.
func textMember(v signal.Value, name string) string {
	m, _ := v.Get(name)
	s, _ := m.Text()
	return s
}

// intMember returns a member of an event that is a number, 0 if it has none.
func intMember(v signal.Value, name string) int {
	m, _ := v.Get(name)
	i, _ := m.Int64()
	return int(i)
}
