package director_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// exchange is the input of one turn: the response, the answers and the verdicts.
type exchange struct {
	said, response string
	answer         string // to a beat's choice; "" answers none if the user may type instead
	card           string // the option of a legacy choice, "" leaves it
	raw            string // the raw answer of judges
}

// crash is the point at which a step crashes. The step is then repeated from the log.
type crash int

const (
	none         crash = iota
	beforeAppend       // the decision is lost
	afterAppend        // the decision is in the log, and its caller has no result
)

// logged is a session with a log that survives crashes.
type logged struct {
	t       *rapid.T
	log     []signal.Record
	state   director.State
	crashes []crash // those still to come, one for each step
}

// step appends all records of a decision, or none.
func (l *logged) step(decide func(*director.State) ([]signal.Record, error)) {
	for {
		records, err := decide(&l.state)
		if err != nil && len(records) > 0 {
			l.t.Fatalf("%d records with %v", len(records), err)
		}
		dies := none
		if len(l.crashes) > 0 {
			dies, l.crashes = l.crashes[0], l.crashes[1:]
		}
		if dies == beforeAppend {
			l.recover()
			continue
		}
		l.log = append(l.log, records...)
		if dies == afterAppend {
			l.recover()
			continue
		}
		play(l.t, &l.state, records)
		return
	}
}

// recover rebuilds the state from the log alone.
func (l *logged) recover() {
	l.state = director.State{}
	for _, r := range l.log {
		if r.Word == episode.GuidanceIssued {
			if err := l.state.CheckGuidance(r.Value); err != nil {
				l.t.Fatal(err)
			}
		}
		play(l.t, &l.state, []signal.Record{r})
	}
}

// story plays the exchanges. It returns the guidance, the questions, and the events of
// the log without verdicts that were recorded a second time.
func (l *logged) story(e *episode.Episode, exchanges []exchange) []string {
	var told []string
	l.step(func(s *director.State) ([]signal.Record, error) {
		if s.Episode() != nil {
			return nil, nil // the episode has begun
		}
		return s.Start(e, director.Opening{})
	})
	for i, x := range exchanges {
		n := i + 1
		var section string
		l.step(func(s *director.State) ([]signal.Record, error) {
			in := director.TurnInput{Turn: n, Text: x.said}
			if s.ChoiceLine() != nil {
				in.Text = ""
			}
			g, records, err := s.Guide(in)
			if section != "" && err == nil && section != g.Section() {
				l.t.Fatalf("told once\n%s\nand then\n%s", section, g.Section())
			}
			section = g.Section()
			return records, err
		})
		told = append(told, section)
		l.step(func(s *director.State) ([]signal.Record, error) {
			_, records, err := s.Respond(director.Response{Turn: n, Attempt: 1, Text: x.response})
			return records, err
		})
		questions, err := l.state.Questions(x.response, nil)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, q := range questions {
			told = append(told, q.Prompt)
			l.step(func(s *director.State) ([]signal.Record, error) {
				_, records, err := s.Judge(director.Verdict{Turn: q.Turn, Attempt: q.Attempt, Subject: q.Subject, Try: q.Try, Raw: x.raw})
				return records, err
			})
		}
		if len(l.state.Awaiting()) > 0 {
			l.step(func(s *director.State) ([]signal.Record, error) {
				_, records, err := s.Expire("")
				return records, err
			})
		}
		for _, o := range l.state.Open() {
			option := x.card
			if o.Beat != "" {
				option = x.answer
			}
			if option == "" && (o.Beat == "" || e.Policy.Free) {
				continue
			}
			l.step(func(s *director.State) ([]signal.Record, error) {
				_, records, err := s.Choose(o.ID, max(option, "x"))
				return records, err
			})
		}
	}
	for _, r := range l.log {
		if inactive, _ := r.Value.Get("inactive"); inactive == nil {
			told = append(told, fmt.Sprint(r.Word, " ", r.Value))
		}
	}
	return told
}

// A session that crashes before or after its decisions are written, any number of
// times, and is continued from its log, gives the same story.
func TestCrashAndRetry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := authored(t)
		option := rapid.SampledFrom([]string{"x", "y", ""})
		exchanges := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) exchange {
			return exchange{
				said: rapid.StringMatching(`(w[0-6] ){1,2}`).Draw(t, "said"), response: rapid.StringMatching(`(w[0-6] ){0,4}`).Draw(t, "response"),
				answer: option.Draw(t, "answer"), card: option.Draw(t, "card"), raw: rapid.SampledFrom([]string{"YES", "NO", "who knows"}).Draw(t, "raw"),
			}
		}), 1, 8).Draw(t, "exchanges")
		whole := logged{t: t}
		want := whole.story(e, exchanges)
		broken := logged{t: t, crashes: rapid.SliceOfN(rapid.SampledFrom([]crash{none, none, beforeAppend, afterAppend}), 0, 40).Draw(t, "crashes")}
		crashes := len(broken.crashes) - len(slices.DeleteFunc(slices.Clone(broken.crashes), func(c crash) bool { return c != none }))
		if diff := cmp.Diff(want, broken.story(e, exchanges)); diff != "" {
			t.Fatalf("after up to %d crashes the story is another (-whole +broken)\n%s", crashes, diff)
		}
		if !bytes.Equal(whole.state.AppendState(nil), broken.state.AppendState(nil)) {
			t.Fatal("the story is the same, the state is not")
		}
	})
}
