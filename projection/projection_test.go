package projection_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

var genesis = eventlog.Hash{1, 2, 3}

func Example() {
	f := projection.NewFold(toys, genesis)
	for n := range 3 {
		e := eventlog.Entry{Seq: eventlog.Seq(n + 1), At: time.Duration(n) * time.Second, Data: []byte{5}}
		if err := f.Apply(&e); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(f.View())
	f.Advance(f.At() + 5*time.Millisecond)
	fmt.Println(f.View()["alarm"], f.Digests()[1])
	// Output:
	// map[alarm:map[rung:2 waiting:1] at:2000 counter:map[bytes:3 entries:3] seq:3]
	// map[rung:3 waiting:0] alarm/3 da77d6afee8a386f
}

// Apply advances before it applies, in both cases to the entry's time, even
// when that is the time already reached.
func TestApplyOrder(t *testing.T) {
	f := projection.NewFold(toys, genesis)
	f.Advance(time.Second)
	f.Advance(time.Millisecond) // an earlier time changes nothing
	for n := range 2 {
		require.NoError(t, f.Apply(&eventlog.Entry{Seq: eventlog.Seq(n + 1), At: time.Second}))
	}
	want := []string{"advance 1s", "advance 1s", "apply", "advance 1s", "apply"}
	if diff := cmp.Diff(want, f.State("alarm").(*alarm).calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// Advance to the time already reached completes the instant: what the last entry made due
// then happens.
func TestAdvanceCompletesTheInstant(t *testing.T) {
	f := projection.NewFold(toys, genesis)
	require.NoError(t, f.Apply(&eventlog.Entry{Seq: 1, At: time.Second, Data: []byte{0}}))
	require.Equal(t, map[string]any{"rung": int64(0), "waiting": int64(1)}, f.View()["alarm"])
	f.Advance(f.At())
	require.Equal(t, map[string]any{"rung": int64(1), "waiting": int64(0)}, f.View()["alarm"])
	require.Equal(t, time.Second, f.At())
}

func TestApplyRefuses(t *testing.T) {
	f := projection.NewFold(toys, genesis)
	f.Advance(time.Second)
	before := f.Image()
	for _, e := range []eventlog.Entry{
		{Seq: 0, At: time.Second},
		{Seq: 2, At: time.Second},
		{Seq: 1, At: time.Second - 1},
	} {
		if err := f.Apply(&e); !errors.Is(err, projection.ErrOrder) {
			t.Errorf("entry %d at %v: err = %v, want ErrOrder", e.Seq, e.At, err)
		}
	}
	if diff := cmp.Diff(before, f.Image()); diff != "" {
		t.Errorf("a refused entry changed the fold:\n%s", diff)
	}
}

// many returns a set of n projections with distinct names.
func many(n int) projection.Set {
	set := make(projection.Set, n)
	for i := range set {
		set[i] = toys[0]
		set[i].Name = fmt.Sprint("p", i)
	}
	return set
}

func TestSetCheck(t *testing.T) {
	ok := toys[0]
	named := func(name string) projection.Projection { p := ok; p.Name = name; return p }
	for name, set := range map[string]projection.Set{
		"no name":    {named("")},
		"seq":        {named("seq")},
		"at":         {named("at")},
		"long":       {named(strings.Repeat("x", 256))},
		"not UTF-8":  {named("\xff")},
		"twice":      {ok, ok},
		"no New":     {{Name: "a", Restore: ok.Restore}},
		"no Restore": {{Name: "a", New: ok.New}},
		"many":       many(projection.MaxProjections + 1),
	} {
		if set.Check() == nil {
			t.Errorf("%s: no error", name)
		}
		// An invalid set restores no image, even a matching one.
		img := projection.Image{Parts: make([]projection.Part, len(set))}
		for i, p := range set {
			img.Parts[i] = projection.Part{Name: p.Name, Version: p.Version, Data: make([]byte, 16)}
		}
		if _, err := projection.RestoreFold(set, img); err == nil || errors.Is(err, projection.ErrMismatch) {
			t.Errorf("%s: restored: %v", name, err)
		}
	}
	assert.NoError(t, many(projection.MaxProjections).Check())
	assert.NoError(t, projection.Set{named(strings.Repeat("x", 255))}.Check())
	assert.NoError(t, toys.Check())
}

// genEntries draws a history in order, whose entries have arbitrary hashes.
func genEntries(t *rapid.T) []eventlog.Entry {
	var at time.Duration
	entries := make([]eventlog.Entry, rapid.IntRange(0, 30).Draw(t, "entries"))
	for i := range entries {
		at += time.Duration(rapid.IntRange(0, 50).Draw(t, "pause")) * time.Millisecond
		entries[i] = eventlog.Entry{
			Seq: eventlog.Seq(i + 1), Hash: eventlog.Hash{byte(i), 7}, At: at,
			Data: rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "data"),
		}
	}
	return entries
}

// The fold continues from an encoded image of any entry as it does from the
// beginning, for any steps of Advance.
func TestRestoreProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := genEntries(t)
		whole := projection.NewFold(toys, genesis)
		parts := projection.NewFold(toys, genesis)
		for i := range entries {
			e := &entries[i]
			if span := e.At - parts.At(); span > 0 {
				parts.Advance(parts.At() + time.Duration(rapid.Int64Range(0, int64(span)).Draw(t, "cut")))
			}
			require.NoError(t, errors.Join(whole.Apply(e), parts.Apply(e)))
			if rapid.Bool().Draw(t, "restore") {
				data, err := projection.AppendImage(nil, parts.Image())
				require.NoError(t, err)
				img, err := projection.DecodeImage(data)
				require.NoError(t, err)
				if parts, err = projection.RestoreFold(toys, img); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(whole.Digests(), parts.Digests()); diff != "" {
				t.Fatalf("digests at %d:\n%s", e.Seq, diff)
			}
			if diff := cmp.Diff(whole.View(), parts.View()); diff != "" {
				t.Fatalf("views at %d:\n%s", e.Seq, diff)
			}
		}
	})
}

