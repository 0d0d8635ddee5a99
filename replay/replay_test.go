package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// song is four entries: at 100 ms a note of 50 ms, at 120 ms one of 200 ms, at 120 ms
// one of 10 ms, and at 500 ms an interruption while no note plays.
func song() *tape {
	s := &tape{}
	s.add(100*ms, 50)
	s.add(20*ms, 200)
	s.add(0, 10)
	s.add(380*ms, 0)
	return s
}

func Example() {
	ctx := context.Background()
	r := replay.Open(song(), toys, nil)
	a, err := replay.ParseAddress("1+10ms")
	if err != nil {
		fmt.Println(err)
	}
	m, err := r.Resolve(ctx, a)
	if err != nil {
		fmt.Println(err)
	}
	f, err := r.At(ctx, m)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(f.View())
	_, err = r.At(ctx, replay.Moment{Seq: 1, Offset: time.Second})
	fmt.Println(err)
	// Output:
	// map[at:110 band:map[finished:0 running:1 sum:51] seq:1]
	// no such address "1+1s": entry 2 begins 20ms after 1, so the offset goes up to 20ms
}

func ExampleReplay_Scan() {
	r := replay.Open(song(), toys, nil)
	finished := replay.EntryPredicate{Needs: replay.NeedsState, Test: func(_ context.Context, s *replay.ScanStep) (bool, error) {
		return s.View()["band"].(map[string]any)["finished"].(int64) > 0, nil
	}}
	for hit, err := range r.Scan(context.Background(), 1, 4, finished, replay.First) {
		fmt.Println(hit.Entry.Seq, err)
	}
	// Output: 4 <nil>
}

func genTape(t *rapid.T) *tape {
	s := &tape{}
	for range rapid.IntRange(1, 40).Draw(t, "entries") {
		s.add(time.Duration(rapid.IntRange(0, 30).Draw(t, "pause"))*ms, byte(rapid.IntRange(0, 60).Draw(t, "data")))
	}
	return s
}

// genMoment draws a moment that s has.
func genMoment(t *rapid.T, s *tape) replay.Moment {
	n := rapid.IntRange(0, len(s.entries)).Draw(t, "seq")
	room := 100 * ms
	if n < len(s.entries) {
		room = s.entries[n].At
		if n > 0 {
			room -= s.entries[n-1].At
		}
	}
	return replay.Moment{Seq: eventlog.Seq(n), Offset: time.Duration(rapid.Int64Range(0, int64(room)).Draw(t, "offset"))}
}

// slow computes the state at m by the simplest algorithm.
func slow(t interface{ Fatal(...any) }, s *tape, m replay.Moment) *projection.Fold {
	f := projection.NewFold(toys, genesis)
	for i := range s.entries[:m.Seq] {
		if err := f.Apply(&s.entries[i]); err != nil {
			t.Fatal(err)
		}
	}
	f.Advance(f.At() + m.Offset)
	return f
}

// The state at a moment is the same from the beginning, from any image, and with a
// cursor from any position; images that do not match are skipped.
func TestAtProperty(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		s := genTape(t)
		every := eventlog.Seq(rapid.IntRange(1, 9).Draw(t, "every"))
		images := takeImages(s, func(n eventlog.Seq) bool { return n%every == 0 })
		for i := range images {
			switch rapid.IntRange(0, 5).Draw(t, "spoil") {
			case 0:
				images[i].Head.Hash[31]++
			case 1:
				images[i].At += 5 * ms
			case 2:
				images[i].Parts[0].Data = images[i].Parts[0].Data[:7]
			}
		}
		r := replay.Open(s, toys, images)
		c := r.Cursor()
		for range 5 {
			m := genMoment(t, s)
			want := slow(t, s, m)
			got, err := r.At(ctx, m)
			require.NoError(t, err)
			if diff := cmp.Diff(want.Image(), got.Image()); diff != "" {
				t.Fatalf("At(%v):\n%s", m, diff)
			}
			require.NoError(t, c.Seek(ctx, m))
			if diff := cmp.Diff(want.Image(), c.Fold().Image()); diff != "" || c.Moment() != m {
				t.Fatalf("cursor at %v, sought %v:\n%s", c.Moment(), m, diff)
			}
		}
	})
}

