package sajou

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/director/episode"
	directorlive "github.com/sajou-dev/sajou-go/director/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/writer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	stagelive "github.com/sajou-dev/sajou-go/stage/live"
)

// Session records into one session of the log. Its methods may be called from
// many goroutines.
type Session struct {
	engine *Engine
	w      *writer.Writer

	drafts session.Drafts // of records; belongs to the turns

	used atomic.Bool // since the engine last looked for idle sessions
	kept atomic.Bool // it is in Engine.ready

	agentsOnce sync.Once
	agents     *agentslive.Agents // made by the first call of Agents

	director *directorlive.Director // immutable
}

// Agents returns the world of agents of the session.
func (s *Session) Agents() *agentslive.Agents {
	s.use()
	s.agentsOnce.Do(func() {
		c := &s.engine.cfg
		s.agents = agentslive.New(s.w, agentslive.Config{
			Now: c.Now, AfterFunc: c.AfterFunc, Logger: c.Logger, Metrics: c.Metrics.Agents,
			MaxEntry: s.engine.maxEntry(), Migrate: c.Migrate, RecordPrompts: c.RecordPrompts,
			DeliveredAt: s.deliveredAt,
		})
	})
	return s.agents
}

// deliveredAt returns the view that an agent had been sent at an entry.
func (s *Session) deliveredAt(ctx context.Context, agent string, seq eventlog.Seq) (*query.DeliveredView, error) {
	h, err := s.engine.AgentHistory(s.Name())
	if err != nil {
		return nil, err
	}
	return h.DeliveredAt(ctx, agent, seq)
}

// Session returns the session of that name. A new one is begun by its first
// record and takes its time from the signals' timestamps ([session.TimeWall]).
func (e *Engine) Session(ctx context.Context, name string) (*Session, error) {
	return e.Begin(ctx, name, session.TimeWall)
}

// Begin is [Engine.Session] with another time authority for a new session. A
// session that exists keeps the one it has.
func (e *Engine) Begin(ctx context.Context, name string, authority session.TimeAuthority) (*Session, error) {
	if !authority.Valid() {
		return nil, fmt.Errorf("sajou: no time authority %q: want %q, %q or %q", authority, session.TimeWall, session.TimeSim, session.TimeManual)
	}
	s, err := e.begin(ctx, name, authority)
	if err == nil {
		s.use()
	}
	return s, err
}

// begin returns the one Session of a name.
func (e *Engine) begin(ctx context.Context, name string, authority session.TimeAuthority) (*Session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, eventlog.ErrClosed
	}
	if s := e.sessions[name].Value(); s != nil {
		return s, nil
	}
	log, err := e.log.Session(name)
	if err != nil {
		return nil, err
	}
	w, err := e.writers.Open(ctx, log, authority, session.NewReplay(&log.SessionReader, e.set, e.snaps), &directorlive.Reactions{Session: name})
	if err != nil {
		return nil, err
	}
	cfg := &e.cfg
	s := &Session{engine: e, w: w, director: directorlive.New(w, directorlive.Config{
		Judge: cfg.Judge, JudgeTimeout: cfg.JudgeTimeout, OmitText: cfg.OmitText,
		Now: cfg.Now, AfterFunc: cfg.AfterFunc, Logger: cfg.Logger, Metrics: cfg.Metrics.Director,
	})}
	w.Own(s) // a director or a sink that refers to the writer keeps the Session too
	e.sessions[name] = weak.Make(s)
	runtime.AddCleanup(s, e.forget, name)
	return s, nil
}

// forget drops the entry of an unreferenced Session from the table.
func (e *Engine) forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[name].Value() == nil {
		delete(e.sessions, name)
	}
}

// use notes that the session is used. It returns s.
func (s *Session) use() *Session {
	if !s.used.Load() {
		s.used.Store(true)
	}
	if !s.kept.Load() {
		s.engine.keepReady(s)
	}
	return s
}

// maxVictims bounds the sessions that one call looks at to let one go.
const maxVictims = 8

