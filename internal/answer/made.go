package answer

import (
	"math"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/fork"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// RenderedView is a picture that was drawn.
type RenderedView struct {
	File    string       `json:"file,omitempty"`
	Format  string       `json:"format,omitempty"`
	Width   int          `json:"width,omitempty"`
	Height  int          `json:"height,omitempty"`
	Frames  int          `json:"frames"`
	Seq     eventlog.Seq `json:"seq"`
	At      float64      `json:"at"`
	Omitted int          `json:"omitted,omitempty"`
}

// ViewRendered returns the view of a drawing of a number of frames, of which at is the last;
// nil for a film.
func ViewRendered(d *picture.Drawing, at film.Shot, frames int) RenderedView {
	v := RenderedView{Frames: frames, Seq: at.Seq, At: projection.Millis(at.At)}
	if d != nil {
		w, h := d.Size()
		v.Width, v.Height, v.Omitted = int(math.Ceil(w)), int(math.Ceil(h)), d.Omitted()
	}
	return v
}

// FigureDifferenceView is one thing in which two pictures differ.
type FigureDifferenceView struct {
	Entity string `json:"entity"`
	Change string `json:"change"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// ComparedView is a picture of two moments, and their differences.
type ComparedView struct {
	RenderedView
	Differences []FigureDifferenceView `json:"differences"`
}

// ViewCompared returns the view of the comparison of two pictures.
func ViewCompared(drawn RenderedView, differences []picture.FrameDifference) ComparedView {
	v := ComparedView{drawn, []FigureDifferenceView{}}
	for _, d := range differences {
		v.Differences = append(v.Differences, FigureDifferenceView{d.Entity, string(d.Change), d.Before, d.After})
	}
	return v
}

// DefinedView is the outcome of bringing declarations into force.
type DefinedView struct {
	Session     string           `json:"session"`
	Definitions int              `json:"definitions"` // recorded
	Unchanged   int              `json:"unchanged"`   // not recorded
	Head        session.HeadView `json:"head"`
}

// ForkedView is a fork that was made.
type ForkedView struct {
	Session string           `json:"session"`
	Entries int              `json:"entries"`
	Head    session.HeadView `json:"head"`
	Fork    ForkView         `json:"fork"`
	Decided int              `json:"decided_again"`
	Played  int              `json:"played_again"`
	Asked   int              `json:"asked_models"`
	Left    []LeftOutView    `json:"left_out"`
	More    int              `json:"more_left_out,omitempty"`
	Stopped *StoppedView     `json:"stopped,omitempty"`
}

// LeftOutView is an entry of the parent that could not be applied again.
type LeftOutView struct {
	Seq    eventlog.Seq `json:"seq"`
	Parent eventlog.Seq `json:"parent"`
	What   string       `json:"what"`
	Reason string       `json:"reason"`
}

// StoppedView says why a fork ends before its parent.
type StoppedView struct {
	Parent eventlog.Seq `json:"parent"`
	Reason string       `json:"reason"`
}

// ViewForked returns the view of a fork that was recorded under a name.
func ViewForked(name string, head eventlog.Head, made *fork.Counterfactual) ForkedView {
	report, label := made.Report(), made.Label()
	v := ForkedView{
		Session: name, Entries: report.Entries, Head: session.ViewHead(head), Fork: *ViewFork(&label, head),
		Decided: report.Decided, Played: report.Played, Asked: report.Asked, Left: []LeftOutView{}, More: report.More,
	}
	for _, l := range report.Left {
		v.Left = append(v.Left, LeftOutView(l))
	}
	if s := report.Stopped; s != nil {
		v.Stopped = &StoppedView{s.Parent, s.Reason}
	}
	return v
}
