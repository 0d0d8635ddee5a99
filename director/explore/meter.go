package explore

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// Meter measures how episodes played in many sessions. Its result is a function of their
// events. The measures and targets are those of the beat contract ("Success Metrics").
type Meter struct {
	episodes map[episode.ContentDigest]*measured
}

// Rate is a share: N of Of.
type Rate struct{ N, Of int }

// Share returns N/Of, 0 if Of is 0.
func (r Rate) Share() float64 {
	if r.Of == 0 {
		return 0
	}
	return float64(r.N) / float64(r.Of)
}

func (r *Rate) count(hit bool) {
	r.Of++
	if hit {
		r.N++
	}
}

// Report is the measurement of one version of an episode.
type Report struct {
	Episode  string
	Digest   episode.ContentDigest
	Sessions int // sessions that started it, or revised to it
	Turns    int // evaluated turns
	// Relevance is the share of offered choices that follow a beat that was found in
	// the character's response. The target is 95 %.
	Relevance Rate
	// Selection is the share of offered choices that were made. The target is 80 %.
	Selection Rate
	// MessageAfter is the share of choices made after which the user still had to
	// type. The target is 0 %.
	MessageAfter Rate
	// Delivery is the share of directed beats that landed without being forced. The
	// target is 90 %.
	Delivery Rate
	Beats    []BeatReport
	Choices  []ChoiceReport
	// NeverSet holds the flags that options set and that no session has set.
	NeverSet []string
	// Seen and Possible count the combinations of answers; Possible is at most
	// math.MaxInt32.
	Seen, Possible int
}

// BeatReport is the measurement of one beat.
type BeatReport struct {
	Beat     string
	Landed   Rate // of the sessions
	Verified Rate // of the landings
	Assumed  Rate
	Forced   Rate
	Missed   int // sessions in which it was given up
	Overdue  int // turns that directed it as overdue
	Unclear  int // verdicts
	// Median and P95 are those of the landed turn minus the target, if it landed.
	Median, P95 int
	// NeverEligible reports that it was eligible in no turn.
	NeverEligible bool
}

// ChoiceReport is the measurement of one choice point.
type ChoiceReport struct {
	ChoicePoint string
	Offered     int
	Declined    int
	Options     []string // their ids
	Selected    []int    // by option, in their order
}

type measured struct {
	episode  *episode.Episode
	report   Report
	late     [][]int
	eligible []bool
	flags    map[string]bool
	combined map[string]bool
}

// Session counts the events of one whole session. It stops with an error at an event that
// cannot follow; the events before it are counted.
func (m *Meter) Session(records iter.Seq[signal.Record]) error {
	var s director.State
	var at *measured
	var directed map[int]bool
	for r := range records {
		old := s.Episode()
		if (r.Word == episode.EpisodeStarted || r.Word == episode.EpisodeRevised) && at != nil {
			at.end(&s, directed)
			at = nil
		}
		if err := s.Apply(r.Word, r.Value); err != nil {
			if at != nil {
				at.end(&s, directed)
			}
			return err
		}
		if at == nil && s.Episode() != nil {
			told := directed
			at, directed = m.of(s.Episode()), map[int]bool{}
			at.report.Sessions++
			// A beat that was directed before a revision counts as directed after it.
			for i := range told {
				if j := s.Episode().SameBeat(old, i); r.Word == episode.EpisodeRevised && j >= 0 {
					directed[j] = true
				}
			}
		}
		if at == nil {
			continue // the episode was declared and has not started
		}
		at.event(&s, r, directed)
	}
	if at != nil {
		at.end(&s, directed)
	}
	return nil
}

func (m *Meter) of(e *episode.Episode) *measured {
	if m.episodes == nil {
		m.episodes = map[episode.ContentDigest]*measured{}
	}
	at := m.episodes[e.Digest()]
	if at == nil {
		at = &measured{
			episode: e, report: Report{Episode: e.ID, Digest: e.Digest(), Beats: make([]BeatReport, len(e.Beats)), Choices: make([]ChoiceReport, len(e.Choices))},
			late: make([][]int, len(e.Beats)), eligible: make([]bool, len(e.Beats)), flags: map[string]bool{}, combined: map[string]bool{},
		}
		for i := range e.Beats {
			at.report.Beats[i].Beat = e.Beats[i].ID
		}
		for i := range e.Choices {
			c := ChoiceReport{ChoicePoint: e.Choices[i].ID, Selected: make([]int, len(e.Choices[i].Options))}
			for _, o := range e.Choices[i].Options {
				c.Options = append(c.Options, o.ID)
			}
			at.report.Choices[i] = c
		}
		m.episodes[e.Digest()] = at
	}
	return at
}