func TestDigest(t *testing.T) {
	f := projection.NewFold(toys, genesis)
	require.NoError(t, f.Apply(&eventlog.Entry{Seq: 1, Data: []byte{1, 2}}))
	for _, d := range f.Digests() {
		if want := xxhash.Sum64(f.State(d.Name).Append(nil)); d.Sum != want || f.Digest(d.Name) != want {
			t.Errorf("%v, Digest %x, want %x", d, f.Digest(d.Name), want)
		}
	}
	if f.Digest("none") != 0 || f.State("none") != nil {
		t.Error("there is a projection named none")
	}
}

func TestClone(t *testing.T) {
	f := projection.NewFold(toys, genesis)
	g, err := f.Clone()
	require.NoError(t, err)
	require.NoError(t, g.Apply(&eventlog.Entry{Seq: 1, Data: []byte{1}}))
	if f.Head().Seq != 0 || f.State("counter").(*counter).entries != 0 {
		t.Error("a change of the clone changed the original")
	}
}

func TestRestoreMismatch(t *testing.T) {
	img := projection.NewFold(toys, genesis).Image()
	newer := append(projection.Set{}, toys...)
	newer[1].Version++
	for name, set := range map[string]projection.Set{"version": newer, "fewer": toys[:1], "order": {toys[1], toys[0]}} {
		if _, err := projection.RestoreFold(set, img); !errors.Is(err, projection.ErrMismatch) {
			t.Errorf("%s: err = %v, want ErrMismatch", name, err)
		}
	}
	early := img
	early.At = -1
	if _, err := projection.RestoreFold(toys, early); !errors.Is(err, projection.ErrCorrupt) {
		t.Errorf("before all time: err = %v, want ErrCorrupt", err)
	}
	img.Parts[0].Data = []byte("short")
	if _, err := projection.RestoreFold(toys, img); err == nil || errors.Is(err, projection.ErrMismatch) {
		t.Errorf("bad bytes: err = %v", err)
	}
}

func sampleImage() projection.Image {
	return projection.Image{
		Head: eventlog.Head{Seq: 812, Hash: genesis}, At: 1500 * time.Millisecond,
		Parts: []projection.Part{{Name: "a", Version: 1, Data: []byte("state")}, {Name: "béta", Version: 2, Data: []byte{}}},
	}
}

func TestImageRoundTrip(t *testing.T) {
	whole, err := projection.AppendImage([]byte("kept"), sampleImage())
	require.NoError(t, err)
	whole, _ = bytes.CutPrefix(whole, []byte("kept"))
	got, err := projection.DecodeImage(whole)
	require.NoError(t, err)
	if diff := cmp.Diff(sampleImage(), got); diff != "" {
		t.Errorf("image (-want +got):\n%s", diff)
	}
	for n := range whole {
		if _, err := projection.DecodeImage(whole[:n]); !errors.Is(err, projection.ErrCorrupt) {
			t.Errorf("%d of %d bytes: err = %v, want ErrCorrupt", n, len(whole), err)
		}
	}
	if _, err := projection.DecodeImage(append(whole, 0)); !errors.Is(err, projection.ErrCorrupt) {
		t.Errorf("a byte more: err = %v, want ErrCorrupt", err)
	}
	for _, first := range [][]byte{{2}, {0, 0}} {
		if _, err := projection.DecodeImage(first); !errors.Is(err, projection.ErrVersion) {
			t.Errorf("%x: err = %v, want ErrVersion", first, err)
		}
	}
	whole[0] = 2
	if _, err := projection.DecodeImage(whole); !errors.Is(err, projection.ErrVersion) {
		t.Errorf("version 2: err = %v, want ErrVersion", err)
	}
}

