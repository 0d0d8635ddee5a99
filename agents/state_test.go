package agents_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/agents/view"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// busy returns a world with something of everything, and an observer that
// remembers something.
func busy(t testing.TB) (*agentworld.World, *view.Observer) {
	t.Helper()
	w := newWorld(t, smallWorld)
	o := view.NewObserver("b", compile(t, `{"policy":"fog","of":{"policy":"distance","limit":50},"capacity":5}`), 0)
	o.Begin(w.ReadOnly, 0)
	for i, e := range []agentworld.Effect{
		effect(t, 1, "Speak", "a", `{"text":"hi"}`),
		effect(t, 2, "Interact", "a", `{"target_id":"c"}`),
		effect(t, 3, "Move", "a", `{"to":[99,1.5]}`),
	} {
		c, err := w.Apply(e)
		require.NoErrorf(t, err, "effect %d", i)
		o.Update(w.ReadOnly, e, c)
	}
	return w, o
}

// TestStateTruncated shows that no beginning of a state is taken for a state.
func TestStateTruncated(t *testing.T) {
	w, o := busy(t)
	restoreWorld := func(b []byte) error { _, err := agentworld.RestoreWorld(b, handlers...); return err }
	restoreObserver := func(b []byte) error { _, err := view.RestoreObserver(b, w.ReadOnly, o.Policy()); return err }
	for name, tt := range map[string]struct {
		whole   []byte
		restore func([]byte) error
	}{
		"world":    {w.AppendState(nil), restoreWorld},
		"observer": {o.AppendState(nil, w.ReadOnly), restoreObserver},
	} {
		require.NoErrorf(t, tt.restore(tt.whole), "%s", name)
		for n := range tt.whole {
			if err := tt.restore(tt.whole[:n]); !errors.Is(err, agentworld.ErrState) {
				t.Errorf("%s: %d of %d bytes: err = %v, want ErrState", name, n, len(tt.whole), err)
			}
		}
		if err := tt.restore(append(bytes.Clone(tt.whole), 0xc0)); !errors.Is(err, agentworld.ErrState) {
			t.Errorf("%s: a byte too many: err = %v, want ErrState", name, err)
		}
		for i := range tt.whole {
			for bit := range 8 {
				flipped := bytes.Clone(tt.whole)
				flipped[i] ^= 1 << bit
				if err := tt.restore(flipped); err != nil && !errors.Is(err, agentworld.ErrState) && !errors.Is(err, agentworld.ErrStateVersion) {
					t.Errorf("%s: err = %v, want ErrState or ErrStateVersion", name, err)
				}
			}
		}
	}
}

// TestStateVersion shows that another version has an error of its own, before
// anything else is judged; and that a handler's version is one of them.
func TestStateVersion(t *testing.T) {
	other := msgp.AppendInt(msgp.AppendArrayHeader(nil, 3), 99)
	if _, err := agentworld.RestoreWorld(other); !errors.Is(err, agentworld.ErrStateVersion) || errors.Is(err, agentworld.ErrState) {
		t.Errorf("err = %v, want ErrStateVersion alone", err)
	}
	w, o := busy(t)
	if _, err := view.RestoreObserver(other, w.ReadOnly, o.Policy()); !errors.Is(err, agentworld.ErrStateVersion) || errors.Is(err, agentworld.ErrState) {
		t.Errorf("err = %v, want ErrStateVersion alone", err)
	}
	changed := handlers[0]
	changed.Version++
	for _, list := range [][]agentworld.Handler{nil, {changed}} {
		if _, err := agentworld.RestoreWorld(w.AppendState(nil), list...); !errors.Is(err, agentworld.ErrStateVersion) {
			t.Errorf("err = %v, want ErrStateVersion", err)
		}
	}
}

// TestRestoreObserverElsewhere shows that an observer is not taken up over
// another world or through another lens.
func TestRestoreObserverElsewhere(t *testing.T) {
	w, o := busy(t)
	state := o.AppendState(nil, w.ReadOnly)
	if _, err := view.RestoreObserver(state, newWorld(t, smallWorld).ReadOnly, o.Policy()); !errors.Is(err, agentworld.ErrState) {
		t.Errorf("another world: err = %v, want ErrState", err)
	}
	if _, err := view.RestoreObserver(state, w.ReadOnly, compile(t, `{"policy":"everything"}`)); !errors.Is(err, agentworld.ErrState) {
		t.Errorf("another lens: err = %v, want ErrState", err)
	}
}

func FuzzRestoreWorld(f *testing.F) {
	w, _ := busy(f)
	f.Add(w.AppendState(nil))
	empty, err := agentworld.NewWorld(handlers...)
	require.NoError(f, err)
	f.Add(empty.AppendState(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := agentworld.RestoreWorld(b, handlers...)
		if err != nil {
			if !errors.Is(err, agentworld.ErrState) && !errors.Is(err, agentworld.ErrStateVersion) {
				t.Errorf("err = %v, want ErrState or ErrStateVersion", err)
			}
			return
		}
		if again := w.AppendState(nil); !bytes.Equal(again, b) {
			t.Errorf("state %x comes back as %x", b, again)
		}
		if _, err := agentworld.ParseWorld(w.Value(), handlers...); err != nil {
			t.Errorf("its document is none: %v", err)
		}
		if _, err := w.Apply(effect(t, 9, "Move", "a", `{"to":[1,2]}`)); err != nil && !errors.Is(err, agentworld.ErrLimit) {
			t.Errorf("it cannot go on: %v", err)
		}
	})
}

func FuzzRestoreObserver(f *testing.F) {
	w, o := busy(f)
	f.Add(o.AppendState(nil, w.ReadOnly))
	f.Add(view.NewObserver("a", o.Policy(), 0).AppendState(nil, w.ReadOnly))
	f.Fuzz(func(t *testing.T, b []byte) {
		restored, err := view.RestoreObserver(b, w.ReadOnly, o.Policy())
		if err != nil {
			if !errors.Is(err, agentworld.ErrState) && !errors.Is(err, agentworld.ErrStateVersion) {
				t.Errorf("err = %v, want ErrState or ErrStateVersion", err)
			}
			return
		}
		if again := restored.AppendState(nil, w.ReadOnly); !bytes.Equal(again, b) {
			t.Errorf("state %x comes back as %x", b, again)
		}
		if restored.Digest() != restored.View().Digest() {
			t.Error("the digest is not that of the view")
		}
	})
}

// FuzzParseWorld reads any document, and any effect upon it.
func FuzzParseWorld(f *testing.F) {
	f.Add([]byte(smallWorld), []byte(`{"kind":"Speak","source_id":"a","payload":{"text":"hi","channel":"private","target_id":"b"}}`))
	f.Add([]byte(town), []byte(`{"kind":"EntityRemoved","payload":{"entity_id":"me"},"sim_time":1.5,"global_seq":3}`))
	f.Fuzz(func(t *testing.T, world, effect []byte) {
		v, err1 := signal.ParseValue(world)
		e, err2 := signal.ParseValue(effect)
		if err1 != nil || err2 != nil {
			return
		}
		w, err := agentworld.ParseWorld(v, handlers...)
		if err != nil {
			return
		}
		parsed, err := agentworld.ParseEffect(e)
		if err != nil {
			return
		}
		_, refusal := w.Plan(parsed)
		if _, err := w.Apply(parsed); (err == nil) != (refusal == nil) {
			t.Errorf("Plan says %v, Apply %v", refusal, err)
		}
		if _, err := agentworld.RestoreWorld(w.AppendState(nil), handlers...); err != nil {
			t.Errorf("its state is none: %v", err)
		}
	})
}
