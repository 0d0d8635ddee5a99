package provenance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrStandalone says that a condition does not hold in a recording of its own, which has
// the declarations in front of all signals and nothing but both.
var ErrStandalone = errors.New("provenance: not reproduced by a recording of its own")

// Extract is a part of a session that stands alone: signals, and the declarations that
// come into force in front of them.
type Extract struct {
	Declarations []language.Declaration // without the scene, in their order
	Scene        language.Declaration   // nil: none
	Signals      []*signal.Signal
	At           []time.Duration // of each signal, since the first
	Rest         time.Duration   // from the last signal to the moment of the condition

	from map[eventlog.Seq]bool // the entries of the declarations
}

// Standalone makes a recording of its own of some signals of a session, with only those
// declarations without which a condition at a moment would no longer hold. The timestamps
// of the signals become those of session time if they differ from it. The error is
// [ErrStandalone] if the condition does not hold then, for example because a declaration
// came into force between two signals.
func Standalone(ctx context.Context, r *replay.Replay, at replay.Moment, signals []eventlog.Seq, holds Criterion) (*Extract, error) {
	t, err := newTrial(ctx, r, at)
	if err != nil {
		return nil, err
	}
	x := &Extract{Rest: t.at}
	var first time.Duration
	for i, seq := range signals {
		if seq < 1 || int(seq) > len(t.entries) {
			return nil, fmt.Errorf("%w: there is no signal %d", ErrStandalone, seq)
		}
		e := &t.entries[seq-1]
		sig, err := session.SignalOf(e)
		if err != nil {
			return nil, fmt.Errorf("provenance: %w", err)
		}
		if i == 0 {
			first = e.At
		}
		x.Signals, x.At, x.Rest = append(x.Signals, &sig), append(x.At, e.At-first), t.at-e.At
	}
	x.stamp(first)
	all := t.declarations()
	test := func(list []declared) (bool, error) {
		f, err := x.fold(t, list)
		if err != nil || f == nil {
			return false, err
		}
		return holds(ctx, f)
	}
	ok, err := test(all)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: with the declarations in front of all signals, the condition does not hold", ErrStandalone)
	}
	if all, err = reduce(all, test); err != nil {
		return nil, err
	}
	x.use(all)
	return x, nil
}

// Redeclared returns the extract with the declarations of another replay of its session,
// one that sees it through other declarations ([replay/variant] makes it), and the values
// of some paths then. It has what stands in the place of the declarations of x, and of the
// others those without which a value would be another. The error is [ErrStandalone] if
// these declarations do not come into force in front of all signals.
//
// [replay/variant]: https://pkg.go.dev/github.com/sajou-dev/sajou-go/replay/variant
func (x *Extract) Redeclared(ctx context.Context, r *replay.Replay, at replay.Moment, paths []StatePath) (*Extract, []Expected, error) {
	t, err := newTrial(ctx, r, at)
	if err != nil {
		return nil, nil, err
	}
	var fixed, others []declared
	for _, d := range t.declarations() {
		if x.from[d.seq] {
			fixed = append(fixed, d)
		} else {
			others = append(others, d)
		}
	}
	with := func(list []declared) []declared {
		all := slices.Concat(fixed, list)
		slices.SortStableFunc(all, func(a, b declared) int { return cmp.Compare(a.seq, b.seq) })
		return all
	}
	var want []Expected
	valuesWith := func(list []declared) (values []Expected, err error) {
		f, err := x.fold(t, with(list))
		if err != nil || f == nil {
			return nil, err
		}
		for _, p := range paths {
			v, _ := p.In(f)
			values = append(values, Expected{p.String(), v})
		}
		return values, ctx.Err()
	}
	if want, err = valuesWith(others); err != nil {
		return nil, nil, err
	}
	if want == nil {
		return nil, nil, fmt.Errorf("%w: the other declarations do not come into force in front of all signals", ErrStandalone)
	}
	others, err = reduce(others, func(list []declared) (bool, error) {
		values, err := valuesWith(list)
		return err == nil && reflect.DeepEqual(values, want), err
	})
	if err != nil {
		return nil, nil, err
	}
	y := &Extract{Signals: x.Signals, At: x.At, Rest: x.Rest}
	y.use(with(others))
	return y, want, nil
}