// The least and the largest image of the format are written and read.
func TestImageBounds(t *testing.T) {
	most := make([]projection.Part, projection.MaxProjections)
	for i := range most {
		most[i] = projection.Part{Name: fmt.Sprint("p", i), Version: math.MaxUint32, Data: []byte{byte(i)}}
	}
	for name, img := range map[string]projection.Image{
		"no parts":                    {Parts: []projection.Part{}},
		"a part of one byte, no data": {Parts: []projection.Part{{Name: "a", Data: []byte{}}}},
		"the last instant":            {At: math.MaxInt64, Parts: []projection.Part{}},
		"the longest name":            {Parts: []projection.Part{{Name: strings.Repeat("x", 255), Data: []byte{}}}},
		"most parts":                  {Head: eventlog.Head{Seq: math.MaxUint64}, Parts: most},
	} {
		data, err := projection.AppendImage(nil, img)
		require.NoError(t, err, name)
		got, err := projection.DecodeImage(data)
		require.NoError(t, err, name)
		require.Equal(t, img, got, name)
	}
}

func TestAppendImageRefuses(t *testing.T) {
	for name, change := range map[string]func(*projection.Image){
		"negative time": func(img *projection.Image) { img.At = -1 },
		"no name":       func(img *projection.Image) { img.Parts[0].Name = "" },
		"same name":     func(img *projection.Image) { img.Parts[1].Name = "a" },
		"many parts":    func(img *projection.Image) { img.Parts = make([]projection.Part, 256) },
	} {
		img := sampleImage()
		change(&img)
		if _, err := projection.AppendImage(nil, img); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Decoded bytes encode to the same bytes, so an image has exactly one form.
func FuzzDecodeImage(f *testing.F) {
	whole, err := projection.AppendImage(nil, sampleImage())
	require.NoError(f, err)
	f.Add(whole)
	f.Add(whole[:50])
	f.Fuzz(func(t *testing.T, data []byte) {
		img, err := projection.DecodeImage(data)
		if err != nil {
			return
		}
		again, err := projection.AppendImage(nil, img)
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("decoded %x\nencoded %x, %v", data, again, err)
		}
	})
}

// placed is a counter that checks its position.
type placed struct{ counter }

func (p *placed) Fits(head eventlog.Head, at time.Duration) error {
	if p.entries != uint64(head.Seq) || at != time.Second {
		return errors.New("of another place")
	}
	return nil
}

// RestoreFold refuses a state that does not fit the image's position.
func TestRestoreAsksForThePlace(t *testing.T) {
	set := projection.Set{{
		Name: "placed", Version: 1,
		New: func() projection.State { return new(placed) },
		Restore: func(data []byte) (projection.State, error) {
			st, err := restoreCounter(data)
			if err != nil {
				return nil, err
			}
			return &placed{*st.(*counter)}, nil
		},
	}}
	f := projection.NewFold(set, genesis)
	require.NoError(t, f.Apply(&eventlog.Entry{Seq: 1, At: time.Second}))
	whole := f.Image()
	if _, err := projection.RestoreFold(set, whole); err != nil {
		t.Error(err)
	}
	farther, later := whole, whole
	farther.Head.Seq, later.At = 2, 2*time.Second
	for name, img := range map[string]projection.Image{"entry": farther, "time": later} {
		if _, err := projection.RestoreFold(set, img); !errors.Is(err, projection.ErrCorrupt) {
			t.Errorf("another %s: err = %v, want ErrCorrupt", name, err)
		}
	}
}

// A projection apart cannot be joined to others, since it is folded alone. A fold has the set that
// it was made of.
func TestApartWithoutJoin(t *testing.T) {
	set := projection.Set{toys[0]}
	require.NoError(t, set.Check())
	set[0].Join = func(projection.State, func(name string) projection.State) {}
	require.NoError(t, set.Check())
	set[0].Apart = true
	require.EqualError(t, set.Check(), fmt.Sprintf("projection: %q is apart and has a Join", toys[0].Name))
	set[0].Join = nil
	require.NoError(t, set.Check())

	f := projection.NewFold(set, genesis)
	require.Len(t, f.Set(), 1)
	require.Equal(t, toys[0].Name, f.Set()[0].Name)
}