// keepReady keeps a session, and lets those go that have not been used for the longest
// time and are beyond the bound. The sessions wait in a circle; one that was used since
// the last look gets another round.
func (e *Engine) keepReady(s *Session) {
	e.mu.Lock()
	if !e.closed && s.kept.CompareAndSwap(false, true) {
		e.ready = append(e.ready, s)
	}
	var victims []*Session
	for range maxVictims {
		if len(e.ready) <= e.cfg.IdleSessions {
			break
		}
		first := e.ready[0]
		e.ready = slices.Delete(e.ready, 0, 1)
		if first == s || first.used.Swap(false) {
			e.ready = append(e.ready, first)
			continue
		}
		first.kept.Store(false)
		victims = append(victims, first)
	}
	e.mu.Unlock()
	for _, v := range victims { // without the lock: a session may be in a turn
		if v.w.Rest(v.w.Context()) || !v.kept.CompareAndSwap(false, true) {
			continue
		}
		e.mu.Lock()
		e.ready = append(e.ready, v) // it is in use after all
		e.mu.Unlock()
	}
}

// Addition holds the declarations and signals that one call adds to a session, all of
// them or none.
type Addition struct {
	// Declarations come into force, in order, before the signals happen:
	// choreographies, sequences, easings, bindings and scenes.
	Declarations []language.Declaration

	// Signals happen in order.
	Signals []*signal.Signal

	// Expect, unless zero, is the Head the session must have; see
	// [eventlog.Batch].
	Expect eventlog.Head

	// Key, unless empty, makes the record idempotent: a repeat writes nothing
	// and answers with the first outcome, also after a restart.
	Key string

	// Lenient records signals that the schema refuses, flagged with the
	// reason, instead of refusing the record. So it does with signals that
	// [Config.MaxSkew] refuses.
	Lenient bool

	// Recording says that the signals were recorded at another time or place. Their
	// timestamps are not compared with the clock, so that the same recording gives the
	// same head at any time.
	Recording bool
}

// SignalError is the error about one of the signals of an [Addition].
type SignalError struct {
	Index int   // of the signal in [Addition.Signals], from 0
	Err   error // the reason
}

func (e *SignalError) Error() string {
	return fmt.Sprintf("signal %d of the record: %v", e.Index+1, e.Err)
}
func (e *SignalError) Unwrap() error { return e.Err }

// Receipt says where an addition stands in the log.
type Receipt struct {
	First  eventlog.Seq  // the first entry it wrote
	Head   eventlog.Head // the place behind its last entry
	Repeat bool          // its key had been seen before: nothing was written now

	// OutOfOrder counts the signals whose timestamps are before the session time that
	// earlier entries had reached, at which they take effect. It is 0 for a repeat.
	OutOfOrder int
}

// Name returns the session's name.
func (s *Session) Name() string { return s.w.Name() }

// TimeAuthority returns where the session's time comes from.
func (s *Session) TimeAuthority() session.TimeAuthority { return s.w.Authority() }

// Head returns the place of the newest durable entry.
func (s *Session) Head() eventlog.Head { return s.w.Head() }

// Define brings declarations into force, in order, in one batch. A declaration that
// refers to one that is neither in force nor before it in the batch is refused, and
// then nothing is recorded.
func (s *Session) Define(ctx context.Context, declarations ...language.Declaration) (eventlog.Head, error) {
	out, err := s.Record(ctx, Addition{Declarations: declarations})
	return out.Head, err
}

// Signal records one signal. It is durable when the call returns. A signal
// that the schema refuses is not recorded: the error matches
// [signal.ErrSchema] and names the field.
func (s *Session) Signal(ctx context.Context, sig *signal.Signal) (eventlog.Head, error) {
	out, err := s.Record(ctx, Addition{Signals: []*signal.Signal{sig}})
	return out.Head, err
}

// Record writes declarations and signals as one batch, durable when the call
// returns without an error. Errors: [signal.ErrSchema], [session.ErrTime],
// [definition.ErrInvalid], and those of [eventlog.Session.Append]. After the
// error of ctx the record may have been written; a repeat with the same Key returns
// its outcome.
func (s *Session) Record(ctx context.Context, r Addition) (Receipt, error) {
	if err := check(ctx, &r); err != nil {
		return Receipt{}, err
	}
	p := Pending{}
	var err error
	p.ticket, err = s.use().w.Append(ctx, func(t *writer.Turn) (*eventlog.Ticket, error) { return s.keep(t, &r, &p.late) })
	if err != nil {
		return Receipt{}, err
	}
	return p.Wait(ctx)
}

// AdditionResult is the outcome of one of the additions of [Session.RecordEach].
type AdditionResult struct {
	Receipt Receipt
	Err     error // why the addition is not recorded, or not known to be; nil if it is durable
}

