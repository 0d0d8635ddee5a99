package sajou

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/signal"
)

// Difference is something that is otherwise in another playing of the same
// turns.
type Difference struct {
	Play, Turn int
	// Attempt is that of the response that a verdict is about; else 0.
	Attempt int
	// What is "verdict", "directed", "landed", "held", "missed", "forced",
	// "choice", "flag", "objective", "prop" or "episode".
	What string
	// About is the id of the beat or of whatever it is.
	About string
	// Was and Now say how it is, "" if it is not: a verdict "yes (semantic)", a
	// landing "verified by keyword, heard in turn 4".
	Was, Now string
	// Says and SaysNow are the raw answers to a question.
	Says, SaysNow string
}

// Differences compares what two sessions played, turn by turn: what was
// directed, what the verdicts were, what landed, was chosen and set.
func Differences(ctx context.Context, was, now *Replay) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		nextWas, stopWas := iter.Pull2(was.wholeTurns(ctx))
		defer stopWas()
		nextNow, stopNow := iter.Pull2(now.wholeTurns(ctx))
		defer stopNow()
		a, errA, moreA := nextWas()
		b, errB, moreB := nextNow()
		for moreA || moreB {
			if err := cmp.Or(errA, errB); err != nil {
				yield(Difference{}, err)
				return
			}
			order := cmp.Or(cmp.Compare(a.Play, b.Play), cmp.Compare(a.Number, b.Number))
			switch {
			case !moreA:
				order = 1
			case !moreB:
				order = -1
			}
			var before, after PlayedTurn
			if order <= 0 {
				before = a
			}
			if order >= 0 {
				after = b
			}
			for _, d := range compareTurns(&before, &after) {
				if !yield(d, nil) {
					return
				}
			}
			if order <= 0 {
				a, errA, moreA = nextWas()
			}
			if order >= 0 {
				b, errB, moreB = nextNow()
			}
		}
	}
}

func (r *Replay) wholeTurns(ctx context.Context) iter.Seq2[PlayedTurn, error] {
	return func(yield func(PlayedTurn, error) bool) {
		travel, err := r.Open()
		if err != nil {
			yield(PlayedTurn{}, err)
			return
		}
		for t, err := range r.Turns(ctx, 1, travel.Head().Seq) {
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// fact is a difference's key, outcome what there is at it.
type fact struct {
	what, about string
	attempt     int
}

type outcome struct {
	text, raw string
	at        int // its place in the turn
}

// compareTurns tells the differences in the order in which they came about.
func compareTurns(was, now *PlayedTurn) []Difference {
	a, b := was.facts(), now.facts()
	keys := slices.Collect(maps.Keys(a))
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	place := func(k fact) int {
		if o, ok := a[k]; ok {
			return o.at
		}
		return b[k].at
	}
	slices.SortFunc(keys, func(x, y fact) int {
		return cmp.Or(place(x)-place(y), cmp.Compare(x.what, y.what), cmp.Compare(x.about, y.about), x.attempt-y.attempt)
	})
	play, number := max(was.Play, now.Play), max(was.Number, now.Number)
	var ds []Difference
	for _, k := range keys {
		x, y := a[k], b[k]
		if x.text != y.text {
			ds = append(ds, Difference{play, number, k.attempt, k.what, k.about, x.text, y.text, x.raw, y.raw})
		}
	}
	return ds
}

// facts returns what a turn came to. What came of a response that was dropped is
// not among them, but for the verdicts about it.
func (t *PlayedTurn) facts() map[fact]outcome {
	all, verdicts := map[fact]outcome{}, map[fact]outcome{}
	var before map[fact]outcome // of the response
	for i := range t.Events {
		e := &t.Events[i]
		v := e.Value
		put := func(what, about, text string) { all[fact{what, about, 0}] = outcome{text, "", i} }
		switch e.Word {
		case director.ResponseRecorded:
			before = maps.Clone(all)
		case director.AttemptDropped:
			if before != nil {
				all, before = before, nil
			}
		case director.VerdictRecorded:
			k, o := verdictFact(v)
			if o.at = i; o.text != "" {
				verdicts[k] = o
			}
		case director.GuidanceIssued:
			for k := range all {
				if k.what == "directed" {
					delete(all, k)
				}
			}
			if d, ok := v.Get("directive"); ok {
				put("directed", textMember(d, "beat"), textMember(d, "urgency"))
			}
		case director.BeatLanded:
			put("landed", textMember(v, "beat"), landingText(v))
		case director.BeatHeld:
			put("held", textMember(v, "beat"), landingText(v))
		case director.BeatForced:
			put("forced", textMember(v, "beat"), textMember(v, "line"))
		case director.BeatMissed:
			put("missed", textMember(v, "beat"), textMember(v, "cause"))
		case director.ChoiceOffered:
			put("choice", textMember(v, "choice_point"), "offered")
		case director.ChoiceSelected:
			put("choice", textMember(v, "choice_point"), "selected "+textMember(v, "choice"))
		case director.ChoiceDeclined:
			put("choice", textMember(v, "choice_point"), "declined")
		case director.FlagSet:
			put("flag", textMember(v, "flag"), "set by "+causeText(v))
		case director.FlagCleared:
			put("flag", textMember(v, "flag"), "cleared by "+causeText(v))
		case director.ObjectiveCompleted:
			put("objective", textMember(v, "objective"), "completed by "+textMember(v, "cause"))
		case director.ObjectiveFailed:
			put("objective", textMember(v, "objective"), "failed by "+textMember(v, "cause"))
		case director.EpisodeFailed:
			put("episode", "", "failed by "+textMember(v, "cause"))
		case director.PropRevealed:
			put("prop", textMember(v, "prop"), "revealed by "+textMember(v, "cause"))
		}
	}
	maps.Copy(all, verdicts)
	return all
}

func verdictFact(v signal.Value) (fact, outcome) {
	if boolMember(v, "again") || boolMember(v, "inactive") {
		return fact{}, outcome{}
	}
	s := subjectMember(v)
	raw := textMember(v, "raw")
	if failure := textMember(v, "failure"); failure != "" {
		raw = "failed: " + failure
	}
	return fact{"verdict", s.Kind.String() + ":" + s.ID, intMember(v, "attempt")},
		outcome{textMember(v, "verdict") + " (" + textMember(v, "method") + ")", raw, 0}
}

func landingText(v signal.Value) string {
	return fmt.Sprintf("%s by %s, heard in turn %s", textMember(v, "assurance"), textMember(v, "method"), strconv.Itoa(intMember(v, "heard_at_turn")))
}

// causeText returns what set a flag. Of what was heard the number of its entry is
// left out: two sessions do not have the same.
func causeText(v signal.Value) string {
	cause := textMember(v, "cause")
	if kind, _, ok := strings.Cut(cause, ":"); ok && boolMember(v, "outside") {
		return "a " + kind
	}
	return cause
}
