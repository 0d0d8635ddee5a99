package projection_test

import (
	"bytes"
	"fmt"
	"maps"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// fragile is a counter that panics in the function that it names.
type fragile struct {
	counter
	in *string
}

func (f *fragile) fail(where string) {
	if *f.in == where {
		panic("broken in " + where)
	}
}

func (f *fragile) Apply(e *eventlog.Entry)  { f.fail("Apply"); f.counter.Apply(e) }
func (f *fragile) Advance(at time.Duration) { f.fail("Advance"); f.counter.Advance(at) }
func (f *fragile) Append(dst []byte) []byte { f.fail("Append"); return f.counter.Append(dst) }
func (f *fragile) View() any                { f.fail("View"); return f.counter.View() }

// foreign is a contained projection that panics in the function that *in names, and
// returns no state from New for "nil", from Restore for "lost".
func foreign(in *string) projection.Projection {
	return projection.Contain(projection.Projection{
		Name: "foreign", Version: 7,
		New: func() projection.State {
			if *in == "nil" {
				return nil
			}
			f := &fragile{in: in}
			f.fail("New")
			return f
		},
		Restore: func(b []byte) (projection.State, error) {
			switch *in {
			case "lost":
				return nil, nil //nolint:nilnil // a mistake that a program can make
			case "Restore":
				panic("broken in Restore")
			}
			c, err := restoreCounter(b)
			if err != nil {
				return &fragile{in: in}, err
			}
			return &fragile{*c.(*counter), in}, nil
		},
	})
}

func entryAt(seq eventlog.Seq) *eventlog.Entry {
	return &eventlog.Entry{Seq: seq, At: time.Duration(seq) * time.Second, Kind: eventlog.KindSignal, Data: []byte{1, 2, 3}, Hash: eventlog.Hash{byte(seq)}}
}

func later(seq eventlog.Seq, at time.Duration) *eventlog.Entry {
	e := entryAt(seq)
	e.At = at
	return e
}

// A contained projection does as it would alone: same view, bytes behind its first byte,
// and an image that restores.
func TestContained(t *testing.T) {
	in := ""
	set := append(projection.Set{}, toys...)
	set = append(set, foreign(&in))
	f := projection.NewFold(set, genesis)
	for seq := range eventlog.Seq(3) {
		require.NoError(t, f.Apply(entryAt(seq+1)))
	}
	f.Advance(5 * time.Second)
	alone := counter{3, 9}
	require.Equal(t, alone.View(), f.View()["foreign"])
	require.Equal(t, append([]byte{0}, alone.Append(nil)...), f.State("foreign").Append(nil))
	require.Equal(t, append([]byte("kept\x00"), alone.Append(nil)...), f.State("foreign").Append([]byte("kept")))
	st, err := f.State("foreign").(*projection.Contained).State()
	require.NoError(t, err)
	require.Equal(t, alone.View(), st.View())
	names, errs := f.Failed()
	require.Empty(t, names)
	require.Empty(t, errs)
	c, err := f.Clone()
	require.NoError(t, err)
	require.Equal(t, f.Image(), c.Image())
	require.Equal(t, f.Digests(), c.Digests())
	require.NoError(t, c.Apply(later(4, 6*time.Second)))
	require.Equal(t, map[string]any{"entries": int64(4), "bytes": int64(12)}, c.View()["foreign"])
	require.Equal(t, alone.View(), f.View()["foreign"], "a clone is apart")
}

// A panic in any function of a contained projection makes its state fail, once, with the
// function and the entry in the failure, and leaves the others as they are.
func TestContainedFails(t *testing.T) {
	for where, want := range map[string]string{
		"New": "New panicked at entry 0: broken in New", "nil": "New panicked at entry 0: the state is nil",
		"Apply": "Apply panicked at entry 2: broken in Apply", "Advance": "Advance panicked at entry 0: broken in Advance",
		"Append": "Append panicked at entry 0: broken in Append", "View": "View panicked at entry 0: broken in View",
	} {
		in := ""
		if where == "New" || where == "nil" {
			in = where
		}
		set := projection.Set{toys[0], foreign(&in), toys[1]}
		f := projection.NewFold(set, genesis)
		require.NoError(t, f.Apply(entryAt(1)))
		in = where
		require.NoError(t, f.Apply(entryAt(2)))
		f.Advance(3 * time.Second)
		if where == "Append" {
			f.Digest("foreign")
		}
		require.Equal(t, map[string]any{"error": want}, f.View()["foreign"], where)
		in = "" // it stays failed
		require.NoError(t, f.Apply(later(3, 4*time.Second)))
		require.Equal(t, map[string]any{"error": want}, f.View()["foreign"], where)
		st, err := f.State("foreign").(*projection.Contained).State()
		require.Nil(t, st)
		require.EqualError(t, err, want)
		names, errs := f.Failed()
		require.Equal(t, []string{"foreign"}, names)
		require.EqualError(t, errs[0], want)
		require.Equal(t, "\x01"+want, string(f.State("foreign").Append(nil)))
		require.Equal(t, "kept\x01"+want, string(f.State("foreign").Append([]byte("kept"))))

		alone := projection.NewFold(toys, genesis)
		for _, seq := range []eventlog.Seq{1, 2} {
			require.NoError(t, alone.Apply(entryAt(seq)))
		}
		alone.Advance(3 * time.Second)
		require.NoError(t, alone.Apply(later(3, 4*time.Second)))
		for _, p := range toys {
			require.Equal(t, alone.Digest(p.Name), f.Digest(p.Name), p.Name)
		}

		// A clone has failed too. It has no image of its own.
		c, err := f.Clone()
		require.NoError(t, err)
		_, errs = c.Failed()
		require.EqualError(t, errs[0], want)
		img := f.Image()
		require.Len(t, img.Split(set), 1)
	}
	// Bytes half written by a function that panicked are taken back.
	in := ""
	f := projection.NewFold(projection.Set{foreign(&in)}, genesis)
	in = "Append"
	require.Equal(t, "x\x01Append panicked at entry 0: broken in Append", string(f.State("foreign").Append([]byte("x"))))
}

// A function of a contained projection that ends its goroutine makes the state fail too.
func TestContainedGoexit(t *testing.T) {
	p := projection.Contain(projection.Projection{
		Name: "foreign", Version: 1, Restore: restoreCounter,
		New: func() projection.State { return &exiting{} },
	})
	f := projection.NewFold(projection.Set{p}, genesis)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.View()
	}()
	<-done
	require.Equal(t, map[string]any{"error": "View panicked at entry 0: <nil>"}, f.View()["foreign"])
}