// RecordEach writes each of several additions as [Session.Record] does, one after the other
// in one turn of the session, and returns when those that were not refused are durable. An
// addition that is refused changes nothing for the others. The results are in the order of
// the additions; errors are those of [Session.Record], the error of ctx included.
func (s *Session) RecordEach(ctx context.Context, additions []Addition) []AdditionResult {
	results := make([]AdditionResult, len(additions))
	pending := make([]Pending, len(additions))
	checked := slices.Clone(additions)
	for i := range checked {
		results[i].Err = check(ctx, &checked[i])
	}
	_, err := s.use().w.Append(ctx, func(t *writer.Turn) (last *eventlog.Ticket, _ error) {
		for i := range checked {
			if results[i].Err != nil {
				continue
			}
			p := &pending[i]
			if p.ticket, results[i].Err = s.keep(t, &checked[i], &p.late); p.ticket != nil {
				last = p.ticket
			}
		}
		return last, nil
	})
	for i := range results {
		switch r := &results[i]; {
		case r.Err != nil:
		case err != nil:
			r.Err = err
		default:
			r.Receipt, r.Err = pending[i].Wait(ctx)
		}
	}
	return results
}

// RecordAsync gives an addition its place, in the order of the calls, and returns
// without waiting for the disk: an import prepares its next record while this
// one is written. The caller must call [Pending.Wait] once for every Pending, in order.
// Errors are those of [Session.Record].
func (s *Session) RecordAsync(ctx context.Context, r Addition) (*Pending, error) {
	if err := check(ctx, &r); err != nil {
		return nil, err
	}
	p := &Pending{}
	var err error
	p.ticket, err = s.use().w.AppendAsync(ctx, func(t *writer.Turn) (*eventlog.Ticket, error) { return s.keep(t, &r, &p.late) })
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Pending is a record that has its place and waits to become durable.
type Pending struct {
	ticket *eventlog.Ticket
	late   int // signals out of order; not of a repeat
}

// Wait returns once the record is durable, or with the error that made the log
// read-only, or with the error of ctx if that ends first. Then it can be called
// again; the record becomes durable, or fails, without it.
func (p *Pending) Wait(ctx context.Context) (Receipt, error) {
	head, err := p.ticket.Wait(ctx)
	if err != nil {
		return Receipt{}, err
	}
	out := Receipt{First: p.ticket.First(), Head: head, Repeat: p.ticket.Repeat()}
	if !out.Repeat {
		out.OutOfOrder = p.late
	}
	return out, nil
}

// check refuses an addition that is invalid in every state of a session. It replaces
// the declarations and signals of r by those to record, and does not change the
// caller's.
func check(ctx context.Context, r *Addition) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if strings.HasPrefix(r.Key, agentslive.KeyPrefix) {
		return fmt.Errorf("%w: keys that begin with %s are for agents' requests", eventlog.ErrInvalid, agentslive.KeyPrefix)
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

// compiled compiles each declaration from its recorded form, as a replay does, so that
// the declarations in force live are those in the log, whatever the type of a given one
// does.
func compiled(given []language.Declaration) ([]language.Declaration, error) {
	if len(given) == 0 {
		return nil, nil
	}
	made := make([]language.Declaration, len(given))
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
			made[i], err = session.CompileDeclaration(d.Word(), value)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: declaration %d of the record: %w", eventlog.ErrInvalid, i+1, err)
		}
	}
	return made, nil
}

// judge validates each signal. If lenient, it replaces an invalid signal by a copy with
// the reason as its Problem, which is part of the format of the entry.
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
				return nil, &SignalError{i, err}
			}
			return nil, err
		}
		if !copied {
			signals, copied = append([]*signal.Signal(nil), signals...), true
		}
		marked := *sig
		marked.Problem = problemOf(err)
		// Lenience covers the schema only. A signal that cannot be decoded again,
		// such as one whose payload is not a JSON object, is refused.
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

// problemOf returns the Problem of an invalid signal. Its wording is part of the format
// of the entry and must not change.
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

// keep decides on a record against the newest state and appends it. It sets late to the
// number of its signals that are out of order.
func (s *Session) keep(t *writer.Turn, r *Addition, late *int) (*eventlog.Ticket, error) {
	p, err := s.draft(t, r, late)
	if err != nil {
		// An addition that was valid when it was first recorded may be invalid now:
		// later entries have moved session time on or replaced declarations.
		if first, lookup := t.Repeat(r.Key); first != nil || lookup != nil {
			return first, lookup
		}
		return nil, err
	}
	return t.Keep(writer.Proposal{Drafts: s.drafts.List(), Expect: r.Expect, Key: r.Key, After: &p})
}

