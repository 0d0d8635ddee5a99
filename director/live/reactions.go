package live

import (
	"fmt"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/writer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// maxDepth bounds how often signals set flags whose events become signals again. An
// episode's own rules cannot form a cycle; together with choreographies they can.
const maxDepth = 8

// Reactions connects the director with the rest of a session, where its episode says
// so: the director's events become signals, and signals and effects set its flags. A
// reaction follows its cause at once, in the same batch. It is the session's
// [writer.Reactor], and does nothing where no episode with rules is played.
type Reactions struct {
	Session string // its name, for errors
}

var _ writer.Reactor = (*Reactions)(nil)

// Reacts reports whether the episode in play has rules about anything else.
func (r *Reactions) Reacts(f *projection.Fold) bool {
	e := session.DirectorOf(f).Episode()
	return e != nil && len(e.Signals)+len(e.FlagRules) > 0
}

// React returns the drafts, each followed by its reactions.
func (r *Reactions) React(t *writer.Turn, drafts []eventlog.Draft) ([]eventlog.Draft, error) {
	own := slices.ContainsFunc(drafts, func(d eventlog.Draft) bool { return d.Kind == eventlog.KindBeat })
	if !own && !r.Reacts(t.Fold()) {
		return drafts, nil
	}
	b := &reacting{session: r.Session, turn: t, state: *session.DirectorOf(t.Fold())}
	for i := range drafts {
		if err := b.take(drafts[i]); err != nil {
			return nil, err
		}
	}
	return b.drafts, nil
}

// reacting extends one batch. It applies the batch to a copy of the director's state,
// because nothing is folded before the batch is complete.
type reacting struct {
	session string
	turn    *writer.Turn
	state   director.State
	drafts  []eventlog.Draft
}

// add adds a draft and returns the number of its entry.
func (b *reacting) add(d eventlog.Draft) eventlog.Seq {
	b.drafts = append(b.drafts, d)
	return b.turn.Fold().Head().Seq + eventlog.Seq(len(b.drafts))
}

// take adds a draft of the batch and its reactions.
func (b *reacting) take(d eventlog.Draft) error {
	switch d.Kind {
	case eventlog.KindBeat, eventlog.KindDefine:
		word, v, err := session.SplitWord(d.Data)
		if err != nil {
			return err
		}
		if d.Kind == eventlog.KindDefine && word != episode.Word {
			b.add(d)
			return nil
		}
		return b.beat(d, signal.Record{Word: word, Value: v}, 0)
	case eventlog.KindSignal:
		seq := b.add(d)
		sig, err := signal.DecodeSound(d.Data)
		if err != nil || sig.Problem != "" {
			return nil //nolint:nilerr // an unreadable signal is recorded and has no reaction
		}
		return b.heard(d.At, episode.OfSignal, sig.Type, sig.Payload, seq, 0)
	case eventlog.KindEffect:
		seq := b.add(d)
		word, v, err := session.SplitWord(d.Data)
		if err != nil || word != agents.WordEffect {
			return err
		}
		kind, _ := v.Get("kind")
		payload, _ := v.Get("payload")
		name, _ := kind.Text()
		return b.heard(d.At, episode.OfEffect, name, slices.Clone(payload), seq, 0)
	default:
		b.add(d)
		return nil
	}
}

// beat adds one event of the director and the signals that it becomes.
func (b *reacting) beat(d eventlog.Draft, r signal.Record, depth int) error {
	b.add(d)
	if r.Word == session.WordMessage {
		return nil
	}
	if err := b.state.Apply(r.Word, r.Value); err != nil {
		return err
	}
	for _, cue := range b.state.Signals(r) {
		sig := b.signal(d.At, cue)
		if err := sig.Validate(); err != nil {
			return fmt.Errorf("sajou: session %q: the signal that %s becomes: %w", b.session, r.Word, err)
		}
		seq := b.add(eventlog.Draft{Kind: eventlog.KindSignal, At: d.At, Data: sig.Append(nil)})
		if err := b.heard(d.At, episode.OfSignal, sig.Type, sig.Payload, seq, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// signal makes the signal of a cue. Its id is the number of its entry.
func (b *reacting) signal(at time.Duration, cue director.Cue) *signal.Signal {
	if origin, ok := b.turn.Origin(); ok {
		at += time.Duration(origin)
	}
	return &signal.Signal{
		ID: session.CueID(b.turn.Fold().Head().Seq + eventlog.Seq(len(b.drafts)) + 1), Type: cue.Type, Timestamp: signal.Int(at.Milliseconds()),
		Source: session.CueSource, Payload: cue.Payload,
	}
}

// heard adds the events by which the director's rules react to the entry added last.
func (b *reacting) heard(at time.Duration, kind episode.EventKind, name string, payload signal.Value, seq eventlog.Seq, depth int) error {
	if depth > maxDepth {
		return nil
	}
	records, err := b.state.ExternalEvent(kind, name, payload, fmt.Sprintf("%v:%d", kind, seq))
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := b.beat(draftOf(at, r), r, depth); err != nil {
			return err
		}
	}
	return nil
}

// draftOf returns the draft of an event, a message or the declaration of an episode.
func draftOf(at time.Duration, r signal.Record) eventlog.Draft {
	kind := eventlog.KindBeat
	if director.Declares(r) {
		kind = eventlog.KindDefine
	}
	return eventlog.Draft{Kind: kind, At: at, Data: session.AppendWord(nil, r.Word, r.Value)}
}