// exiting is a counter whose View ends the goroutine.
type exiting struct{ counter }

func (*exiting) View() any {
	runtime.Goexit()
	return nil
}

// Bytes that no contained state has written are refused, and so is a Restore that panics,
// fails or returns no state.
func TestContainedRestore(t *testing.T) {
	in := ""
	p := foreign(&in)
	sound := append([]byte{0}, (&counter{1, 2}).Append(nil)...)
	st, err := p.Restore(sound)
	require.NoError(t, err)
	require.Equal(t, sound, st.Append(nil))
	for _, data := range [][]byte{nil, {}, {2}, {2, 0}, bytes.Repeat([]byte{255}, 17)} {
		_, err := p.Restore(data)
		require.ErrorIs(t, err, projection.ErrCorrupt, "%x", data)
	}
	_, err = p.Restore([]byte{0, 1})
	require.EqualError(t, err, "want 16 bytes")
	for where, want := range map[string]string{"Restore": "Restore panicked at entry 0: broken in Restore", "lost": "Restore panicked at entry 0: the state is nil"} {
		in = where
		st, err := p.Restore(sound)
		require.Nil(t, st)
		require.EqualError(t, err, want)
	}
}

// Images of projections apart are kept beside that of the core, and a fold of both parts
// merges to the whole.
func TestSplitAndMerge(t *testing.T) {
	in := ""
	set := projection.Set{toys[0], foreign(&in), toys[1]}
	require.Equal(t, []string{"counter", "alarm"}, namesOf(set.Core()))
	require.Equal(t, []string{"foreign"}, namesOf(set.Apart()))
	whole := projection.NewFold(set, genesis)
	core, apart := projection.NewFold(set.Core(), genesis), projection.NewFold(set.Apart(), genesis)
	for _, f := range []*projection.Fold{whole, core, apart} {
		require.NoError(t, f.Apply(entryAt(1)))
		f.Advance(90 * time.Second)
	}
	img := whole.Image()
	require.Equal(t, []projection.Image{core.Image(), apart.Image()}, img.Split(set))
	merged := projection.Merge(set, core, apart)
	require.Equal(t, img, merged.Image())
	require.Equal(t, whole.View(), merged.View())
	require.PanicsWithValue(t, `projection: merge: no state of "foreign"`, func() { projection.Merge(set, core) })
}

