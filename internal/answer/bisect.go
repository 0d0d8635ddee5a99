package answer

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/bisect"
)

// PhaseView is a time at which the session is good or bad. Until is empty
// for the last one.
type PhaseView struct {
	Result string `json:"result"`
	From   string `json:"from"`
	Until  string `json:"until,omitempty"`
}

// IslandView is a judged part of the range that contradicts one transition:
// it was judged at First and Last, and the moments After and Before around it have the
// other result.
type IslandView struct {
	Result string `json:"result"`
	First  string `json:"first"`
	Last   string `json:"last"`
	After  string `json:"after"`
	Before string `json:"before"`
}

// BisectView is the answer of a search with tests.
type BisectView struct {
	Find       string        `json:"find"`
	Good       *eventlog.Seq `json:"good,omitempty"`
	Bad        *eventlog.Seq `json:"bad,omitempty"`
	First      *eventlog.Seq `json:"first,omitempty"`
	LastGood   string        `json:"lastGood,omitempty"`
	FirstBad   string        `json:"firstBad,omitempty"`
	Conclusive bool          `json:"conclusive"`
	Assumes    string        `json:"assumes,omitempty"`
	Conflict   string        `json:"conflict,omitempty"`
	Candidates int           `json:"candidates"`
	Inputs     int           `json:"inputs"`
	Judged     int           `json:"judged"`
	Tests      int           `json:"tests"`
	Skipped    int           `json:"skipped"`
	Phases     []PhaseView   `json:"phases,omitempty"`
	Islands    []IslandView  `json:"islands,omitempty"`
	Moment     string        `json:"moment,omitempty"`
	At         *float64      `json:"at,omitempty"`
	ByEntry    *bool         `json:"byEntry,omitempty"`
	Step       *float64      `json:"step,omitempty"`
}

// String describes a phase in a few words.
func (p PhaseView) String() string {
	if p.Until == "" {
		return fmt.Sprintf("%s from %s to the end of the range", p.Result, p.From)
	}
	return fmt.Sprintf("%s from %s until %s", p.Result, p.From, p.Until)
}

// String describes an island in a few words.
func (i IslandView) String() string {
	at := i.First
	if i.Last != i.First {
		at += " and " + i.Last
	}
	return fmt.Sprintf("%s at %s, unlike %s and %s", i.Result, at, i.After, i.Before)
}

// ViewIslands returns the islands of an answer.
func ViewIslands(list []bisect.Stretch, out *bisect.Findings) []IslandView {
	var views []IslandView
	for _, island := range out.Islands() {
		v := IslandView{Result: island.Result.String(), First: list[island.First].From.String(), Last: list[island.Last].From.String()}
		for i, p := range out.Phases {
			if p == island { // with ends that hold, it has neighbors
				v.After, v.Before = list[out.Phases[i-1].Last].From.String(), list[out.Phases[i+1].First].From.String()
			}
		}
		views = append(views, v)
	}
	return views
}

// ViewPhases returns the phases of a conclusive answer with their ends.
func ViewPhases(list []bisect.Stretch, phases []bisect.Phase) []PhaseView {
	var views []PhaseView
	for _, p := range phases {
		v := PhaseView{Result: p.Result.String(), From: list[p.First].From.String()}
		if p.Last+1 < len(list) {
			v.Until = list[p.Last+1].From.String()
		}
		views = append(views, v)
	}
	return views
}

// ViewBisect returns the view of the findings of a search.
func ViewBisect(out *bisect.Findings) BisectView {
	list := out.Search.Stretches()
	v := BisectView{
		Find: out.Goal.String(), Conclusive: out.Conclusive(), Assumes: out.Assumes(),
		Candidates: out.Candidates, Inputs: out.Inputs, Judged: out.Judged, Tests: out.Tests, Skipped: out.Skipped,
	}
	if v.Conclusive {
		v.Phases = ViewPhases(list, out.Phases)
	}
	if !v.Conclusive && out.Goal == bisect.Any {
		v.Islands = ViewIslands(list, out)
	}
	if out.Found {
		good, bad := list[out.Good], list[out.Bad]
		v.Good, v.Bad = &good.Last.Seq, &bad.From.Seq
		v.LastGood, v.FirstBad = good.Last.String(), bad.From.String()
		if out.Exact() && v.Conclusive && BeginsGood(out.Conclusion) && bad.From.Offset == 0 {
			v.First = &bad.From.Seq
		}
	}
	if on := out.Onset; on != nil {
		at, step := projection.Millis(on.At), projection.Millis(on.Step)
		v.Moment, v.At, v.ByEntry = on.Bad.String(), &at, &on.ByEntry
		if on.Step > 0 {
			v.Step = &step
		}
	}
	if len(out.Conflicts) > 0 {
		v.Conflict = list[out.Conflicts[0].Index].From.String()
	}
	return v
}

// BeginsGood reports whether the transition that was found is the first one of the range,
// which begins good.
func BeginsGood(c bisect.Conclusion) bool {
	return c.Phases[0] == bisect.Phase{First: 0, Last: c.Good, Result: bisect.Good}
}
