package sajou

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// Session records into one session of the log. Its methods may be called from
// many goroutines.
type Session struct {
	engine    *Engine
	log       *eventlog.Session
	authority TimeAuthority // for a session that has no entry yet
	clock     sessionClock

	// next is where the session will stand when all that was staged is folded.
	// It belongs to the rounds of the log, of which one runs at a time.
	next    position
	scratch scratch // likewise

	// broken is set when fold and log have parted.
	broken atomic.Pointer[error]

	// behind holds what was staged and is not folded yet, in order.
	behind backlog

	// mu is held while the state is read or moved on; never while the disk is
	// waited for.
	mu       sync.Mutex
	fold     *projection.Fold // the newest state, perhaps not durable yet; guarded by mu
	snapped  eventlog.Seq     // the newest snapshot; guarded by mu
	logBytes uint64           // estimated size of the session's log; guarded by mu

	snappedAt  uint64 // logBytes at the newest snapshot; guarded by mu
	imageBytes uint64 // its size, if that is large; guarded by mu

	agentsOnce sync.Once
	agents     *Agents // made when it is first asked for

	directorOnce sync.Once
	director     *Director // likewise
}

// position is what the next record is decided by: what its entries' times
// follow from, and what its declarations may refer to.
type position struct {
	seq     eventlog.Seq
	rules   bool // of the episode in play, about what else happens; see prompter
	begun   bool // the session has its first entry
	time    sessionTime
	at      time.Duration
	catalog *choreography.Catalog
}

// scratch is memory that is used anew for each record.
type scratch struct {
	drafts []eventlog.Draft
	data   []byte
	ends   []int // where each draft's data ends in data
}

// Session returns the session of that name. A new one is begun by its first
// record and takes its time from the signals' timestamps ([TimeWall]).
func (e *Engine) Session(ctx context.Context, name string) (*Session, error) {
	return e.Begin(ctx, name, TimeWall)
}

// Begin is [Engine.Session] with another time authority for a new session. A
// session that exists keeps the one it has.
func (e *Engine) Begin(ctx context.Context, name string, authority TimeAuthority) (*Session, error) {
	if !authority.valid() {
		return nil, fmt.Errorf("sajou: no time authority %q: want %q, %q or %q", authority, TimeWall, TimeSim, TimeManual)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, eventlog.ErrClosed
	}
	if s := e.sessions[name]; s != nil {
		return s, nil
	}
	log, err := e.log.Session(name)
	if err != nil {
		return nil, err
	}
	s := &Session{engine: e, log: log, authority: authority, clock: sessionClock{engine: e}}
	// Recovery: the newest snapshot that fits, and the entries behind it.
	s.fold, err = e.replayOf(log).Fold(ctx, log.Head().Seq)
	if err != nil {
		return nil, fmt.Errorf("sajou: open session %q: %w", name, err)
	}
	state, ok := s.fold.State(ProjectionSession).(*sessionState)
	if !ok {
		return nil, fmt.Errorf("sajou: the projections lack %q", ProjectionSession)
	}
	perform, ok := s.fold.State(ProjectionPerformances).(*performances)
	if !ok {
		return nil, fmt.Errorf("sajou: the projections lack %q", ProjectionPerformances)
	}
	if WorldOf(s.fold) == nil || DirectorOf(s.fold) == nil {
		return nil, fmt.Errorf("sajou: the projections lack %q or %q", ProjectionWorld, ProjectionDirector)
	}
	s.next = position{
		seq: s.fold.Head().Seq, rules: hasRules(s.fold), begun: s.fold.Head().Seq > 0,
		time: state.time, at: s.fold.At(), catalog: perform.scheduler.Catalog(),
	}
	s.snapped = s.fold.Head().Seq
	if s.logBytes, err = e.log.DiskSize(ctx, name); err != nil {
		return nil, fmt.Errorf("sajou: open session %q: %w", name, err)
	}
	e.sessions[name] = s
	return s, nil
}