// Replay uses images from a real store, but not those of another chain.
func TestStored(t *testing.T) {
	ctx := context.Background()
	s := &tape{}
	for range 50 {
		s.add(10*ms, 7)
	}
	store, err := snapshot.Open(filepath.Join(t.TempDir(), "snapshots.db"), snapshot.Config{})
	require.NoError(t, err)
	defer func() { _ = store.Close() }()
	for _, img := range takeImages(s, func(n eventlog.Seq) bool { return n%10 == 0 }) {
		if img.Head.Seq == 40 {
			img.Head.Hash[0]++
		}
		require.NoError(t, store.Put("tape", img))
	}
	r := replay.Open(s, toys, replay.Stored(store, s, toys))
	for _, tt := range []struct {
		seq   eventlog.Seq
		reads int
	}{{35, 6}, {30, 1}, {45, 1 + 16}, {5, 5}} {
		s.reads.Store(0)
		m := replay.Moment{Seq: tt.seq}
		f, err := r.At(ctx, m)
		require.NoError(t, err)
		if diff := cmp.Diff(slow(t, s, m).Digests(), f.Digests()); diff != "" {
			t.Errorf("at %d:\n%s", tt.seq, diff)
		}
		if s.reads.Load() != int64(tt.reads) {
			t.Errorf("at %d: %d entries read, want %d", tt.seq, s.reads.Load(), tt.reads)
		}
	}
}

func TestAtErrors(t *testing.T) {
	ctx := context.Background()
	r := replay.Open(song(), toys, nil)
	for _, m := range []replay.Moment{{Seq: 5}, {Seq: 1, Offset: 21 * ms}, {Seq: 1, Offset: -1}, {Seq: 2, Offset: 1}, {Seq: 4, Offset: 1<<63 - 1}, {Seq: 1 << 63}} {
		if _, err := r.At(ctx, m); !errors.Is(err, replay.ErrNoAddress) {
			t.Errorf("At(%v): err = %v, want ErrNoAddress", m, err)
		}
		if err := r.Cursor().Seek(ctx, m); !errors.Is(err, replay.ErrNoAddress) {
			t.Errorf("Seek(%v): err = %v, want ErrNoAddress", m, err)
		}
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if _, err := r.At(stopped, replay.Moment{Seq: 3}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: err = %v", err)
	}
}

func TestCursorSteps(t *testing.T) {
	ctx := context.Background()
	c := replay.Open(song(), toys, nil).Cursor()
	step := func(n int) func() error { return func() error { return c.Step(ctx, n) } }
	span := func(d time.Duration) func() error { return func() error { return c.StepTime(ctx, d) } }
	command := func(n int) func() error { return func() error { return c.StepCommand(ctx, n) } }
	for _, tt := range []struct {
		name string
		do   func() error
		want string
		ok   bool
	}{
		{"entry", step(1), "1", true},
		{"entry back", step(-1), "0", true},
		{"before the beginning", step(-1), "0", false},
		{"two", step(2), "2", true},
		{"three more", step(3), "2", false},
		{"50 ms back", span(-10 * ms), "1+10ms", true},
		{"to the entry", step(-1), "1", true},
		{"the least span", span(1), "1+1ns", true},
		{"to the entry", step(-1), "1", true},
		{"the least span", span(1), "1+1ns", true},
		{"two back", step(-2), "0", true},
		{"the first entry", step(1), "1", true},
		{"second back", span(-time.Second), "0", true},
		{"to the time of two entries", span(120 * ms), "3", true},
		{"into the pause", span(5 * ms), "3+5ms", true},
		{"command", command(1), "3+10ms", true}, // the note of 10
		{"command", command(1), "3+30ms", true}, // the note of 50
		{"command", command(1), "3+200ms", true},
		{"no command", command(1), "3+200ms", false},
		{"command back", command(-1), "3+30ms", true},
		{"command back", command(-1), "3+10ms", true},
		{"command back", command(-1), "3", true},
		{"command back", command(-1), "2", true},
		{"command back", command(-1), "1", true},
		{"no command before", command(-1), "1", false},
		{"command", command(1), "2", true},
		{"end", step(2), "4", true},
		{"beyond the end", span(time.Hour), "4+1h0m0s", true},
		{"command back", command(-1), "3+200ms", true},
	} {
		err := tt.do()
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, replay.ErrNoAddress) {
			t.Errorf("%s: err = %v", tt.name, err)
		}
		if got := c.Moment().String(); got != tt.want {
			t.Fatalf("%s: at %s, want %s", tt.name, got, tt.want)
		}
		if diff := cmp.Diff(slow(t, song(), c.Moment()).Image(), c.Fold().Image()); diff != "" {
			t.Fatalf("%s: state at %s:\n%s", tt.name, tt.want, diff)
		}
	}
}

// Stepping by command forward and back visits the same moments, also across
// the intervals in which images are kept.
func TestStepCommandBothWays(t *testing.T) {
	ctx := context.Background()
	s := &tape{}
	for n := range 2500 {
		data := byte(0)
		if n%400 == 399 || n == 999 || n == 1000 {
			data = 3
		}
		s.add(10*ms, data)
	}
	c := replay.Open(s, toys, nil).Cursor()
	var there, back []string
	for c.StepCommand(ctx, 1) == nil {
		there = append(there, c.Moment().String())
	}
	require.NoError(t, c.Seek(ctx, replay.Moment{Seq: 2500}))
	s.reads.Store(0)
	for c.StepCommand(ctx, -1) == nil {
		back = append([]string{c.Moment().String()}, back...)
	}
	if diff := cmp.Diff(there, back); diff != "" || len(there) != 16 {
		t.Errorf("%d there (-there +back):\n%s", len(there), diff)
	}
	if limit := int64(len(back)) * 3000; s.reads.Load() > limit {
		t.Errorf("%d entries read on the way back, want less than %d", s.reads.Load(), limit)
	}
}

