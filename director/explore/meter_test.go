package explore_test

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/explore"
	"github.com/sajou-dev/sajou-go/signal"
)

// facts of one session, gathered from the words and members of its events alone.
type facts struct {
	turns             int
	landed            map[string]string // the assurance, by beat
	turn              map[string]int    // of the landing
	missed, directed  map[string]bool
	overdue, unclear  map[string]int
	offered, declined map[string]bool
	selected          map[string]string // the option, by choice point
	flags             map[string]bool
}

func factsOf(records []signal.Record) facts {
	f := facts{
		landed: map[string]string{}, turn: map[string]int{}, missed: map[string]bool{}, directed: map[string]bool{},
		overdue: map[string]int{}, unclear: map[string]int{}, offered: map[string]bool{}, declined: map[string]bool{},
		selected: map[string]string{}, flags: map[string]bool{},
	}
	for _, r := range records {
		v := r.Value
		switch r.Word {
		case episode.TurnEvaluated:
			f.turns++
		case episode.GuidanceIssued:
			if d, ok := v.Get("directive"); ok {
				f.directed[d.TextOf("beat")] = true
				if d.TextOf("urgency") == "overdue" {
					f.overdue[d.TextOf("beat")]++
				}
			}
		case episode.VerdictRecorded:
			if v.TextOf("verdict") == "unclear" && v.TextOf("beat") != "" {
				f.unclear[v.TextOf("beat")]++
			}
		case episode.BeatLanded:
			f.landed[v.TextOf("beat")], f.turn[v.TextOf("beat")] = v.TextOf("assurance"), int(v.IntOf("turn"))
		case episode.BeatMissed:
			f.missed[v.TextOf("beat")] = true
		case episode.ChoiceOffered:
			f.offered[v.TextOf("choice_point")] = true
		case episode.ChoiceDeclined:
			f.declined[v.TextOf("choice_point")] = true
		case episode.ChoiceSelected:
			f.selected[v.TextOf("choice_point")] = v.TextOf("choice")
		case episode.FlagSet:
			f.flags[v.TextOf("flag")] = true
		}
	}
	return f
}

// reportOf measures sessions of one episode in the plainest way. It leaves
// BeatReport.NeverEligible to its caller.
func reportOf(e *episode.Episode, sessions []facts) explore.Report {
	r := explore.Report{Episode: e.ID, Digest: e.Digest(), Sessions: len(sessions), Possible: 1, Choices: []explore.ChoiceReport{}}
	rate := func(to *explore.Rate, hit bool) {
		to.Of++
		if hit {
			to.N++
		}
	}
	for i := range e.Beats {
		id := e.Beats[i].ID
		b := explore.BeatReport{Beat: id}
		var late []int
		for _, f := range sessions {
			assurance, landed := f.landed[id]
			rate(&b.Landed, landed)
			if landed {
				rate(&b.Verified, assurance == "verified")
				rate(&b.Assumed, assurance == "assumed")
				rate(&b.Forced, assurance == "forced")
				late = append(late, f.turn[id]-e.Beats[i].Target)
			}
			if f.missed[id] {
				b.Missed++
			}
			b.Overdue += f.overdue[id]
			b.Unclear += f.unclear[id]
			if f.directed[id] {
				rate(&r.Delivery, landed && assurance != "forced")
			}
		}
		// The nearest rank: the least value that at least so many are not above.
		slices.Sort(late)
		rank := func(share float64) int {
			if late == nil {
				return 0
			}
			return late[int(math.Ceil(share*float64(len(late))))-1]
		}
		b.Median, b.P95 = rank(0.5), rank(0.95)
		r.Beats = append(r.Beats, b)
	}
	combinations := make([]string, len(sessions))
	for i := range e.Choices {
		point := &e.Choices[i]
		c := explore.ChoiceReport{ChoicePoint: point.ID, Selected: make([]int, len(point.Options))}
		for n, f := range sessions {
			option := f.selected[point.ID]
			combinations[n] += "/" + option
			if !f.offered[point.ID] {
				continue
			}
			c.Offered++
			rate(&r.Relevance, point.Beat >= 0 && f.landed[e.Beats[max(point.Beat, 0)].ID] == "verified")
			rate(&r.Selection, option != "")
			if option != "" {
				rate(&r.MessageAfter, point.Beat < 0)
			} else if f.declined[point.ID] {
				c.Declined++
			}
		}
		for j, o := range point.Options {
			c.Options = append(c.Options, o.ID)
			for _, f := range sessions {
				if f.selected[point.ID] == o.ID {
					c.Selected[j]++
				}
			}
			set := slices.ContainsFunc(sessions, func(f facts) bool { return f.flags[o.SetsFlag] })
			if o.SetsFlag != "" && !set && !slices.Contains(r.NeverSet, o.SetsFlag) {
				r.NeverSet = append(r.NeverSet, o.SetsFlag)
			}
		}
		r.Possible *= len(point.Options) + 1
		r.Choices = append(r.Choices, c)
	}
	slices.Sort(r.NeverSet)
	slices.Sort(combinations)
	r.Seen = len(slices.Compact(combinations))
	for _, f := range sessions {
		r.Turns += f.turns
	}
	return r
}

// The measures of random sessions of two episodes are those of the plainest count of their
// events.
func TestMeterAgainstEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var meter explore.Meter
		want := map[episode.ContentDigest]explore.Report{}
		r := rand.New(rand.NewSource(int64(rapid.IntRange(0, 1<<30).Draw(t, "seed"))))
		for range 2 {
			v, err := signal.ParseValue([]byte(scripts(t)))
			require.NoError(t, err)
			e, err := episode.Compile(v)
			require.NoError(t, err)
			if _, again := want[e.Digest()]; again {
				continue
			}
			var all []facts
			for range rapid.IntRange(1, 22).Draw(t, "sessions") {
				records := randomly(t, r, e, 1+r.Intn(8))
				require.NoError(t, meter.Session(slices.Values(records)))
				all = append(all, factsOf(records))
			}
			want[e.Digest()] = reportOf(e, all)
		}
		got := meter.Reports()
		require.Len(t, got, len(want))
		for i, report := range got {
			if i > 0 {
				require.Less(t, got[i-1].Digest.String(), report.Digest.String())
			}
			expected := want[report.Digest]
			for j, b := range report.Beats {
				// A beat that is directed or lands by itself was eligible.
				if b.NeverEligible {
					require.Zero(t, b.Overdue, b.Beat)
				}
				expected.Beats[j].NeverEligible = b.NeverEligible
			}
			require.Equal(t, expected, report)
			for _, rate := range []explore.Rate{report.Relevance, report.Selection, report.Delivery} {
				share := 0.0
				if rate.Of > 0 {
					share = float64(rate.N) / float64(rate.Of)
				}
				require.InDelta(t, share, rate.Share(), 1e-12)
			}
		}
	})
}
