package history

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// Difference is one fact that differs between two playings of the same turns.
type Difference struct {
	Play, Turn int
	// Attempt is that of the response that a verdict is about; otherwise 0.
	Attempt int
	// What is "verdict", "directed", "landed", "held", "missed", "forced",
	// "choice", "flag", "objective", "prop" or "episode".
	What string
	// About is the id of the beat, choice, flag, objective or prop.
	About string
	// Was and Now describe the fact in each playing, "" if it is missing there: a
	// verdict as "yes (semantic)", a landing as "verified by keyword, heard in turn 4".
	Was, Now string
	// Says and SaysNow are the raw answers to a question.
	Says, SaysNow string
}

// Differences compares two sessions turn by turn: the directives, the verdicts, the
// landings, the choices and the flags. Turns that cannot be read end the sequence with
// an error.
func Differences(ctx context.Context, was, now *replay.Replay) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		nextWas, stopWas := iter.Pull2(Turns(ctx, was, 1, was.Head().Seq))
		defer stopWas()
		nextNow, stopNow := iter.Pull2(Turns(ctx, now, 1, now.Head().Seq))
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

// fact is the key of a difference; a playing has one outcome at most for each.
type fact struct {
	what, about string
	attempt     int
}

type outcome struct {
	text, raw string
	at        int // its place in the turn
}

// compareTurns returns the differences in the order in which they came about.
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

// facts returns the outcome of a turn. Of a response that was dropped, only the
// verdicts are among them.
func (t *PlayedTurn) facts() map[fact]outcome {
	all, verdicts := map[fact]outcome{}, map[fact]outcome{}
	var before map[fact]outcome // of the response
	for i := range t.Events {
		e := &t.Events[i]
		v := e.Value
		put := func(what, about, text string) { all[fact{what, about, 0}] = outcome{text, "", i} }
		switch e.Word {
		case episode.ResponseRecorded:
			before = maps.Clone(all)
		case episode.AttemptDropped:
			if before != nil {
				all, before = before, nil
			}
		case episode.VerdictRecorded:
			k, o := verdictFact(v)
			if o.at = i; o.text != "" {
				verdicts[k] = o
			}
		case episode.GuidanceIssued:
			for k := range all {
				if k.what == "directed" {
					delete(all, k)
				}
			}
			if d, ok := v.Get("directive"); ok {
				put("directed", d.TextOf("beat"), d.TextOf("urgency"))
			}
		case episode.BeatLanded:
			put("landed", v.TextOf("beat"), landingText(v))
		case episode.BeatHeld:
			put("held", v.TextOf("beat"), landingText(v))
		case episode.BeatForced:
			put("forced", v.TextOf("beat"), v.TextOf("line"))
		case episode.BeatMissed:
			put("missed", v.TextOf("beat"), v.TextOf("cause"))
		case episode.ChoiceOffered:
			put("choice", v.TextOf("choice_point"), "offered")
		case episode.ChoiceSelected:
			put("choice", v.TextOf("choice_point"), "selected "+v.TextOf("choice"))
		case episode.ChoiceDeclined:
			put("choice", v.TextOf("choice_point"), "declined")
		case episode.FlagSet:
			put("flag", v.TextOf("flag"), "set by "+causeText(v))
		case episode.FlagCleared:
			put("flag", v.TextOf("flag"), "cleared by "+causeText(v))
		case episode.ObjectiveCompleted:
			put("objective", v.TextOf("objective"), "completed by "+v.TextOf("cause"))
		case episode.ObjectiveFailed:
			put("objective", v.TextOf("objective"), "failed by "+v.TextOf("cause"))
		case episode.EpisodeFailed:
			put("episode", "", "failed by "+v.TextOf("cause"))
		case episode.PropRevealed:
			put("prop", v.TextOf("prop"), "revealed by "+v.TextOf("cause"))
		}
	}
	maps.Copy(all, verdicts)
	return all
}

func verdictFact(v signal.Value) (fact, outcome) {
	if v.BoolOf("again") || v.BoolOf("inactive") {
		return fact{}, outcome{}
	}
	s := subjectMember(v)
	raw := v.TextOf("raw")
	if failure := v.TextOf("failure"); failure != "" {
		raw = "failed: " + failure
	}
	return fact{"verdict", s.Kind.String() + ":" + s.ID, int(v.IntOf("attempt"))},
		outcome{v.TextOf("verdict") + " (" + v.TextOf("method") + ")", raw, 0}
}

func landingText(v signal.Value) string {
	return fmt.Sprintf("%s by %s, heard in turn %s", v.TextOf("assurance"), v.TextOf("method"), strconv.Itoa(int(v.IntOf("heard_at_turn"))))
}

// causeText returns the cause of a change to a flag. For an external event it leaves
// out the number of the entry, which two sessions do not share.
func causeText(v signal.Value) string {
	cause := v.TextOf("cause")
	if kind, _, ok := strings.Cut(cause, ":"); ok && v.BoolOf("outside") {
		if kind == episode.OfEffect.String() {
			return "an " + kind
		}
		return "a " + kind
	}
	return cause
}