// The commands of two adjacent ranges are those of the whole range, and the frame
// length affects only updates.
func TestCommandsProperty(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		s := genTape(t)
		r := replay.Open(s, toys, takeImages(s, func(n eventlog.Seq) bool { return n%5 == 0 }))
		var whole, framed, parts recorder
		end := replay.Moment{Seq: s.Head().Seq, Offset: 100 * ms}
		require.NoError(t, r.Commands(ctx, replay.Moment{}, end, 0, &whole))
		require.NoError(t, r.Commands(ctx, replay.Moment{}, end, 7*ms, &framed))
		if diff := cmp.Diff(whole.commands, framed.commands); diff != "" {
			t.Fatalf("frames changed commands:\n%s", diff)
		}
		at := genMoment(t, s)
		next := at
		next.Offset++
		require.NoError(t, r.Commands(ctx, replay.Moment{}, at, 0, &parts))
		var err error
		if next.Compare(end) <= 0 { // otherwise the first part is the whole range
			err = r.Commands(ctx, next, end, 0, &parts)
		}
		if errors.Is(err, replay.ErrNoAddress) { // the next moment is the next entry
			err = r.Commands(ctx, replay.Moment{Seq: at.Seq + 1}, end, 0, &parts)
		}
		require.NoError(t, err)
		if diff := cmp.Diff(whole.commands, parts.commands); diff != "" {
			t.Fatalf("cut at %v (-whole +parts):\n%s", at, diff)
		}
	})
}

func TestCommands(t *testing.T) {
	ctx := context.Background()
	r := replay.Open(song(), toys, nil)
	var rec recorder
	err := r.Commands(ctx, replay.Moment{Seq: 3, Offset: 10 * ms}, replay.Moment{Seq: 3, Offset: 200 * ms}, 50*ms, &rec)
	require.NoError(t, err)
	if diff := cmp.Diff([]string{"complete 130ms", "complete 150ms", "complete 320ms"}, rec.commands); diff != "" {
		t.Errorf("commands:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"150ms", "200ms", "250ms", "300ms"}, rec.updates); diff != "" {
		t.Errorf("updates:\n%s", diff)
	}
	assert.ErrorIs(t, r.Commands(ctx, replay.Moment{Seq: 3}, replay.Moment{Seq: 1}, 0, &rec), replay.ErrSyntax, "backwards")
}

// json-patch, a library independent of jsondiff, applies the diff to a and gets b.
func TestDiffProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "a/b", "~", "é"}), genValue(3), 0, 4)
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		diff, err := replay.Diff(a, b)
		require.NoError(t, err)
		before, after := marshal(t, a), marshal(t, b)
		patch, err := jsonpatch.DecodePatch(diff)
		require.NoErrorf(t, err, "%s", diff)
		got, err := patch.Apply(before)
		// Its own Equal fails on null in an array.
		if err != nil || !cmp.Equal(unmarshal(t, got), unmarshal(t, after)) {
			t.Fatalf("%s\nwith %s\nis   %s, %v\nwant %s", before, diff, got, err, after)
		}
		if same, err := replay.Diff(a, a); string(same) != "[]" || err != nil {
			t.Fatalf("Diff with itself: %s, %v", same, err)
		}
	})
}

func genValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		top := 6
		if depth == 0 {
			top = 4
		}
		switch rapid.IntRange(0, top).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.SampledFrom([]int64{0, 1, 1<<53 + 1, 1<<63 - 1}).Draw(t, "int")
		case 3:
			return rapid.SampledFrom([]string{"", "x", "<é>"}).Draw(t, "string")
		case 4:
			return rapid.SampledFrom([]float64{0.5, 1e30, -2.25}).Draw(t, "float")
		case 5:
			return rapid.SliceOfN(genValue(depth-1), 0, 4).Draw(t, "array")
		}
		return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "~1"}), genValue(depth-1), 0, 3).Draw(t, "object")
	})
}

func marshal(t *rapid.T, v any) []byte {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return data
}

func unmarshal(t *rapid.T, data []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}

func TestDiffExactIntegers(t *testing.T) {
	got, err := replay.Diff(map[string]any{"n": int64(1<<53 + 1)}, map[string]any{"n": int64(1 << 53)})
	want := `[{"value":9007199254740992,"op":"replace","path":"/n"}]`
	if string(got) != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