// Record is what one call writes: all of it or none.
type Record struct {
	// Declarations come into force, in order, before the signals happen:
	// choreographies, sequences, easings, bindings and scenes.
	Declarations []choreography.Declaration

	// Signals happen in order.
	Signals []*signal.Signal

	// Expect, unless zero, is the Head the session must have; see
	// [eventlog.Batch].
	Expect eventlog.Head

	// Key, unless empty, makes the record idempotent: a repeat writes nothing
	// and answers with the first outcome, for ever.
	Key string

	// Lenient records signals that the schema refuses, flagged with the
	// reason, instead of refusing the record.
	Lenient bool
}

// Outcome is what came of a record.
type Outcome struct {
	First  eventlog.Seq  // the first entry it wrote
	Head   eventlog.Head // the place behind its last entry
	Repeat bool          // its key had been seen before: nothing was written now
}

// Name returns the session's name.
func (s *Session) Name() string { return s.log.Name() }

// TimeAuthority returns where the session's time comes from.
func (s *Session) TimeAuthority() TimeAuthority {
	s.catchUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	if state, ok := s.fold.State(ProjectionSession).(*sessionState); ok && state.time.authority != "" {
		return state.time.authority
	}
	return s.authority
}

// Head returns the place of the newest durable entry.
func (s *Session) Head() eventlog.Head { return s.log.Head() }

// Define brings declarations into force, in order, in one batch. One that
// refers to what is not in force, before it in the batch or in the session, is
// refused, and nothing is recorded then.
func (s *Session) Define(ctx context.Context, declarations ...choreography.Declaration) (eventlog.Head, error) {
	out, err := s.Record(ctx, Record{Declarations: declarations})
	return out.Head, err
}

// Signal records one signal. It is durable when the call returns. A signal
// that the schema refuses is not recorded: the error matches
// [signal.ErrSchema] and names the field.
func (s *Session) Signal(ctx context.Context, sig *signal.Signal) (eventlog.Head, error) {
	out, err := s.Record(ctx, Record{Signals: []*signal.Signal{sig}})
	return out.Head, err
}

// Record writes declarations and signals as one batch, durable when the call
// returns. Errors: [signal.ErrSchema], [ErrTime], [choreography.ErrDefinition],
// and those of [eventlog.Session.Append].
func (s *Session) Record(ctx context.Context, r Record) (Outcome, error) {
	if err := check(ctx, &r); err != nil {
		return Outcome{}, err
	}
	var t *eventlog.Ticket
	var refused error
	err := s.log.Write(func(round *eventlog.Round) { t, refused = s.stage(round, &r) })
	switch {
	case refused != nil:
		return Outcome{}, refused
	case t == nil:
		return Outcome{}, err
	}
	return outcomeOf(t)
}

// Stage gives a record its place, in the order of the calls, and returns
// without waiting for the disk: an import prepares its next record while this
// one is written. Every Pending must be waited for, once and in order. Errors
// are those of [Session.Record].
func (s *Session) Stage(ctx context.Context, r Record) (*Pending, error) {
	if err := check(ctx, &r); err != nil {
		return nil, err
	}
	t, err := s.log.StageIn(func(round *eventlog.Round) (*eventlog.Ticket, error) { return s.stage(round, &r) })
	if err != nil {
		return nil, err
	}
	return &Pending{t}, nil
}

// Pending is a record that has its place and waits to become durable.
type Pending struct {
	ticket *eventlog.Ticket
}

// Wait returns once the record is durable, or with the error that made the log
// read-only.
func (p *Pending) Wait() (Outcome, error) { return outcomeOf(p.ticket) }

func outcomeOf(t *eventlog.Ticket) (Outcome, error) {
	head, err := t.Wait()
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{First: t.First(), Head: head, Repeat: t.Repeat()}, nil
}