func (a *measured) event(s *director.State, r signal.Record, directed map[int]bool) {
	switch r.Word {
	case episode.GuidanceIssued:
		if i, ok := s.Directed(); ok {
			directed[i] = true
			if a.episode.Beats[i].Urgency(s.Turn()) == episode.Overdue {
				a.report.Beats[i].Overdue++
			}
		}
		if !s.ChoicePending() {
			for i := range a.eligible {
				a.eligible[i] = a.eligible[i] || s.Eligible(i)
			}
		}
	case episode.VerdictRecorded:
		id, _ := r.Value.Member("beat").Text()
		if verdict, _ := r.Value.Member("verdict").Text(); verdict == director.Unclear.String() {
			if i, ok := a.episode.BeatIndex(id); ok {
				a.report.Beats[i].Unclear++
			}
		}
	case episode.TurnEvaluated:
		a.report.Turns++
	case episode.FlagSet:
		name, _ := r.Value.Member("flag").Text()
		a.flags[strings.Clone(name)] = true
	}
}

// end counts the state at the end of a session or before a revision. The effects of
// dropped attempts are not in the state, so they do not count.
func (a *measured) end(s *director.State, directed map[int]bool) {
	var answers []string
	for i := range a.episode.Beats {
		at, b := s.BeatAt(i), &a.report.Beats[i]
		landed := at.Assurance != ""
		b.Landed.count(landed)
		if at.Missed {
			b.Missed++
		}
		if landed {
			a.late[i] = append(a.late[i], at.LandedAt-a.episode.Beats[i].Target)
			b.Verified.count(at.Assurance == director.Verified)
			b.Assumed.count(at.Assurance == director.Assumed)
			b.Forced.count(at.Assurance == director.Forced)
		}
		if directed[i] {
			a.report.Delivery.count(landed && at.Assurance != director.Forced)
		}
	}
	for i := range a.episode.Choices {
		at, c, point := s.ChoiceAt(i), &a.report.Choices[i], &a.episode.Choices[i]
		if !at.Offered {
			continue
		}
		c.Offered++
		a.report.Relevance.count(point.Beat >= 0 && s.BeatAt(point.Beat).Assurance == director.Verified)
		a.report.Selection.count(at.Option != "")
		switch {
		case at.Option != "":
			if o := point.OptionIndex(at.Option); o >= 0 {
				c.Selected[o]++
			}
			a.report.MessageAfter.count(point.Beat < 0)
			answers = append(answers, point.ID+"\x00"+at.Option)
		case at.Declined:
			c.Declined++
		}
	}
	a.combined[strings.Join(answers, "\x01")] = true
}

// Reports returns the reports, ordered by episode and digest.
func (m *Meter) Reports() []Report {
	var all []Report
	for _, a := range m.episodes {
		all = append(all, a.done())
	}
	slices.SortFunc(all, func(x, y Report) int {
		return cmp.Or(strings.Compare(x.Episode, y.Episode), slices.Compare(x.Digest[:], y.Digest[:]))
	})
	return all
}

func (a *measured) done() Report {
	r := a.report
	r.Beats = slices.Clone(r.Beats)
	for i := range r.Beats {
		r.Beats[i].NeverEligible = !a.eligible[i]
		if late := slices.Sorted(slices.Values(a.late[i])); len(late) > 0 {
			// The nearest rank, so that the result is a value that occurred.
			r.Beats[i].Median, r.Beats[i].P95 = late[(len(late)-1)/2], late[(len(late)*95+99)/100-1]
		}
	}
	never := map[string]bool{}
	r.Seen, r.Possible = len(a.combined), 1
	for i := range a.episode.Choices {
		point := &a.episode.Choices[i]
		r.Possible = min(r.Possible*(len(point.Options)+1), math.MaxInt32)
		for _, o := range point.Options {
			if o.SetsFlag != "" && !a.flags[o.SetsFlag] {
				never[o.SetsFlag] = true
			}
		}
	}
	for name := range never {
		r.NeverSet = append(r.NeverSet, name)
	}
	slices.Sort(r.NeverSet)
	return r
}
