package eventlog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
)

// comparisonOf returns a comparison of a store with a readable session "a" that ends at
// entry 3, one whose end cannot be read, and a deleted one.
func comparisonOf() *comparison {
	return &comparison{
		have: map[uint32]*standing{
			1: {name: "a", head: Head{Seq: 3, Hash: Genesis("three")}, readable: true},
			2: {name: "b", head: Head{Hash: Genesis("b")}},
			7: {name: "c", head: Head{Hash: Genesis("c")}, readable: true},
		},
		deleted: map[uint32]*Tombstone{4: {Session: "gone", Number: 4, Head: Head{Seq: 5, Hash: Genesis("five")}}},
		losses:  map[uint32]*Loss{},
	}
}

// Batches behind the break are a loss of their session only if the store does not have
// them, and of the newest of them.
func TestFoundBehindTheBreak(t *testing.T) {
	c := comparisonOf()
	for _, f := range []struct {
		number uint32
		seq    Seq
		name   string
	}{{1, 3, ""}, {2, 9, ""}, {4, 9, ""}, {6, 2, ""}} {
		c.found(f.number, f.seq, f.name)
		assert.Empty(t, c.losses, "%+v", f)
	}
	c.found(1, 6, "")
	c.found(1, 4, "")
	c.found(5, 2, "new")
	c.found(7, 1, "")
	assert.Equal(t, map[uint32]*Loss{
		1: {Session: "a", Have: c.have[1].head, Seen: 6},
		5: {Session: "new", Have: Head{Hash: Genesis("new")}, Seen: 2},
		7: {Session: "c", Have: Head{Hash: Genesis("c")}, Seen: 1},
	}, c.losses)
	c.noted(storefile.NotedHead{Number: 1, Name: "a", Head: Head{Seq: 5}})
	c.noted(storefile.NotedHead{Number: 1, Name: "a", Head: Head{Seq: 4}})
	assert.Equal(t, &Loss{Session: "a", Have: c.have[1].head, Seen: 6, Noted: Head{Seq: 5}}, c.losses[1])
	assert.Zero(t, c.more)
}

// A noted head is a loss unless the store has it, the session is one whose end is not
// known, or its tombstone explains it.
func TestNotedHeads(t *testing.T) {
	three, five := Head{Seq: 3, Hash: Genesis("three")}, Head{Seq: 5, Hash: Genesis("five")}
	for name, tt := range map[string]struct {
		number uint32
		noted  string
		head   Head
		want   *Loss
	}{
		"the end":                  {1, "a", three, nil},
		"another end":              {1, "a", Head{Seq: 3}, &Loss{Session: "a", Have: three, Noted: Head{Seq: 3}}},
		"a later one":              {1, "a", Head{Seq: 4}, &Loss{Session: "a", Have: three, Noted: Head{Seq: 4}}},
		"of no entry":              {1, "a", Head{}, nil},
		"an end that is not known": {2, "b", five, nil},
		"of another name":          {1, "x", five, &Loss{Session: "x", Have: Head{Hash: Genesis("x")}, Noted: five}},
		"of no session":            {9, "x", five, &Loss{Session: "x", Have: Head{Hash: Genesis("x")}, Noted: five}},
		"the deleted end":          {4, "gone", five, nil},
		"before the deletion":      {4, "gone", Head{Seq: 4}, nil},
		"behind the deletion":      {4, "gone", Head{Seq: 6}, &Loss{Session: "gone", Have: five, Noted: Head{Seq: 6}}},
		"another deleted end":      {4, "gone", Head{Seq: 5}, &Loss{Session: "gone", Have: five, Noted: Head{Seq: 5}}},
		"not the deleted":          {4, "x", five, &Loss{Session: "x", Have: Head{Hash: Genesis("x")}, Noted: five}},
	} {
		c := comparisonOf()
		c.noted(storefile.NotedHead{Number: tt.number, Name: tt.noted, Head: tt.head})
		if tt.want == nil {
			assert.Empty(t, c.losses, name)
			continue
		}
		assert.Equal(t, map[uint32]*Loss{tt.number: tt.want}, c.losses, name)
	}
	c := comparisonOf()
	c.noted(storefile.NotedHead{Number: 2, Name: "b", Head: five})
	assert.Equal(t, map[uint32]storefile.NotedHead{
		1: {Number: 1, Name: "a", Head: three}, 2: {Number: 2, Name: "b", Head: five},
	}, c.recent(), "a session without an entry needs no note")
}

// The list of losses is bounded, and the others are counted.
func TestManyLosses(t *testing.T) {
	c := comparisonOf()
	for i := range uint32(1003) {
		c.found(100+i, 1, fmt.Sprint(i))
	}
	assert.Len(t, c.losses, 1000)
	assert.Equal(t, 3, c.more)
	c.found(100, 2, "0")
	assert.Equal(t, Seq(2), c.losses[100].Seen)
	assert.Equal(t, 3, c.more)
}
