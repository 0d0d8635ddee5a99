package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// ErrNoEpisode says that no episode is played at a moment of a session.
var ErrNoEpisode = errors.New("sajou: no episode is played")

// Progress says how far an episode has come, beat by beat.
type Progress struct {
	Episode *episode.Episode
	Play    int          // counts the episodes of the session, from 1
	Began   eventlog.Seq // the entry that began it
	Turn    int          // the newest; 0 before the first
	Failed  bool
	Beats   []BeatProgress   // in the episode's order
	Choices []ChoiceProgress // in the episode's order; those of beats and legacy ones
	Flags   []string         // the flags that are set, sorted
}

// BeatProgress is one beat of a [Progress].
type BeatProgress struct {
	Beat      *episode.Beat
	Status    string   // "pending", "detected", "completed" or "missed"
	Directed  TurnList // the turns whose guidance named it
	Overdue   int      // the number of those that said that it must happen now
	Landed    int      // the turn in which it landed; 0: it has not
	Seq       eventlog.Seq
	Heard     int    // the turn whose response landed it
	Method    string // "semantic", "keyword", "automatic" or "forced"
	Assurance string // "verified", "assumed" or "forced"
}

// Late returns how many turns behind its target the beat landed, negative if it
// landed before; false if it has not landed.
func (b *BeatProgress) Late() (turns int, ok bool) { return b.Landed - b.Beat.Target, b.Landed > 0 }

// ChoiceProgress is one choice point of a [Progress].
type ChoiceProgress struct {
	Point  *episode.ChoicePoint
	Status string // "", "open", "selected" or "declined"
	Option string // the selected one
	Label  string
	Turn   int // in which it was selected or declined
}

// TurnList is a list of turns that may be long: their number, and the first of them
// as spans of consecutive turns, each with its first and last.
type TurnList struct {
	Count int
	Spans [][2]int
}

// maxSpans bounds the spans of a list of turns.
const maxSpans = 32

func (t *TurnList) add(n int) {
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
func (t TurnList) String() string {
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

// ProgressAt returns the progress of the episode that is played at an entry. The
// error wraps [ErrNoEpisode] if none is.
func ProgressAt(ctx context.Context, r *replay.Replay, at eventlog.Seq) (*Progress, error) {
	w := progressWriter{}
	for e, err := range Events(ctx, r, at) {
		if err != nil {
			return nil, err
		}
		w.event(&e)
	}
	if w.state == nil || w.state.Episode() == nil {
		return nil, fmt.Errorf("%w in session %q at entry %d", ErrNoEpisode, r.Name(), at)
	}
	return w.progress(), nil
}

// progressWriter gathers the part of a [Progress] that the director's state does not
// hold. It keeps everything by id, so that it outlasts another version of the episode.
type progressWriter struct {
	state *director.State
	play  int
	began eventlog.Seq
	beats map[string]*BeatProgress
	made  map[string]ChoiceProgress
}

func (w *progressWriter) beat(id string) *BeatProgress {
	b := w.beats[id]
	if b == nil {
		b = &BeatProgress{}
		w.beats[strings.Clone(id)] = b
	}
	return b
}

func (w *progressWriter) event(e *session.StatefulEvent) {
	w.state = e.State
	v := e.Value
	switch e.Word {
	case episode.EpisodeStarted:
		w.play++
		w.began, w.beats, w.made = e.Seq, map[string]*BeatProgress{}, map[string]ChoiceProgress{}
	case episode.GuidanceIssued:
		d, _ := v.Get("directive")
		if id := d.TextOf("beat"); id != "" {
			b := w.beat(id)
			count := b.Directed.Count
			if b.Directed.add(e.State.Turn()); b.Directed.Count > count && d.TextOf("urgency") == episode.Overdue.String() {
				b.Overdue++
			}
		}
	case episode.BeatLanded:
		b := w.beat(v.TextOf("beat"))
		b.Landed, b.Heard, b.Seq = int(v.IntOf("turn")), int(v.IntOf("heard_at_turn")), e.Seq
		b.Method, b.Assurance = strings.Clone(v.TextOf("method")), strings.Clone(v.TextOf("assurance"))
	case episode.ChoiceSelected, episode.ChoiceDeclined:
		c := ChoiceProgress{Status: "selected", Option: v.TextOf("choice"), Label: v.TextOf("label"), Turn: int(v.IntOf("turn"))}
		if e.Word == episode.ChoiceDeclined {
			c.Status = "declined"
		}
		w.made[strings.Clone(v.TextOf("choice_point"))] = c
	}
}

func (w *progressWriter) progress() *Progress {
	e := w.state.Episode()
	view, _ := w.state.View().(map[string]any)
	beats, _ := view["beats"].(map[string]any)
	flags, _ := view["flags"].(map[string]any)
	b := &Progress{Episode: e, Play: w.play, Began: w.began, Turn: w.state.Turn()}
	b.Failed, _ = view["failed"].(bool)
	for name := range flags {
		b.Flags = append(b.Flags, name)
	}
	slices.Sort(b.Flags)
	for i := range e.Beats {
		row := BeatProgress{}
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
				c = ChoiceProgress{Point: c.Point, Status: "open"}
			}
		}
		b.Choices = append(b.Choices, c)
	}
	return b
}