// check refuses what cannot be a record whatever the session's state is. It
// puts what is to be recorded in the place of what was given, which it leaves
// alone.
func check(ctx context.Context, r *Record) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if strings.HasPrefix(r.Key, intentPrefix) {
		return fmt.Errorf("%w: keys that begin with %s are for agents' requests", eventlog.ErrInvalid, intentPrefix)
	}
	if len(r.Declarations) == 0 && len(r.Signals) == 0 {
		return fmt.Errorf("%w: a record needs a declaration or a signal", eventlog.ErrInvalid)
	}
	if r.Declarations, err = compiled(r.Declarations); err != nil {
		return err
	}
	r.Signals, err = judge(r.Signals, r.Lenient)
	return err
}

// compiled makes each declaration anew of what would be recorded of it, as a
// replay does: whatever its type says, what is in force live is what the log
// says.
func compiled(given []choreography.Declaration) ([]choreography.Declaration, error) {
	if len(given) == 0 {
		return nil, nil
	}
	made := make([]choreography.Declaration, len(given))
	for i, d := range given {
		if v := reflect.ValueOf(d); d == nil || v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, fmt.Errorf("%w: declaration %d of the record is nil", eventlog.ErrInvalid, i+1)
		}
		value := slices.Clone(d.Value()) // the catalog keeps it, and whose it is only the giver knows
		_, rest, err := signal.CheckValue(value)
		switch {
		case err != nil:
		case len(rest) > 0:
			err = errors.New("more than one value")
		default:
			made[i], err = compile(d.Word(), value)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: declaration %d of the record: %w", eventlog.ErrInvalid, i+1, err)
		}
	}
	return made, nil
}

// judge asks the schema about each signal. Leniently, those it refuses are
// replaced by copies that carry the reason.
func judge(signals []*signal.Signal, lenient bool) ([]*signal.Signal, error) {
	copied := false
	for i, sig := range signals {
		if sig == nil {
			return nil, fmt.Errorf("%w: signal %d of the record is nil", eventlog.ErrInvalid, i+1)
		}
		err := sig.Validate()
		switch {
		case err == nil && sig.Problem == "":
			continue
		case err != nil && !lenient:
			if len(signals) > 1 {
				return nil, fmt.Errorf("signal %d of the record: %w", i+1, err)
			}
			return nil, err
		}
		if !copied {
			signals, copied = append([]*signal.Signal(nil), signals...), true
		}
		marked := *sig
		marked.Problem = problemOf(err)
		// Lenience is for the schema: what cannot be read back, a payload
		// that is no JSON object above all, is refused all the same.
		if !readable(&marked) {
			return nil, err
		}
		signals[i] = &marked
	}
	return signals, nil
}

// readable reports whether a signal comes back from its entry as it is.
func readable(sig *signal.Signal) bool {
	if _, err := signal.Decode(sig.Append(nil)); err != nil {
		return false
	}
	for _, v := range []signal.Value{sig.Payload, sig.Metadata, sig.Raw} {
		if v == nil {
			continue
		}
		if _, rest, err := signal.CheckValue(v); err != nil || len(rest) != 0 {
			return false
		}
	}
	return true
}

// problemOf words a refusal for the signal that is recorded in spite of it.
func problemOf(err error) string {
	var field *signal.FieldError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &field) && field.Path != "":
		return field.Path + ": " + field.Reason
	case errors.As(err, &field):
		return field.Reason
	default:
		return err.Error()
	}
}

// stage decides on a record against the newest state and gives it its place.
// It runs in a round of the log, alone. The fold moves on while the disk works.
func (s *Session) stage(round *eventlog.Round, r *Record) (*eventlog.Ticket, error) {
	if broken := s.broken.Load(); broken != nil {
		return nil, *broken
	}
	after, err := s.next, error(nil)
	if s.next.rules {
		err = s.inTurn(func() (err error) {
			after, err = s.draft(r)
			return err
		})
	} else {
		after, err = s.draft(r)
	}
	if err != nil {
		// What was in time, or referred to what was in force, when it was
		// recorded may not when it is repeated.
		if t, lookup := round.Repeat(r.Key); t != nil || lookup != nil {
			return t, lookup
		}
		return nil, err
	}
	t, err := round.Stage(eventlog.Batch{Drafts: s.scratch.drafts, Expect: r.Expect, Key: r.Key})
	if err != nil || t.Repeat() {
		return t, err
	}
	after.seq = t.Head().Seq
	s.next = after
	s.clock.follow(&after)
	s.behind.add(t)
	round.Then(s.follow)
	return t, nil
}

