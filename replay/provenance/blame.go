package provenance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
)

// Blamed is the answer of [Blame].
type Blamed struct {
	Path   StatePath
	Moment replay.Moment // of the question
	Value  any           // then; nil if there is none
	Has    bool
	Setting

	// Moving reports that the value still changes at the moment by the course that the
	// setting gave it.
	Moving bool
}

// firstStretch is the number of entries of the first stretch that [Blame] folds. Each
// further one has twice as many.
const firstStretch = 128

// Blame returns the last setting of a value at or before a moment. The error is
// [ErrNever] if no event has set the value: it is as it was before the first entry, or
// does not exist and never did. It is [replay.ErrNoAddress] if there is no such moment.
func Blame(ctx context.Context, r *replay.Replay, path StatePath, at replay.Moment) (Blamed, error) {
	end, err := r.At(ctx, at)
	if err != nil {
		return Blamed{}, err
	}
	b := Blamed{Path: path, Moment: at}
	if end.State(path.names[0]) == nil {
		return b, fmt.Errorf("%w: there is no projection %q", ErrPath, path.names[0])
	}
	b.Value, b.Has = path.In(end)
	b.Moving = moves(end, path)
	low, to := eventlog.Seq(0), at
	table, candidates, err := candidatesOf(ctx, r, path)
	if err != nil {
		return b, err
	}
	if table != nil {
		// The table is about the entries up to its head. Behind that is a short stretch.
		low = min(table.head(), at.Seq)
		found := false
		if low < at.Seq {
			if found, err = b.search(ctx, r, low, to); err != nil || found {
				return b, err
			}
			to = replay.Moment{Seq: low}
		}
		if found, err = b.searchAt(ctx, r, candidates, to); err != nil {
			return b, err
		}
		right, err := b.confirmed(ctx, r, end, found)
		if err != nil || right && found {
			return b, err
		}
		if right {
			return b, fmt.Errorf("%w: no entry up to %v has set %v", ErrNever, at, path)
		}
		to = at
	}
	byTable := b.Setting
	b.Setting = Setting{}
	found, err := b.search(ctx, r, 0, to)
	if err == nil && table != nil && b.Setting.Moment != byTable.Moment {
		table.discard() // an entry was missing in it
	}
	if err != nil || found {
		return b, err
	}
	return b, fmt.Errorf("%w: no entry up to %v has set %v", ErrNever, at, path)
}

// Existed returns [ErrNever] if the state never had a value up to a moment. A value that
// is gone, or was there before the first entry, did exist.
func Existed(ctx context.Context, r *replay.Replay, path StatePath, at replay.Moment) error {
	end, err := r.At(ctx, at)
	if err != nil {
		return err
	}
	return path.existed(ctx, r, end, at)
}

func (p StatePath) existed(ctx context.Context, r *replay.Replay, end *projection.Fold, at replay.Moment) error {
	if _, has := p.In(end); has {
		return nil
	}
	_, err := Blame(ctx, r, p, at)
	return err
}

// search looks for the last setting behind an entry and up to a moment, back over
// stretches of growing length.
func (b *Blamed) search(ctx context.Context, r *replay.Replay, low eventlog.Seq, to replay.Moment) (found bool, err error) {
	for stretch := eventlog.Seq(firstStretch); ; stretch *= 2 {
		from := low
		if to.Seq > low+stretch {
			from = to.Seq - stretch
		}
		if found, err = b.last(ctx, r, from, to); err != nil || found || from == low {
			return found, err
		}
		to = replay.Moment{Seq: from}
	}
}

// searchAt is search over the entries that are candidates alone, to which it jumps. If
// the nearest ones have set nothing, it takes in ever more of those before.
func (b *Blamed) searchAt(ctx context.Context, r *replay.Replay, candidates []eventlog.Seq, to replay.Moment) (found bool, err error) {
	for stretch := eventlog.Seq(1); ; stretch *= 2 {
		n, _ := slices.BinarySearch(candidates, to.Seq+1)
		if n == 0 {
			return false, nil
		}
		last, from := candidates[n-1], eventlog.Seq(0)
		if last > stretch {
			from = last - stretch
		}
		if last < to.Seq {
			to = replay.Moment{Seq: last + 1}
		}
		if found, err = b.last(ctx, r, from, to); err != nil || found || from == 0 {
			return found, err
		}
		to = replay.Moment{Seq: from}
	}
}

// last notes the last setting behind an entry and up to a moment, if there is one.
func (b *Blamed) last(ctx context.Context, r *replay.Replay, from eventlog.Seq, to replay.Moment) (found bool, err error) {
	err = settings(ctx, r, b.Path, from, to, func(s Setting) bool {
		b.Setting, found = s, true
		return true
	})
	return found, err
}

