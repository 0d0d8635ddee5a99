package director

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
)

// Meter says how episodes did over many sessions. It is a function of their
// events alone.
type Meter struct{ episodes map[Digest]*measured }

// Rate is a part of a whole.
type Rate struct{ N, Of int }

// Share returns N/Of, 0 if there is nothing to share.
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

// Report is what is known about one version of an episode.
type Report struct {
	Episode  string
	Digest   Digest
	Sessions int // that played it, or went on with it as a revision
	Turns    int // evaluated
	// Relevance is the share of offered choices that follow a beat found in what
	// the character said; the target is 95 %.
	Relevance Rate
	// Selection is the share of offered choices that were made; 80 %.
	Selection Rate
	// MessageAfter is the share of choices made after which the user still had
	// to type; 0 %.
	MessageAfter Rate
	// Delivery is the share of directed beats that landed by the character's own
	// doing; 90 %.
	Delivery Rate
	Beats    []BeatReport
	Choices  []ChoiceReport
	// NeverSet lists the flags that options set and no session has seen.
	NeverSet []string
	// Seen and Possible count the combinations of answers; Possible stops at
	// math.MaxInt32.
	Seen, Possible int
}

// BeatReport is what is known about one beat.
type BeatReport struct {
	Beat     string
	Landed   Rate // of the sessions
	Verified Rate // of the landings
	Assumed  Rate
	Forced   Rate
	Missed   int // sessions in which it was given up
	Overdue  int // turns that told the character that it must happen now
	Unclear  int // verdicts
	// Median and P95 are of the landed turn less the target, if it has landed.
	Median, P95 int
	// NeverEligible says that it never could have been directed.
	NeverEligible bool
}

// ChoiceReport is what is known about one choice point.
type ChoiceReport struct {
	ChoicePoint string
	Offered     int
	Declined    int
	Options     []string // their ids
	Selected    []int    // by option, in their order
}

type measured struct {
	episode  *Episode
	report   Report
	late     [][]int
	eligible []bool
	flags    map[string]bool
	combined map[string]bool
}

// Session counts the events of one whole session. It returns an error where
// they do not follow each other; what came before is counted.
func (m *Meter) Session(records iter.Seq[Record]) error {
	var s State
	var at *measured
	var directed map[int]bool
	for r := range records {
		old := s.episode
		if (r.Word == EpisodeStarted || r.Word == EpisodeRevised) && at != nil {
			at.end(&s, directed)
			at = nil
		}
		if err := s.Apply(r.Word, r.Value); err != nil {
			if at != nil {
				at.end(&s, directed)
			}
			return err
		}
		if at == nil && s.episode != nil {
			told := directed
			at, directed = m.of(s.episode), map[int]bool{}
			at.report.Sessions++
			// What was told before a revision was told.
			for i := range told {
				if j := s.episode.same(old, i); r.Word == EpisodeRevised && j >= 0 {
					directed[j] = true
				}
			}
		}
		if at == nil {
			continue // declared, and nothing more
		}
		at.event(&s, r, directed)
	}
	if at != nil {
		at.end(&s, directed)
	}
	return nil
}

func (m *Meter) of(e *Episode) *measured {
	if m.episodes == nil {
		m.episodes = map[Digest]*measured{}
	}
	at := m.episodes[e.digest]
	if at == nil {
		at = &measured{
			episode: e, report: Report{Episode: e.ID, Digest: e.digest, Beats: make([]BeatReport, len(e.Beats)), Choices: make([]ChoiceReport, len(e.Choices))},
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
		m.episodes[e.digest] = at
	}
	return at
}

func (a *measured) event(s *State, r Record, directed map[int]bool) {
	switch r.Word {
	case GuidanceIssued:
		if i := s.core.directive; i >= 0 {
			directed[i] = true
			if a.episode.Beats[i].Urgency(s.core.turn) == Overdue {
				a.report.Beats[i].Overdue++
			}
		}
		if s.core.pendingChoice() < 0 {
			for i := range a.eligible {
				a.eligible[i] = a.eligible[i] || s.eligible(&s.core, i)
			}
		}
	case VerdictRecorded:
		id, _ := textOf(r.Value, "beat")
		if verdict, _ := textOf(r.Value, "verdict"); verdict == Unclear.String() {
			if i, ok := a.episode.beats[id]; ok {
				a.report.Beats[i].Unclear++
			}
		}
	case TurnEvaluated:
		a.report.Turns++
	case FlagSet:
		name, _ := textOf(r.Value, "flag")
		a.flags[strings.Clone(name)] = true
	}
}

// end counts what a session has come to: what an attempt that was dropped had
// brought about is not in it.
func (a *measured) end(s *State, directed map[int]bool) {
	var answers []string
	for i := range a.episode.Beats {
		at, b := s.core.beats.at(i), &a.report.Beats[i]
		landed := at.assurance > 0
		b.Landed.count(landed)
		if at.status == statusMissed {
			b.Missed++
		}
		if landed {
			a.late[i] = append(a.late[i], at.landedAt-a.episode.Beats[i].Target)
			b.Verified.count(at.assurance == assuranceVerified)
			b.Assumed.count(at.assurance == assuranceAssumed)
			b.Forced.count(at.assurance == assuranceForced)
		}
		if directed[i] {
			a.report.Delivery.count(landed && at.assurance != assuranceForced)
		}
	}
	for i := range a.episode.Choices {
		at, c, point := s.core.choices.at(i), &a.report.Choices[i], &a.episode.Choices[i]
		if at.status == choiceClosed {
			continue
		}
		c.Offered++
		a.report.Relevance.count(point.Beat >= 0 && s.core.beats.at(point.Beat).assurance == assuranceVerified)
		a.report.Selection.count(at.status == choiceSelected)
		switch at.status {
		case choiceSelected:
			if o := point.option(at.option); o >= 0 {
				c.Selected[o]++
			}
			a.report.MessageAfter.count(point.Beat < 0)
			answers = append(answers, point.ID+"\x00"+at.option)
		case choiceDeclined:
			c.Declined++
		default:
		}
	}
	a.combined[strings.Join(answers, "\x01")] = true
}

// Reports returns what is known, by episode and digest.
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
			// The nearest rank: no value that did not occur.
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
