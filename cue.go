package sajou

import (
	"fmt"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

// This file joins the director with the rest of a session, where its episode
// says so: its events become signals, and signals and effects set its flags. What
// comes of an entry stands right behind it, in the same batch.

// cueSource is the source of signals that come of the director's events.
const cueSource = "director"

// maxEchoes bounds how long signals set flags that become signals again. An
// episode's own rules cannot go round in circles; this is for what they do
// together with choreographies that nobody thought of.
const maxEchoes = 8

// prompter drafts entries with what comes of them. It looks ahead on a copy of
// the director, since nothing is folded before the batch is whole.
type prompter struct {
	session *Session
	state   director.State
	at      *position
}

// prompter returns who drafts at p. It is called in a turn.
func (s *Session) prompter(p *position) *prompter {
	return &prompter{s, *DirectorOf(s.fold), p} // Begin has looked
}

// hasRules reports whether the episode in play has rules about anything else:
// only then does anybody have to be asked.
func hasRules(f *projection.Fold) bool {
	e := DirectorOf(f).Episode()
	return e != nil && len(e.Signals)+len(e.FlagRules) > 0
}

// seq returns the number that the next draft will have.
func (p *prompter) seq() eventlog.Seq {
	return p.at.seq + eventlog.Seq(len(p.session.scratch.drafts)) + 1
}

// beats drafts events of the director's, and the signals that they become.
func (p *prompter) beats(records []director.Record, echo int) error {
	c := &p.session.scratch
	for _, r := range records {
		kind := eventlog.KindBeat
		if r.Declares() {
			kind = eventlog.KindDefine
		}
		c.data = appendWord(c.data, r.Word, r.Value)
		c.add(kind, p.at.at)
		if r.Word == wordMessage {
			continue
		}
		if err := p.state.Apply(r.Word, r.Value); err != nil {
			return err
		}
		for _, cue := range p.state.Signals(r) {
			sig := p.signal(cue)
			if err := sig.Validate(); err != nil {
				return fmt.Errorf("sajou: session %q: the signal that %s becomes: %w", p.session.Name(), r.Word, err)
			}
			seq := p.seq()
			c.data = sig.Append(c.data)
			c.add(eventlog.KindSignal, p.at.at)
			if err := p.heard(director.OfSignal, sig.Type, sig.Payload, seq, echo+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// signal makes the signal of a cue. Its id is the number of its entry.
func (p *prompter) signal(cue director.Cue) *signal.Signal {
	at := p.at.at
	if p.at.time.hasOrigin {
		at += time.Duration(p.at.time.origin)
	}
	return &signal.Signal{
		ID: fmt.Sprintf("cue-%d", p.seq()), Type: cue.Type, Timestamp: signal.Int(at.Milliseconds()),
		Source: cueSource, Payload: cue.Payload,
	}
}

// heard drafts what the director's rules say about the entry drafted last.
func (p *prompter) heard(kind director.EventKind, name string, payload signal.Value, seq eventlog.Seq, echo int) error {
	if echo > maxEchoes {
		return nil
	}
	records, err := p.state.Heard(kind, name, payload, fmt.Sprintf("%v:%d", kind, seq))
	if err != nil || len(records) == 0 {
		return err
	}
	return p.beats(records, echo)
}

// effects drafts records of the agents' world, each with what comes of it.
func (p *prompter) effects(records []agents.Record) error {
	c := &p.session.scratch
	for _, r := range records {
		seq := p.seq()
		c.data = appendWord(c.data, r.Word, r.Value)
		c.add(eventlog.KindEffect, p.at.at)
		if r.Word != agents.WordEffect {
			continue
		}
		kind, _ := r.Value.Get("kind")
		payload, _ := r.Value.Get("payload")
		name, _ := kind.Text()
		if err := p.heard(director.OfEffect, name, slices.Clone(payload), seq, 0); err != nil {
			return err
		}
	}
	return nil
}
