package fork

import (
	"fmt"
	"sort"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// numbering translates the sequence numbers of the parent's world into those of the fork's.
type numbering struct {
	last  uint64 // of the parent
	moved []moved
}

// moved says that from a number on the fork's numbers differ by delta.
type moved struct {
	from  uint64
	delta int64
}

// saw notes an entry that both worlds have.
func (n *numbering) saw(e *eventlog.Entry) {
	if seq := globalSeq(e); seq > 0 {
		n.last = seq
	}
}

// note notes that the fork's number of the parent's effect seq, or of the one before it if
// the fork lacks it, is now.
func (n *numbering) note(seq, now uint64) {
	n.last = max(n.last, seq)
	n.set(seq, int64(now)-int64(seq))
}

// inserted notes an effect behind the last one that the parent has not.
func (n *numbering) inserted() { n.set(n.last+1, n.delta()+1) }

func (n *numbering) delta() int64 {
	if len(n.moved) == 0 {
		return 0
	}
	return n.moved[len(n.moved)-1].delta
}

func (n *numbering) set(from uint64, delta int64) {
	if delta != n.delta() {
		n.moved = append(n.moved, moved{from, delta})
	}
}

// of returns the fork's number of a number of the parent.
func (n *numbering) of(seq uint64) uint64 {
	i := sort.Search(len(n.moved), func(i int) bool { return n.moved[i].from > seq })
	if i == 0 {
		return seq
	}
	return uint64(max(int64(seq)+n.moved[i-1].delta, 0))
}

// globalSeq returns the number of the effect of an entry, 0 if it has none.
func globalSeq(e *eventlog.Entry) uint64 {
	r, err := session.WorldRecordOf(e)
	if err != nil || r.Word != agents.WordEffect {
		return 0
	}
	return uint64(max(r.Value.IntOf("global_seq"), 0))
}

// forget notes that the fork lacks an effect of the parent.
func (w *walk) forget(was *eventlog.Entry) {
	if seq := globalSeq(was); seq > 0 {
		w.numbers.note(seq, session.WorldOf(w.fold).Seq())
	}
}

// given applies an effect entry that was set or inserted. It must be possible where it is.
func (w *walk) given(e *eventlog.Entry) error {
	r, err := session.WorldRecordOf(e)
	if err != nil {
		return fmt.Errorf("%w: entry %d: %w", variant.ErrChange, e.Seq, err)
	}
	core := session.WorldOf(w.fold)
	if r.Word == agents.WordEffect {
		records, reason := w.decided(e.At, r)
		if reason != "" {
			return fmt.Errorf("%w: entry %d cannot happen: %s", variant.ErrChange, e.Seq, reason)
		}
		r = records
	}
	before := core.Seq()
	if err := w.record(e, r); err != nil {
		return err
	}
	if w.applied.Err != nil {
		return fmt.Errorf("%w: entry %d cannot happen: %w", variant.ErrChange, e.Seq, w.applied.Err)
	}
	if _, recorded := w.variant.Parent(e.Seq); !recorded && core.Seq() > before {
		w.numbers.inserted()
	}
	return nil
}

// record applies a record in the place of an entry.
func (w *walk) record(e *eventlog.Entry, r signal.Record) error {
	made := *e
	made.Data = session.AppendWord(nil, r.Word, r.Value)
	return w.keep(&made)
}

// decided decides about the request or the draft from which an effect came. The reason is
// that of a refusal.
func (w *walk) decided(at time.Duration, r signal.Record) (signal.Record, string) {
	sub, err := w.submission(r)
	if err != nil {
		return r, err.Error()
	}
	core := session.WorldOf(w.fold)
	core.Advance(at)
	d := core.Decide(at, agents.Quantum{}, []agents.Submission{sub})
	for _, made := range d.Records {
		if made.Word == agents.WordEffect {
			return made, ""
		}
	}
	return r, refusalText(&d.Outcomes[0])
}

// submission returns the request or the draft from which an effect came.
func (w *walk) submission(r signal.Record) (agents.Submission, error) {
	e, err := world.ParseEffect(r.Value)
	if err != nil {
		return agents.Submission{}, err
	}
	if e.ReqID == "" {
		return agents.Submission{UUID: e.UUID, Draft: &agents.EffectDraft{Kind: e.Kind, Payload: e.Payload, SourceID: e.SourceID, SchemaVersion: e.SchemaVersion}}, nil
	}
	return agents.Submission{Intent: &agents.Intent{
		Kind: e.Kind, Payload: e.Payload, ReqID: e.ReqID, AgentID: e.SourceID, SchemaVersion: e.SchemaVersion,
		ContextSeq: w.numbers.of(uint64(max(r.Value.IntOf("context_seq"), 0))), Priority: int(r.Value.IntOf("priority")),
	}}, nil
}

// refusalText returns why an outcome has no effect.
func refusalText(o *agents.Outcome) string {
	if o.Rejection == nil {
		return "it was answered before"
	}
	text := string(o.Rejection.Code)
	if o.Rejection.Reason != "" {
		text += ": " + o.Rejection.Reason
	}
	for _, p := range o.Rejection.Problems {
		text += ": " + p.Reason
		break
	}
	return text
}

// whatOf describes a record for a report.
func whatOf(r signal.Record) string {
	switch r.Word {
	case agents.WordEffect:
		text := r.Value.TextOf("kind")
		if by := r.Value.TextOf("source_id"); by != "" {
			text += fmt.Sprintf(" of %q", by)
		}
		return text
	default:
		text := r.Word
		if by := r.Value.TextOf("agent_id"); by != "" {
			text += fmt.Sprintf(" of %q", by)
		}
		return text
	}
}

// decide applies an effect entry of the parent to a world that has another past.
func (w *walk) decide(e *eventlog.Entry) error {
	r, err := session.WorldRecordOf(e)
	if err != nil {
		return w.keep(e) // an unreadable entry changes nothing in either world
	}
	switch r.Word {
	case agents.WordEffect:
		w.report.Decided++
		made, reason := w.decided(e.At, r)
		if reason != "" {
			err = w.leave(e, whatOf(r), reason)
		} else {
			err = w.record(e, made)
		}
		w.forget(e)
		return err
	case agents.WordQuantum:
		w.quantum = &quantum{head: *e, record: r, effects: int(min(max(r.Value.IntOf("effects"), 0), eventlog.MaxBatchEntries))}
		if w.quantum.complete() {
			return w.closeQuantum()
		}
		return nil
	case agents.WordOutcome:
		if code := agents.Code(r.Value.TextOf("code")); code != agents.ErrTimeout && code != agents.ErrCancelled {
			return w.leave(e, "the refusal of a request of "+fmt.Sprintf("%q", r.Value.TextOf("agent_id")), "the recording does not hold the refused request")
		}
		return w.reapply(e, r)
	case agents.WordToken:
		return w.token(e, r)
	default:
		return w.reapply(e, r)
	}
}

// reapply applies a record that no decision depends on, if the world takes it in.
func (w *walk) reapply(e *eventlog.Entry, r signal.Record) error {
	if err := w.record(e, r); err != nil || w.applied.Err == nil {
		return err
	}
	// The record has changed nothing but the time, and is not written.
	w.out = w.out[:len(w.out)-1]
	parent, _ := w.variant.Parent(e.Seq)
	w.noteLeft(LeftOut{w.fold.Head().Seq, parent, whatOf(r), w.applied.Err.Error()})
	w.out = append(w.out, step{draft: variant.Dropped(e.At), batch: e.Batch})
	return nil
}

// token applies the permission for a generation. The answer of the model stands only for
// the view that it was given.
func (w *walk) token(e *eventlog.Entry, r signal.Record) error {
	core, recorded := session.WorldOf(w.fold), agents.ParseToken(r.Value)
	core.Advance(e.At)
	now, _, err := core.Issue(e.At, agents.TokenRequest{
		AgentID: recorded.AgentID, ReqID: recorded.ReqID, ContextSeq: w.numbers.of(recorded.ContextSeq),
		Reads: recorded.Reads, Classes: recorded.Classes,
	})
	switch {
	case err != nil:
		return w.leave(e, whatOf(r), err.Error())
	case now.ContextDigest != recorded.ContextDigest:
		parent, _ := w.variant.Parent(e.Seq)
		w.report.Stopped = &Stopped{parent, fmt.Sprintf("%q would generate with another view than the recorded answer was made for", recorded.AgentID)}
		return errStopped
	}
	recorded.ContextSeq = now.ContextSeq
	object := signal.ObjectOf(r.Value)
	object.Set("context_seq", signal.Value(signal.Uint(now.ContextSeq).Append(nil)))
	return w.reapply(e, signal.Record{Word: r.Word, Value: object.Value()})
}

// quantum is requests that were decided together: the entry that announces them, and their
// effects.
type quantum struct {
	head    eventlog.Entry
	record  signal.Record
	effects int
	entries []eventlog.Entry
}

func (q *quantum) complete() bool { return len(q.entries) >= q.effects }

// wants reports whether an entry is in the place of one of the announced effects.
func (q *quantum) wants(e *eventlog.Entry, recorded bool) bool {
	return recorded && !q.complete() && (e.Kind == eventlog.KindEffect || variant.IsDropped(e))
}

// closeQuantum decides a quantum again.
func (w *walk) closeQuantum() error {
	q := w.quantum
	w.quantum = nil
	var subs []agents.Submission
	var places []int
	intents := true
	reasons := make([]string, len(q.entries))
	for i := range q.entries {
		r, err := session.WorldRecordOf(&q.entries[i])
		if err != nil || r.Word != agents.WordEffect {
			continue
		}
		sub, err := w.submission(r)
		if err != nil {
			reasons[i] = err.Error()
			continue
		}
		if sub.Intent == nil {
			sub.UUID, intents = "", false // its place among the others does not depend on it
		}
		subs, places = append(subs, sub), append(places, i)
	}
	core := session.WorldOf(w.fold)
	core.Advance(q.head.At)
	var d agents.Decision
	if by := q.record.Value.TextOf("by"); by == agents.CloseBatch && intents {
		list := make([]agents.Intent, len(subs))
		for i := range subs {
			list[i] = *subs[i].Intent
		}
		d = core.DecideBatch(q.head.At, list)
	} else {
		sim, _ := q.record.Value.Member("sim_time").Float64()
		delta, _ := q.record.Value.Member("delta_time").Float64()
		d = core.Decide(q.head.At, agents.Quantum{
			By: by, SimTime: sim, Timed: by == agents.CloseTick, DeltaTime: delta,
			FrameNumber: uint64(max(q.record.Value.IntOf("frame_number"), 0)), SourceID: q.record.Value.TextOf("source_id"),
		}, subs)
	}
	var effects []signal.Record
	var closing *signal.Record
	for i := range d.Records {
		switch d.Records[i].Word {
		case agents.WordEffect:
			effects = append(effects, d.Records[i])
		case agents.WordQuantum:
			closing = &d.Records[i]
		}
	}
	for i, o := range d.Outcomes {
		w.report.Decided++
		if o.Effect == nil {
			reasons[places[i]] = refusalText(&o)
		}
	}
	return w.placeQuantum(q, closing, effects, reasons)
}

// placeQuantum writes the decisions about a quantum in the places of the recorded ones.
func (w *walk) placeQuantum(q *quantum, closing *signal.Record, effects []signal.Record, reasons []string) (err error) {
	if closing == nil {
		err = w.leave(&q.head, "a quantum", "none of its effects happens")
	} else {
		err = w.record(&q.head, *closing)
	}
	for i := range q.entries {
		e := &q.entries[i]
		if err != nil {
			return err
		}
		switch r, _ := session.WorldRecordOf(e); {
		case variant.IsDropped(e):
			err = w.keep(e)
		case reasons[i] != "" || len(effects) == 0:
			err = w.leave(e, whatOf(r), reasons[i])
		default:
			err = w.record(e, effects[0])
			effects = effects[1:]
		}
		w.forget(e)
	}
	return err
}