// Only the bytes of a state that has not failed are an image of their own, also those of a
// state without bytes, and only of a projection that is apart.
func TestSplitKeepsSoundStates(t *testing.T) {
	in := ""
	set := projection.Set{foreign(&in), toys[0]}
	head := eventlog.Head{Seq: 4, Hash: eventlog.Hash{4}}
	for data, kept := range map[string]bool{"": false, "\x00": true, "\x00\x01": true, "\x01": false, "\x01failed": false, "\x02": false} {
		core := projection.Part{Name: "counter", Version: 1, Data: []byte(data)}
		apart := projection.Part{Name: "foreign", Version: 7, Data: []byte(data)}
		want := []projection.Image{{Head: head, At: time.Second, Parts: []projection.Part{core}}}
		if kept {
			want = append(want, projection.Image{Head: head, At: time.Second, Parts: []projection.Part{apart}})
		}
		img := projection.Image{Head: head, At: time.Second, Parts: []projection.Part{apart, core}}
		require.Equalf(t, want, img.Split(set), "%q", data)
	}
}

func namesOf(set projection.Set) (names []string) {
	for _, p := range set {
		names = append(names, p.Name)
	}
	return names
}

// States yields the states in the set's order, and stops when the reader does.
func TestStatesStop(t *testing.T) {
	f := projection.NewFold(toys, genesis)
	require.Equal(t, map[string]projection.State{"counter": f.State("counter"), "alarm": f.State("alarm")}, maps.Collect(f.States()))
	var names []string
	for name := range f.States() {
		names = append(names, name)
		break
	}
	require.Equal(t, []string{"counter"}, names)
	require.Nil(t, f.State("nobody"))
	require.Zero(t, f.Digest("nobody"))
}

// A set that does not pass Check makes no fold.
func TestNewFoldPanics(t *testing.T) {
	bad := projection.Set{{Name: "at"}}
	require.PanicsWithValue(t, bad.Check().Error(), func() { projection.NewFold(bad, genesis) })
	_, err := projection.RestoreFold(bad, sampleImage())
	require.EqualError(t, err, bad.Check().Error())
}

// Every byte of an image that is another gives an error or another image, and the error
// says where.
func TestDecodeImageErrors(t *testing.T) {
	whole, err := projection.AppendImage(nil, sampleImage())
	require.NoError(t, err)
	name := bytes.Index(whole, []byte("\x01a\x00")) // of the first part: its length comes first
	require.Positive(t, name)
	for _, tt := range []struct {
		at   int
		to   byte
		want string
	}{
		{name + 1, 0xff, "bad part name"},
		{name, 0, "bad part name"},
		{name, 255, "cut inside a part"},
		{name - 1, 1, "bytes after the last part"},
		{name - 1, 9, "cannot hold 9 parts"},
		{name + 6, 1, "claims"},
		{9 + eventlog.HashSize, 0x80, "negative time"},
	} {
		data := bytes.Clone(whole)
		data[tt.at] = tt.to
		_, err := projection.DecodeImage(data)
		require.ErrorIs(t, err, projection.ErrCorrupt, fmt.Sprint(tt))
		require.ErrorContains(t, err, tt.want, fmt.Sprint(tt))
	}
	twice := sampleImage()
	twice.Parts[1].Name = "b"
	data, err := projection.AppendImage(nil, twice)
	require.NoError(t, err)
	data[bytes.LastIndexByte(data, 'b')] = 'a'
	_, err = projection.DecodeImage(data)
	require.ErrorContains(t, err, `two parts named "a"`)
	// A part of no name and no data is as long as a header.
	none := bytes.Clone(whole[:name])
	none[name-1] = 1
	_, err = projection.DecodeImage(append(none, 0, 0, 0, 0, 1, 0, 0, 0, 0))
	require.ErrorIs(t, err, projection.ErrCorrupt)
	require.ErrorContains(t, err, "cannot hold 1 parts")
	// The same part behind one with a byte of data, so that all parts could fit.
	none[name-1] = 2
	none = append(none, 1, 'a', 0, 0, 0, 1, 0, 0, 0, 1, 'x')
	_, err = projection.DecodeImage(append(none, 0, 0, 0, 0, 1, 0, 0, 0, 0))
	require.ErrorContains(t, err, `bad part name ""`)
}
