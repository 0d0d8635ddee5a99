package provenance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	var declared []language.Declaration
	for i := range t.entries {
		if t.entries[i].Kind != eventlog.KindDefine {
			continue
		}
		if d, err := session.DeclarationOf(&t.entries[i]); err == nil {
			declared = append(declared, d)
		}
	}
	test := func(list []language.Declaration) (bool, error) {
		f, err := x.fold(t, list)
		if err != nil || f == nil {
			return false, err
		}
		return holds(ctx, f)
	}
	ok, err := test(declared)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: with the declarations in front of all signals, the condition does not hold", ErrStandalone)
	}
	if declared, err = reduce(declared, test); err != nil {
		return nil, err
	}
	for _, d := range declared {
		if d.Word() == session.WordScene {
			x.Scene = d
		} else {
			x.Declarations = append(x.Declarations, d)
		}
	}
	return x, nil
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
func (x *Extract) fold(t *trial, declared []language.Declaration) (*projection.Fold, error) {
	var d session.Drafts
	d.Opened(0, session.TimeWall)
	for _, declaration := range declared {
		d.Declaration(0, declaration)
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
