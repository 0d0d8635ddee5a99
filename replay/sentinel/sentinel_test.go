package sentinel_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/sentinel"
)

// tape is a session in memory whose entries hold one byte each.
type tape []eventlog.Entry

func record(data ...byte) tape {
	var t tape
	for i, b := range data {
		e := eventlog.Entry{Seq: eventlog.Seq(i + 1), At: time.Duration(i) * time.Second, Kind: eventlog.KindSignal, Data: []byte{b}}
		if i > 0 {
			e.Hash = t[i-1].Hash
		}
		binary.BigEndian.PutUint64(e.Hash[:], binary.BigEndian.Uint64(e.Hash[:])*31+uint64(b)+1)
		t = append(t, e)
	}
	return t
}

func (tape) Name() string           { return "tape" }
func (tape) Genesis() eventlog.Hash { return eventlog.Hash{} }
func (t tape) Head() eventlog.Head {
	if len(t) == 0 {
		return eventlog.Head{}
	}
	return t[len(t)-1].Head()
}

func (t tape) Entries(_ context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for _, e := range t[from-1:] {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// adder is the sum of the bytes, in which a bug counts the byte 7 twice.
type adder struct {
	sum uint64
	bug bool
}

func (s *adder) Apply(e *eventlog.Entry) {
	s.sum += uint64(e.Data[0])
	if s.bug && e.Data[0] == 7 {
		s.sum += 7
	}
}
func (s *adder) Advance(time.Duration)    {}
func (s *adder) View() any                { return int64(s.sum) }
func (s *adder) Append(dst []byte) []byte { return binary.BigEndian.AppendUint64(dst, s.sum) }

func adders(version uint32, bug bool) projection.Set {
	counter := func(name string, version uint32, bug bool) projection.Projection {
		return projection.Projection{
			Name: name, Version: version, New: func() projection.State { return &adder{bug: bug} },
			Restore: func(data []byte) (projection.State, error) {
				return &adder{binary.BigEndian.Uint64(data), bug}, nil
			},
		}
	}
	return projection.Set{counter("sound", 1, false), counter("sum", version, bug)}
}

func take(t require.TestingT, src tape, points int) *sentinel.KeptDigests {
	kept, err := sentinel.Take(context.Background(), src, adders(1, false), points)
	require.NoError(t, err)
	return kept
}

func Example() {
	session := record(1, 2, 7, 4)
	kept, err := sentinel.Take(context.Background(), session, adders(1, false), 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	// A new version of the program counts a seven twice.
	c, err := sentinel.Check(context.Background(), session, adders(1, true), kept)
	fmt.Println(c.Points, c.Diverge, err)
	// Output: 2 entry 3: the code differs: sum/1 has the digest e1692905e4872de0, and had e8024efa914f4155 <nil>
}

func seqs(kept *sentinel.KeptDigests) (out []eventlog.Seq) {
	for _, p := range kept.Points {
		out = append(out, p.Head.Seq)
	}
	return out
}

func TestTake(t *testing.T) {
	src := record(make([]byte, 10)...)
	for points, want := range map[int][]eventlog.Seq{
		1: {10}, 3: {4, 7, 10}, 10: {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 99: {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
	} {
		assert.Equal(t, want, seqs(take(t, src, points)), points)
	}
	assert.Empty(t, take(t, nil, 5).Points, "a session without entries")
	assert.Equal(t, []string{"sound/1", "sum/1"}, take(t, src, 1).Projections)
	_, err := sentinel.Take(t.Context(), src, adders(1, false), 0)
	require.ErrorContains(t, err, "0 points; use 1 to 100000")
}

func TestCheck(t *testing.T) {
	src := record(1, 2, 3, 4, 5, 6, 7, 8, 9)
	for _, c := range []struct {
		name         string
		points       int
		now          tape
		set          projection.Set
		cause        sentinel.DivergenceCause
		after, at    eventlog.Seq
		exact        bool
		projections  string
		wantInDetail string
	}{
		{"same", 9, src, adders(1, false), "", 0, 0, false, "", ""},
		{"longer now", 9, record(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), adders(1, false), "", 0, 0, false, "", ""},
		{"code, at each entry", 9, src, adders(1, true), sentinel.CauseCode, 6, 7, true, "sum/1", "the code differs: sum/1"},
		{"code, at some", 3, src, adders(1, true), sentinel.CauseCode, 6, 9, false, "sum/1", "the code differs: sum/1"},
		{"version", 9, src, adders(2, true), sentinel.CauseVersion, 6, 7, true, "sum/2", "sum/2 was sum/1"},
		{"version alone", 9, src, adders(2, false), "", 0, 0, false, "", ""},
		{"data", 9, record(1, 2, 3, 9), adders(1, false), sentinel.CauseData, 3, 4, true, "", "the data differs"},
		{"data and code", 9, record(1, 2, 3, 7), adders(1, true), sentinel.CauseData, 3, 4, true, "", "the data differs"},
		{"shorter", 3, record(1, 2, 3, 4), adders(1, false), sentinel.CauseShorter, 4, 6, false, "", "ends with entry 4; digests are kept up to 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := sentinel.Check(t.Context(), c.now, c.set, take(t, src, c.points))
			require.NoError(t, err)
			if c.cause == "" {
				assert.Nil(t, got.Diverge)
				assert.Equal(t, c.points, got.Points)
				return
			}
			require.NotNil(t, got.Diverge)
			d := got.Diverge
			assert.Equal(t, []any{c.cause, c.after, c.at, c.exact, c.projections}, []any{d.Cause, d.After, d.At, d.Exact(), strings.Join(d.Projections, " ")})
			assert.Contains(t, d.String(), c.wantInDetail)
		})
	}
}

// A projection that one side does not have is not compared.
func TestOtherProjections(t *testing.T) {
	src := record(1, 7)
	kept := take(t, src, 2)
	kept.Projections[1] = "gone/1"
	c, err := sentinel.Check(t.Context(), src, adders(1, true), kept)
	require.NoError(t, err)
	assert.Nil(t, c.Diverge)
}

func TestMerge(t *testing.T) {
	src := record(1, 2, 3, 4, 5, 6, 7, 8, 9)
	coarse, fine := take(t, src, 2), take(t, src, 9)
	assert.Equal(t, seqs(fine), seqs(sentinel.Merge(coarse, fine)))
	other := take(t, src, 9)
	other.Projections[0] = "sound/9"
	assert.Equal(t, coarse, sentinel.Merge(coarse, other), "digests of other projections are not added")
}

// What was taken is always found the same again; a bug is found at the first point
// behind the first seven.
func TestCheckProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := record(rapid.SliceOfN(rapid.ByteRange(0, 9), 1, 40).Draw(t, "data")...)
		kept := take(t, src, rapid.IntRange(1, 50).Draw(t, "points"))
		var doc sentinel.DigestDocument
		doc.Put(kept)
		read, err := sentinel.Parse(doc.Text())
		require.NoError(t, err)
		require.Equal(t, &doc, read)
		same, err := sentinel.Check(context.Background(), src, adders(1, false), kept)
		require.NoError(t, err)
		require.Nil(t, same.Diverge)
		require.Equal(t, len(src), int(same.Folded))
		first := 0
		for i := len(src); i > 0; i-- {
			if src[i-1].Data[0] == 7 {
				first = i
			}
		}
		c, err := sentinel.Check(context.Background(), src, adders(1, true), kept)
		require.NoError(t, err)
		require.Equal(t, first > 0, c.Diverge != nil)
		if first > 0 {
			require.Less(t, int(c.Diverge.After), first)
			require.GreaterOrEqual(t, int(c.Diverge.At), first)
		}
	})
}

func TestParse(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	point := `[3, "` + hash + `", "0123456789abcdef"]`
	doc := func(points string) string {
		return `{"sajou": "digests", "version": 1, "sessions": [{"session": "a", "projections": ["x/1"], "points": [` + points + `]}]}`
	}
	_, err := sentinel.Parse([]byte(doc(point)))
	require.NoError(t, err)
	for text, want := range map[string]string{
		``:                                "unexpected end of JSON input",
		`{"sajou": "scene"}`:              `"sajou" is "scene", not "digests"`,
		`{"sajou":"digests","version":2}`: "its version is 2; this program reads 1",
		doc(point + `,` + point):          `session "a", point 2: entry 3 is not behind the one before`,
		doc(`[3, "` + hash + `"]`):        "2 values, not the entry, its hash and 1 digests",
		doc(`[0, "` + hash + `", "0123456789abcdef"]`):            "0 is not the number of an entry",
		doc(`[3, "ab", "0123456789abcdef"]`):                      `"ab" is not a hash`,
		doc(`[3, 4, "0123456789abcdef"]`):                         "4 is not a hash",
		doc(`[3, "` + hash + `", "+123456789abcdef"]`):            "is not a digest",
		strings.Replace(doc(""), `}]}`, `},{"session":"a"}]}`, 1): `session "a" is there twice`,
	} {
		_, err := sentinel.Parse([]byte(text))
		require.ErrorIs(t, err, sentinel.ErrDocument, text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestDocument(t *testing.T) {
	var doc sentinel.DigestDocument
	doc.Put(take(t, record(1), 1))
	doc.Put(take(t, record(1, 2), 2))
	require.Len(t, doc.Sessions, 1, "put again")
	assert.Len(t, doc.Of("tape").Points, 2)
	assert.Nil(t, doc.Of("other"))
	assert.False(t, doc.Drop("other"))
	assert.True(t, doc.Drop("tape"))
	assert.Empty(t, doc.Sessions)
	assert.JSONEq(t, `{"sajou":"digests","version":1,"sessions":[]}`, string(doc.Text()))
}

// A text that is read is written so that it is read the same again.
func FuzzParseDigests(f *testing.F) {
	var doc sentinel.DigestDocument
	kept, err := sentinel.Take(f.Context(), record(1, 2, 3), adders(1, false), 3)
	require.NoError(f, err)
	doc.Put(kept)
	f.Add(doc.Text())
	f.Add([]byte(`{"sajou":"digests","version":1,"sessions":[{"session":"\u0000","points":[]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := sentinel.Parse(text)
		if err != nil {
			assert.ErrorIs(t, err, sentinel.ErrDocument)
			return
		}
		again, err := sentinel.Parse(doc.Text())
		require.NoError(t, err)
		assert.Equal(t, doc.Text(), again.Text())
	})
}
