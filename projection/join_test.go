package projection_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// bell is an alarm that notifies a listener when it rings.
type bell struct {
	alarm
	rings func(at time.Duration)
}

func (b *bell) Advance(at time.Duration) {
	for _, due := range slices.Sorted(slices.Values(b.due)) { // in order of time, for any steps of Advance
		if due <= at && b.rings != nil {
			b.rings(due)
		}
	}
	b.alarm.Advance(at)
}

// ear hashes the entries and the times of the rings in the order of their arrival.
type ear struct {
	sum  uint64
	at   time.Duration
	bell *bell // set by Join; not part of the state
}

func (e *ear) Apply(*eventlog.Entry)    { e.sum = e.sum*31 + 1 }
func (e *ear) Advance(at time.Duration) { e.at = at }
func (e *ear) ring(at time.Duration)    { e.sum = e.sum*31 + uint64(at) }
func (e *ear) View() any                { return map[string]any{"sum": int64(e.sum)} }
func (e *ear) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, e.sum), uint64(e.at))
}

// joined is a set whose second projection listens to the first. Its Join appends to
// asked the names that it found and did not find.
func joined(asked *[]string) projection.Set {
	return projection.Set{
		{
			Name: "bell", Version: 1,
			New: func() projection.State { return new(bell) },
			Restore: func(data []byte) (projection.State, error) {
				st, err := restoreAlarm(data)
				if err != nil {
					return nil, err
				}
				return &bell{alarm: *st.(*alarm)}, nil
			},
		},
		{
			Name: "ear", Version: 1,
			New: func() projection.State { return new(ear) },
			Restore: func(data []byte) (projection.State, error) {
				if len(data) != 16 {
					return nil, errors.New("want 16 bytes")
				}
				return &ear{sum: binary.BigEndian.Uint64(data), at: time.Duration(binary.BigEndian.Uint64(data[8:]))}, nil
			},
			Join: func(s projection.State, before func(string) projection.State) {
				for _, name := range []string{"bell", "ear", "last", "none"} {
					if before(name) == nil {
						name = "no " + name
					}
					*asked = append(*asked, name)
				}
				e := s.(*ear)
				e.bell = before("bell").(*bell)
				e.bell.rings = e.ring
			},
		},
		{
			Name: "last", Version: 1, New: func() projection.State { return new(counter) }, Restore: restoreCounter,
			Join: func(_ projection.State, before func(string) projection.State) {
				if e, ok := before("ear").(*ear); ok && e.bell != nil {
					*asked = append(*asked, "ear is joined")
				}
			},
		},
	}
}

// Each new, restored or cloned state is joined exactly once, to the earlier states of
// its own fold, which are joined already.
func TestJoin(t *testing.T) {
	var asked []string
	set := joined(&asked)
	want := []string{"bell", "no ear", "no last", "no none", "ear is joined"}
	check := func(how string, f *projection.Fold) {
		t.Helper()
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", how, diff)
		}
		if f.State("ear").(*ear).bell != f.State("bell") {
			t.Errorf("%s: joined to the state of another fold", how)
		}
		asked = nil
	}
	f := projection.NewFold(set, genesis)
	check("new", f)
	restored, err := projection.RestoreFold(set, f.Image())
	require.NoError(t, err)
	check("restored", restored)
	clone, err := f.Clone()
	require.NoError(t, err)
	check("cloned", clone)
	img := f.Image()
	img.Parts[2].Data = nil
	if _, err := projection.RestoreFold(set, img); err == nil || len(asked) > 0 {
		t.Errorf("of an image that cannot be restored whole: %v, asked %q", err, asked)
	}
}

// A clone notifies its own states and not those of the original.
func TestJoinedClonesAreApart(t *testing.T) {
	f := projection.NewFold(joined(new([]string)), genesis)
	require.NoError(t, f.Apply(&eventlog.Entry{Seq: 1, Data: []byte{5}}))
	clone, err := f.Clone()
	require.NoError(t, err)
	before := f.Digest("ear")
	clone.Advance(time.Second)
	if f.Digest("ear") != before {
		t.Error("a notification in the clone reached the original")
	}
	f.Advance(time.Second)
	if diff := cmp.Diff(f.Digests(), clone.Digests()); diff != "" {
		t.Errorf("the original (-) and its clone (+):\n%s", diff)
	}
}

// Joined states continue from any image as they do from the beginning, for any steps
// of Advance.
func TestJoinedRestoreProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := joined(new([]string))
		whole, parts := projection.NewFold(set, genesis), projection.NewFold(set, genesis)
		for _, e := range genEntries(t) {
			if span := e.At - parts.At(); span > 0 {
				cuts := rapid.SliceOfN(rapid.Int64Range(0, int64(span)), 0, 3).Draw(t, "cuts")
				slices.Sort(cuts)
				begin := parts.At()
				for _, cut := range cuts {
					parts.Advance(begin + time.Duration(cut))
				}
			}
			require.NoError(t, errors.Join(whole.Apply(&e), parts.Apply(&e)))
			if rapid.Bool().Draw(t, "restore") {
				var err error
				if parts, err = projection.RestoreFold(set, parts.Image()); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(whole.Digests(), parts.Digests()); diff != "" {
				t.Fatalf("digests at %d:\n%s", e.Seq, diff)
			}
		}
	})
}