// draft turns an addition into drafts and returns the session's position after them.
// Declarations are checked against the fold, which t must catch up with; plain signals
// are not, so that an import need not wait for the fold.
func (s *Session) draft(t *writer.Turn, r *Addition, late *int) (writer.Frontier, error) {
	c := &s.drafts
	c.Reset()
	*late = 0
	bounded := s.engine.cfg.MaxSkew >= 0 && !r.Recording
	p := t.Frontier()
	var inForce *language.Catalog
	var retained definition.Cost
	if len(r.Declarations) > 0 {
		if err := t.CatchUp(); err != nil {
			return p, err
		}
		scheduler := session.PerformancesOf(t.Fold()).Scheduler()
		inForce, retained = scheduler.Catalog(), scheduler.Retained(r.Declarations...)
	}
	for i, d := range r.Declarations {
		if d.Word() != session.WordScene && d.Word() != episode.Word { // neither refers to other declarations
			catalog, err := inForce.With(d)
			if err == nil {
				err = catalog.Holds(retained)
			}
			if err != nil {
				return p, fmt.Errorf("declaration %d of the record: %w", i+1, err)
			}
			inForce = catalog
		}
		c.Declaration(p.At, d)
	}
	for i, sig := range r.Signals {
		if bounded {
			if err := p.Time.Skew(sig, s.engine.cfg.Now(), s.engine.cfg.MaxSkew); err != nil {
				if !r.Lenient {
					return p, &SignalError{i, err}
				}
				s.skewed(&p, sig, err)
				continue
			}
		}
		at, err := p.Time.At(sig, p.At)
		if err != nil && !r.Lenient {
			return p, &SignalError{i, err}
		}
		if err == nil { // otherwise the signal is recorded without a usable time
			p.At = at
		}
		p.Time.Note(sig, p.At)
		if p.Time.Late(sig, p.At) {
			*late++
		}
		c.Signal(p.At, sig)
	}
	return p, nil
}

// skewed drafts a signal whose timestamp is too far ahead, at the session time that was
// reached. If the session has no origin yet, an entry of the clock gives it one, because
// otherwise the fold would take it from this signal.
func (s *Session) skewed(p *writer.Frontier, sig *signal.Signal, err error) {
	if p.Time.WantsOrigin() {
		p.Time.Origin, p.Time.HasOrigin = s.engine.cfg.Now().UnixNano()-int64(p.At), true
		s.drafts.Clock(p.At, p.Time.Origin)
	}
	marked := *sig
	if marked.Problem == "" {
		marked.Problem = "timestamp: " + strings.TrimPrefix(err.Error(), "sajou: timestamp ")
	}
	s.drafts.Signal(p.At, &marked)
}

// State returns the state at the newest entry, complete at its instant, once
// that entry is durable. It belongs to the caller.
func (s *Session) State(ctx context.Context) (*projection.Fold, error) { return s.use().w.State(ctx) }

// Director returns the session's director, with the judge of the engine's [Config].
func (s *Session) Director() *directorlive.Director { return s.use().director }

// At returns the state at a moment of the session; see [replay.Replay.At].
func (s *Session) At(ctx context.Context, m replay.Moment) (*projection.Fold, error) {
	return s.w.Replay().At(ctx, m)
}

// Attach sends the session's commands to a sink; see [stagelive.Attachments.Attach].
func (s *Session) Attach(ctx context.Context, sink choreography.CommandSink, rate int) *stagelive.Attachment {
	return s.engine.attachments.Attach(ctx, s.w, sink, rate)
}

// AttachAt sends the session's commands from a moment on to a sink, first those of the
// past; see [stagelive.Attachments.AttachAt].
func (s *Session) AttachAt(ctx context.Context, sink choreography.CommandSink, rate int, from replay.Moment) *stagelive.Attachment {
	return s.engine.attachments.AttachAt(ctx, s.w, sink, rate, from)
}

// Show sends the session's frames to a sink; see [stagelive.Attachments.Show].
func (s *Session) Show(ctx context.Context, sink stagelive.FrameSink, rate int) *stagelive.Attachment {
	return s.engine.attachments.Show(ctx, s.w, sink, rate)
}

// Entries iterates over the durable entries from a Seq on; see
// [eventlog.SessionReader.Entries].
func (s *Session) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return s.w.Entries(ctx, from)
}

// Subscribe iterates over the durable entries from a Seq on and goes on with
// those that come, without gap or repeat, until ctx ends or the engine
// closes. The log itself is the buffer: a slow subscriber holds no memory,
// loses nothing and delays no other caller.
func (s *Session) Subscribe(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return s.w.Follow(ctx, from)
}