// confirmed reports whether a setting that was found by a table can be the last one: from
// there on, the value has taken the course to what it is at the moment of the question. If
// none was found, the value must be what it was before the first entry.
func (b *Blamed) confirmed(ctx context.Context, r *replay.Replay, end *projection.Fold, found bool) (bool, error) {
	from := replay.Moment{}
	if found {
		from = b.Setting.Moment
	}
	f, err := r.At(ctx, from)
	if err != nil {
		return false, err
	}
	id, member, _ := b.Path.entity()
	then, now := session.StageOf(f), session.StageOf(end)
	for _, name := range courseMembers(member) {
		v, has := then.ValueAt(id, name, now.Now())
		w, is := now.ValueAt(id, name, now.Now())
		if has != is || !bytes.Equal(text(v, has), text(w, is)) {
			return false, nil
		}
	}
	return true, nil
}

// candidatesOf returns the table of the stage, and the entries in it at which a value may
// have been set. The table is nil if it does not answer for the path.
func candidatesOf(ctx context.Context, r *replay.Replay, path StatePath) (*stageTable, []eventlog.Seq, error) {
	id, member, ok := path.entity()
	if !ok || len(path.names) > 4 {
		return nil, nil, nil
	}
	table, err := openStageTable(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	candidates, ok := table.candidates(id, member)
	if !ok {
		return nil, nil, nil
	}
	return table, candidates, nil
}

// History returns the settings of a value up to and including a moment, in order.
// After an error it ends.
func History(ctx context.Context, r *replay.Replay, path StatePath, to replay.Moment) iter.Seq2[Setting, error] {
	return func(yield func(Setting, error) bool) {
		more := true
		if _, err := r.At(ctx, to); err != nil {
			yield(Setting{}, err)
			return
		}
		err := settings(ctx, r, path, 0, to, func(s Setting) bool {
			more = more && yield(s, nil)
			return more
		})
		if err != nil && more {
			yield(Setting{}, err)
		}
	}
}

// settings calls visit for each setting after entry from up to a moment, until it
// returns false.
func settings(ctx context.Context, r *replay.Replay, path StatePath, from eventlog.Seq, to replay.Moment, visit func(Setting) bool) error {
	f, err := r.Fold(ctx, from)
	if err != nil {
		return err
	}
	f.Advance(f.At())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &watcher{path: path, fold: f, visit: func(s Setting) {
		if !visit(s) {
			cancel(errEnough)
		}
	}}
	w.inStage = path.names[0] == session.ProjectionStage
	w.stage = session.StageOf(f)
	if p := session.PerformancesOf(f); p != nil && w.stage != nil {
		p.Scheduler().Observe(w, w.stage)
	}
	w.now = w.read()
	err = walk(ctx, r, f, to, w)
	if errors.Is(context.Cause(ctx), errEnough) {
		return nil
	}
	if err == nil {
		w.passed()
	}
	return err
}

var errEnough = fmt.Errorf("provenance: enough")

// watcher compares a value before and after each event of a walk. It stands between
// the scheduler and the stage.
type watcher struct {
	path    StatePath
	fold    *projection.Fold
	stage   *stage.Stage
	inStage bool
	visit   func(Setting)

	now    reading
	moment replay.Moment
	base   time.Duration // of the entry of moment
	entry  eventlog.Seq  // that is being applied, or 0
	acts   []Setter      // of this instant, for a path outside the stage
}

// reading is a value and its course, at one instant.
type reading struct {
	value  any
	has    bool
	text   []byte
	course []byte
}

// probes are the instants at which the course of a value is compared. They lie close
// together at first, because most acts are short.
var probes = [...]time.Duration{
	time.Millisecond, 7 * time.Millisecond, 16 * time.Millisecond, 51 * time.Millisecond, 133 * time.Millisecond,
	401 * time.Millisecond, time.Second, 2900 * time.Millisecond, 5100 * time.Millisecond, 10 * time.Second,
}

func (w *watcher) read() reading { return readAt(w.fold, w.stage, w.path) }

func readAt(f *projection.Fold, st *stage.Stage, path StatePath) reading {
	id, member, ok := path.entity()
	if !ok || st == nil || len(path.names) > 4 {
		v, has := path.In(f)
		return reading{value: v, has: has, text: text(v, has)}
	}
	var r reading
	if member == "" {
		r.value, r.has = path.In(f)
	} else {
		r.value, r.has = entityMember(st, id, member, st.Now())
	}
	r.text = text(r.value, r.has)
	if !r.has {
		return r
	}
	for _, after := range probes {
		for _, name := range courseMembers(member) {
			v, ok := st.ValueAt(id, name, st.Now()+after)
			r.course = append(append(r.course, text(v, ok)...), ' ')
		}
	}
	return r
}

// entityMember returns a member as the view of the stage has it.
func entityMember(st *stage.Stage, id, member string, at time.Duration) (any, bool) {
	v, ok := st.ValueAt(id, member, at)
	return v, ok && (member != "height" || v != 0.0)
}

// courseMembers returns the members of an entity that change with time.
func courseMembers(member string) []string {
	if member != "" {
		return []string{member}
	}
	return []string{"x", "y", "opacity", "tint", "strength", "scale", "rotation", "text", "textOpacity"}
}

// moves reports whether a value changes after the present of a fold without a further
// event.
func moves(f *projection.Fold, path StatePath) bool {
	id, member, ok := path.entity()
	st := session.StageOf(f)
	if !ok || st == nil || len(path.names) > 4 {
		return false
	}
	for _, name := range courseMembers(member) {
		v, has := st.ValueAt(id, name, st.Now())
		now := text(v, has)
		for _, after := range probes {
			if v, has := st.ValueAt(id, name, st.Now()+after); !bytes.Equal(text(v, has), now) {
				return true
			}
		}
	}
	return false
}

// passed notes that time has passed up to the present of the fold.
func (w *watcher) passed() { w.now = w.read() }

// set compares the value with the one before an event, and reports a setting.
func (w *watcher) set(setter func() Setter) {
	before := w.now
	w.now = w.read()
	if before.has == w.now.has && bytes.Equal(before.text, w.now.text) && bytes.Equal(before.course, w.now.course) {
		return
	}
	w.visit(Setting{
		Moment: w.moment, At: w.base + w.moment.Offset, Setter: setter(),
		Old: before.value, Had: before.has, New: w.now.value, Has: w.now.has,
	})
}

func (w *watcher) advance(f *projection.Fold, m replay.Moment, at time.Duration) {
	w.moment, w.base, w.acts = m, at-m.Offset, nil
	w.outside(func() { f.Advance(at) })
	w.passed()
}

// outside runs a step that moves time, and compares a value outside the stage with the
// one before it: the value changes by the end of the step.
func (w *watcher) outside(step func()) {
	if w.inStage {
		step()
		return
	}
	step()
	w.set(func() Setter {
		if len(w.acts) == 1 {
			return w.acts[0]
		}
		return Setter{Kind: ByTime, Candidates: w.acts}
	})
}

func (w *watcher) apply(f *projection.Fold, e *eventlog.Entry) error {
	if w.inStage {
		w.passed()
	} else {
		w.outside(func() {}) // what has changed since the last step
	}
	w.moment, w.base, w.acts, w.entry = replay.Moment{Seq: e.Seq}, e.At, nil, e.Seq
	err := f.Apply(e)
	w.entry = 0
	if err != nil {
		return fmt.Errorf("provenance: %w", err)
	}
	w.set(func() Setter { return Setter{Kind: ByEntry, Entry: e.Seq} })
	w.outside(func() { f.Advance(e.At) })
	w.passed()
	return nil
}

// around performs an event of the stage and compares the value before and after it.
func (w *watcher) around(at time.Duration, event func(), setter func() Setter) {
	if !w.inStage {
		event()
		w.acts = append(w.acts, setter())
		return
	}
	w.stage.Advance(at)
	w.passed()
	event()
	w.set(setter)
}

// Started implements [choreography.ActObserver].
func (w *watcher) Started(a *choreography.Act) {
	w.around(a.At, func() { w.stage.Started(a) }, func() Setter { return setterOf(ByStart, a) })
}

// Completed implements [choreography.ActObserver].
func (w *watcher) Completed(a *choreography.Act) {
	w.around(a.At, func() { w.stage.Completed(a) }, func() Setter { return setterOf(ByComplete, a) })
}

// Executed implements [choreography.ActObserver].
func (w *watcher) Executed(a *choreography.Act) {
	w.around(a.At, func() { w.stage.Executed(a) }, func() Setter { return setterOf(ByExecute, a) })
}

// Interrupted implements [choreography.ActObserver].
func (w *watcher) Interrupted(at time.Duration, seq uint64, index uint32) {
	w.around(at, func() { w.stage.Interrupted(at, seq, index) }, func() Setter {
		return Setter{Kind: ByInterrupt, Entry: w.entry, Performance: performanceID(seq, index)}
	})
}