// draft turns a record into drafts in s.scratch, and returns where the session
// stands behind it.
func (s *Session) draft(r *Record) (position, error) {
	c := &s.scratch
	p := s.open()
	var joined *prompter
	if p.rules {
		joined = s.prompter(&p)
	}
	for i, d := range r.Declarations {
		if d.Word() != wordScene && d.Word() != director.Word { // they refer to nothing
			catalog, err := p.catalog.With(d)
			if err != nil {
				return p, fmt.Errorf("declaration %d of the record: %w", i+1, err)
			}
			p.catalog = catalog
		}
		c.data = appendWord(c.data, d.Word(), d.Value())
		c.add(eventlog.KindDefine, p.at)
	}
	for i, sig := range r.Signals {
		at, err := p.time.at(sig, p.at)
		if err != nil && !r.Lenient {
			return p, fmt.Errorf("signal %d of the record: %w", i+1, err)
		}
		if err == nil { // otherwise it is recorded as it came, without a time that can be used
			p.at = at
		}
		p.time.note(sig, p.at)
		seq := p.seq + eventlog.Seq(len(c.drafts)) + 1
		c.data = sig.Append(c.data)
		c.add(eventlog.KindSignal, p.at)
		if joined != nil && sig.Problem == "" {
			if err := joined.heard(director.OfSignal, sig.Type, sig.Payload, seq, 0); err != nil {
				return p, err
			}
		}
	}
	c.finish()
	return p, nil
}

// open begins drafts in s.scratch, with the session's first entry if there is
// none yet, and returns where the session stands.
func (s *Session) open() position {
	c := &s.scratch
	if cap(c.data) > 1<<20 {
		*c = scratch{} // one large import should not be remembered for ever
	}
	c.drafts, c.data, c.ends = c.drafts[:0], c.data[:0], c.ends[:0]
	p := s.next
	if !p.begun {
		p.begun, p.time.authority = true, s.authority
		c.data = appendOpened(c.data, s.authority)
		c.add(eventlog.KindSession, p.at)
	}
	return p
}

// add makes a draft of what was appended to the data since the last one.
func (c *scratch) add(kind eventlog.Kind, at time.Duration) {
	c.drafts = append(c.drafts, eventlog.Draft{Kind: kind, At: at})
	c.ends = append(c.ends, len(c.data))
}

// finish gives each draft its data. Only now does the memory stay where it is.
func (c *scratch) finish() {
	start := 0
	for i, end := range c.ends {
		c.drafts[i].Data = c.data[start:end:end]
		start = end
	}
}

// backlog is what the fold is behind by.
type backlog struct {
	mu       sync.Mutex
	tickets  []*eventlog.Ticket // guarded by mu
	entries  int                // of tickets; guarded by mu
	bytes    int                // of tickets; guarded by mu
	followed bool               // a goroutine is folding them; guarded by mu
}

// A small backlog is folded by the writer that made it, while it would wait for
// the disk anyway. A larger one is an import's, and folded beside it, up to a
// bound behind which the writer lends a hand and so waits.
const (
	smallBacklog      = 256
	largeBacklog      = 8192
	largeBacklogBytes = 16 << 20
)

func (b *backlog) add(t *eventlog.Ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tickets = append(b.tickets, t)
	b.entries += int(t.Head().Seq-t.First()) + 1
	b.bytes += t.Size()
}

