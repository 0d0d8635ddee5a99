package projection_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
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
	f.Advance(time.Millisecond) // the past: nothing
	for n := range 2 {
		if err := f.Apply(&eventlog.Entry{Seq: eventlog.Seq(n + 1), At: time.Second}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"advance 1s", "advance 1s", "apply", "advance 1s", "apply"}
	if diff := cmp.Diff(want, f.State("alarm").(*alarm).calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
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
		"many":       make(projection.Set, 256),
	} {
		if set.Check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := toys.Check(); err != nil {
		t.Error(err)
	}
}

// genEntries draws a history whose entries have the hashes of nothing but are
// in order.
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

// From any image, taken at any entry and written down, the fold goes on as it
// does from the beginning, however time is cut on the way.
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
			if err := errors.Join(whole.Apply(e), parts.Apply(e)); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "restore") {
				data, err := projection.AppendImage(nil, parts.Image())
				if err != nil {
					t.Fatal(err)
				}
				img, err := projection.DecodeImage(data)
				if err != nil {
					t.Fatal(err)
				}
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
	if err := f.Apply(&eventlog.Entry{Seq: 1, Data: []byte{1, 2}}); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(&eventlog.Entry{Seq: 1, Data: []byte{1}}); err != nil {
		t.Fatal(err)
	}
	if f.Head().Seq != 0 || f.State("counter").(*counter).entries != 0 {
		t.Error("what happened to the clone happened to the original")
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
	if err != nil {
		t.Fatal(err)
	}
	whole, _ = bytes.CutPrefix(whole, []byte("kept"))
	got, err := projection.DecodeImage(whole)
	if err != nil {
		t.Fatal(err)
	}
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
	whole[0] = 2
	if _, err := projection.DecodeImage(whole); !errors.Is(err, projection.ErrVersion) {
		t.Errorf("version 2: err = %v, want ErrVersion", err)
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

// Whatever decodes encodes to the same bytes, so there is one form of an image.
func FuzzDecodeImage(f *testing.F) {
	whole, err := projection.AppendImage(nil, sampleImage())
	if err != nil {
		f.Fatal(err)
	}
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