// use makes declarations those of the extract.
func (x *Extract) use(all []declared) {
	x.from = make(map[eventlog.Seq]bool, len(all))
	for _, d := range all {
		x.from[d.seq] = true
		if d.Word() == session.WordScene {
			x.Scene = d.Declaration
		} else {
			x.Declarations = append(x.Declarations, d.Declaration)
		}
	}
}

// declared is a declaration and the entry that has it.
type declared struct {
	language.Declaration
	seq eventlog.Seq
}

// declarations returns the declarations of the entries, in their order.
func (t *trial) declarations() (all []declared) {
	for i := range t.entries {
		for d, err := range session.DeclarationsOf(&t.entries[i]) {
			if err == nil {
				all = append(all, declared{d, t.entries[i].Seq})
			}
		}
	}
	return all
}

// stamp gives the signals timestamps of session time if theirs do not say it.
func (x *Extract) stamp(first time.Duration) {
	if len(x.Signals) == 0 {
		return
	}
	origin, ok := x.Signals[0].Timestamp.Nanos()
	for i, s := range x.Signals {
		ns, is := s.Timestamp.Nanos()
		ok = ok && is && ns-origin == int64(x.At[i])
	}
	if ok {
		return
	}
	for i, s := range x.Signals {
		s.Timestamp = signal.Float(float64(first+x.At[i]) / 1e6)
	}
}

// fold returns the state at the moment in a session of its own, nil if a declaration
// does not come into force.
func (x *Extract) fold(t *trial, all []declared) (*projection.Fold, error) {
	var d session.Drafts
	d.Opened(0, session.TimeWall)
	for _, one := range all {
		d.Declaration(0, one.Declaration)
	}
	for i, s := range x.Signals {
		d.Signal(x.At[i], s)
	}
	f := projection.NewFold(t.set, t.genesis)
	for i, draft := range d.List() {
		e := eventlog.Entry{Seq: eventlog.Seq(i + 1), Kind: draft.Kind, At: draft.At, Data: bytes.Clone(draft.Data)}
		if err := f.Apply(&e); err != nil {
			return nil, fmt.Errorf("provenance: %w", err)
		}
	}
	f.Advance(f.At() + x.Rest)
	return f, nil
}

// JSONL returns the signals as lines that package ingest imports.
func (x *Extract) JSONL() []byte {
	var b []byte
	for _, s := range x.Signals {
		b = append(s.AppendJSON(b), '\n')
	}
	return b
}

// DeclarationsJSON returns the declarations as a JSON array.
func (x *Extract) DeclarationsJSON() []byte {
	list := []json.RawMessage{}
	for _, d := range x.Declarations {
		list = append(list, d.Value().AppendJSON(nil))
	}
	return indented(list)
}

// Expected is a value at the end of a [Extract.Scenario].
type Expected struct {
	Path  string `json:"path"`
	Value any    `json:"value"` // null: there is none
}

// Scenario returns a scenario of package choreography/rehearsal: the declarations, the
// signals, the values that the stage has at the end, and the commands, unless they are
// nil. The times of the signals are those since the first.
func (x *Extract) Scenario(id, name string, values []Expected, commands []choreography.Command) []byte {
	type step struct {
		Signal  json.RawMessage `json:"signal,omitempty"`
		Advance *float64        `json:"advance,omitempty"`
	}
	script := []step{}
	now := time.Duration(0)
	advance := func(to time.Duration) {
		if ms := projection.Millis(to - now); to > now {
			script = append(script, step{Advance: &ms})
		}
		now = to
	}
	for i, s := range x.Signals {
		advance(x.At[i])
		script = append(script, step{Signal: s.AppendJSON(nil)})
	}
	zero := 0.0
	if end := now + x.Rest; end > now {
		advance(end)
	} else {
		script = append(script, step{Advance: &zero})
	}
	scenario := struct {
		ID          string                 `json:"id"`
		Name        string                 `json:"name"`
		Scene       json.RawMessage        `json:"scene,omitempty"`
		Definitions json.RawMessage        `json:"definitions"`
		Script      []step                 `json:"script"`
		Values      []Expected             `json:"values"`
		Expected    []choreography.Command `json:"expected,omitempty"`
	}{
		ID: id, Name: name, Definitions: x.DeclarationsJSON(), Script: script, Values: values, Expected: commands,
	}
	if x.Scene != nil {
		scenario.Scene = x.Scene.Value().AppendJSON(nil)
	}
	return indented(scenario)
}

// indented returns v as JSON for people.
func indented(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil // its parts are JSON already
	}
	return b.Bytes()
}