// take empties the backlog.
func (b *backlog) take() []*eventlog.Ticket {
	b.mu.Lock()
	defer b.mu.Unlock()
	tickets := b.tickets
	b.tickets, b.entries, b.bytes = nil, 0, 0
	return tickets
}

// rest reports that there is something left to fold, or else that whoever
// followed stops.
func (b *backlog) rest() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.followed = len(b.tickets) > 0
	return b.followed
}

// follow sees to it that the fold comes after what was staged.
func (s *Session) follow() {
	b := &s.behind
	b.mu.Lock()
	done := len(b.tickets) == 0 // somebody took them
	aside := (b.followed || b.entries > smallBacklog) && b.entries <= largeBacklog && b.bytes <= largeBacklogBytes
	begin := aside && !b.followed
	b.followed = b.followed || begin
	b.mu.Unlock()
	switch {
	case begin:
		s.engine.folds.Go(func() {
			for b.rest() {
				s.catchUp()
			}
		})
	case !aside && !done:
		s.catchUp()
	}
}

// catchUp folds all that was staged before the call. What comes meanwhile is
// left to those who stage it: nobody folds for as long as others write.
func (s *Session) catchUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.behind.take() {
		s.apply(t)
	}
}

// apply brings the newest state up to a staged batch. Called with s.mu held.
func (s *Session) apply(t *eventlog.Ticket) {
	if s.broken.Load() != nil {
		return
	}
	for e := range t.Entries() {
		if err := s.fold.Apply(&e); err != nil {
			// The log has the batch and the state does not: a defect of this
			// program. What is recorded stays good; nothing more is.
			broken := fmt.Errorf("sajou: session %q: %w", s.Name(), err)
			s.broken.Store(&broken)
			return
		}
		s.logBytes += uint64(len(e.Body))
	}
	s.snapshot()
}

// snapshot hands the state to the background writer when one is due. It may
// get to disk before the entries do; should they be lost then, the snapshot
// fits no entry of the log and is ignored.
func (s *Session) snapshot() {
	w, head := s.engine.writer, s.fold.Head()
	if w == nil || !s.engine.snaps.Due(s.snapped, head.Seq) || s.logBytes-s.snappedAt < s.imageBytes {
		return
	}
	img := s.fold.Image()
	s.snapped, s.snappedAt, s.imageBytes = head.Seq, s.logBytes, 0
	for _, p := range img.Parts {
		s.imageBytes += uint64(len(p.Data))
	}
	if s.imageBytes < largeImage {
		s.imageBytes = 0
	}
	w.Offer(s.Name(), img, s.logBytes)
}

// largeImage is the size of a state, in bytes, from which on the next image has
// to wait until as much has been logged: writing down the state of a large world
// then costs no more than its log does.
const largeImage = 256 << 10

// State returns the state at the newest entry, complete at its instant, once
// that entry is durable. It belongs to the caller.
func (s *Session) State(ctx context.Context) (*projection.Fold, error) {
	s.catchUp()
	if broken := s.broken.Load(); broken != nil {
		return nil, *broken
	}
	s.mu.Lock()
	f, err := s.fold.Clone()
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := s.log.WaitDurable(ctx, f.Head().Seq); err != nil {
		return nil, err
	}
	f.Advance(f.At())
	return f, nil
}

// At returns the state at a moment of the session, see [Replay.AtMoment].
func (s *Session) At(ctx context.Context, m replay.Moment) (*projection.Fold, error) {
	return s.engine.replayOf(s.log).At(ctx, m)
}

// Entries iterates over the durable entries from a Seq on; see
// [eventlog.Session.Entries].
func (s *Session) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return s.log.Entries(ctx, from)
}

// Subscribe iterates over the durable entries from a Seq on and goes on with
// those that come, without gap or repeat, until ctx ends or the engine
// closes. The log itself is the buffer: a slow subscriber holds no memory,
// loses nothing and delays nobody.
func (s *Session) Subscribe(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return s.log.Follow(ctx, from)
}
