package replay_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// notes are anchors in memory.
type notes struct {
	anchors map[string]replay.Anchor
	err     error
	last    *replay.Moment
}

func (n *notes) Bookmark(name string) (replay.Anchor, bool, error) {
	a, ok := n.anchors[name]
	return a, ok, n.err
}

func (n *notes) Last() (replay.Moment, bool) {
	if n.last == nil {
		return replay.Moment{}, false
	}
	return *n.last, true
}

func (n *notes) Used(m replay.Moment) { n.last = &m }

// correlated is a tape whose entries are correlated by their data.
type correlated struct{ *tape }

func (correlated) Correlation(e *eventlog.Entry) (string, bool) {
	if len(e.Data) == 0 {
		return "", false
	}
	return strconv.Itoa(int(e.Data[0])), true
}

// TestResolveSteps shows the addresses that count from the last one: its moment, the
// address, and the moment or the reason.
func TestResolveSteps(t *testing.T) {
	r := replay.Open(song(), toys, nil) // entries at 100, 120, 120 and 500 ms
	n := &notes{}
	r.Anchor(n)
	for _, tt := range []struct {
		last          replay.Moment
		address, want string
	}{
		{replay.Moment{Seq: 2}, "@", "2"},
		{replay.Moment{Seq: 2}, "+0", "2"},
		{replay.Moment{Seq: 2}, "+1", "3"},
		{replay.Moment{Seq: 2}, "@+2", "4"},
		{replay.Moment{Seq: 2}, "+3", "none: it counts from 2, and the last entry of tape is 4"},
		{replay.Moment{Seq: 2}, "+18446744073709551615", "none: it counts from 2"},
		{replay.Moment{Seq: 2}, "-1", "1"},
		{replay.Moment{Seq: 2}, "@-2", "0"},
		{replay.Moment{Seq: 2}, "-3", "none: only 2 entries before 2"},
		{replay.Moment{Seq: 1, Offset: 5 * ms}, "-1", "1"},
		{replay.Moment{Seq: 1, Offset: 5 * ms}, "-2", "0"},
		{replay.Moment{Seq: 1, Offset: 5 * ms}, "-0", "1+5ms"},
		{replay.Moment{Seq: 1, Offset: 5 * ms}, "+1", "2"},
		{replay.Moment{Seq: 1, Offset: 5 * ms}, "@+10ms", "1+15ms"},
		{replay.Moment{Seq: 1, Offset: 5 * ms}, "@+1+10ms", "3+10ms"}, // 2 and 3 are at one time
		{replay.Moment{Seq: 1}, "+30ms", "3+10ms"},
		{replay.Moment{Seq: 4}, "+1s", "4+1s"},
		{replay.Moment{Seq: 4}, "-390ms", "1+10ms"},
		{replay.Moment{Seq: 4}, "-500ms", "0"},
		{replay.Moment{Seq: 4}, "-501ms", "none: 4 is 500ms after the beginning"},
		{replay.Moment{Seq: 4}, "+2540400h", "4+2540400h0m0s"},
		{replay.Moment{Seq: 4, Offset: 1 << 62}, "+2540400h", "none: session time ends before that"},
		{replay.Moment{Seq: 9}, "-1", "none: the last entry of tape is 4"},
	} {
		n.last = &tt.last
		got, message := resolve(r, tt.address)
		want, reason, _ := strings.Cut(tt.want, ": ")
		assert.Equal(t, want, got, "%s from %v: %s", tt.address, tt.last, message)
		assert.Contains(t, message, reason, "%s from %v", tt.address, tt.last)
		if want != "none" {
			assert.Equal(t, want, n.last.String(), "%s is the last address now", tt.address)
		} else {
			assert.Equal(t, tt.last, *n.last, "an address without a moment is not the last one")
		}
	}
}

// TestRelativeRanges shows from where the ends of a range count.
func TestRelativeRanges(t *testing.T) {
	r := replay.Open(song(), toys, nil)
	n := &notes{}
	r.Anchor(n)
	for _, tt := range []struct{ text, want string }{
		{"1..+2", "1 3"},
		{"1..+15ms", "1 1+15ms"},
		{"-1..+1", "2 4"}, // both count from 3
		{"..+1", "0 4"},
		{"@..", "3 4"},
		{"+1", "4 4"},
	} {
		n.last = &replay.Moment{Seq: 3}
		rg, err := replay.ParseRange(tt.text)
		require.NoError(t, err)
		from, to, err := r.ResolveRange(t.Context(), rg)
		require.NoError(t, err, tt.text)
		assert.Equal(t, tt.want, from.String()+" "+to.String(), tt.text)
		assert.Equal(t, to, *n.last, "after a range the last address is its end")
	}
}

// TestResolveBookmarks shows that a bookmark is used only in the history it is of.
func TestResolveBookmarks(t *testing.T) {
	s := song()
	r := replay.Open(s, toys, nil)
	n := &notes{anchors: map[string]replay.Anchor{
		"begin":   {Head: eventlog.Head{Hash: genesis}},
		"bug":     {Head: s.entries[1].Head()},
		"between": {Head: s.entries[2].Head(), Offset: 300 * ms},
		"other":   {Head: eventlog.Head{Seq: 2, Hash: eventlog.Hash{1}}},
		"root":    {Head: eventlog.Head{Hash: eventlog.Hash{1}}},
		"later":   {Head: eventlog.Head{Seq: 5}},
		"wide":    {Head: s.entries[2].Head(), Offset: 381 * ms},
		"early":   {Head: s.entries[2].Head(), Offset: -1},
	}}
	r.Anchor(n)
	for _, tt := range []struct{ address, want string }{
		{"@begin", "0"},
		{"@bug", "2"},
		{"@bug+390ms", "4+10ms"},
		{"@between", "3+300ms"},
		{"@between+90ms", "4+10ms"},
		{"@other", "none: not of this history: it names an entry 2 whose hash begins with 0100000000000000"},
		{"@root", "none: not of this history: it names an entry 0"},
		{"@later", "none: it names 5, and the last entry of tape is 4"},
		{"@wide", "none: the offset goes up to 380ms"},
		{"@early", "none: it names 3+-1ns"},
		{"@nothing", "none: tape has no bookmark of that name"},
	} {
		got, message := resolve(r, tt.address)
		want, reason, _ := strings.Cut(tt.want, ": ")
		assert.Equal(t, want, got, "%s: %s", tt.address, message)
		assert.Contains(t, message, reason, tt.address)
	}
	n.err = errors.New("damaged")
	got, message := resolve(r, "@bug")
	assert.Equal(t, "other", got)
	assert.Contains(t, message, "damaged")
}

func TestResolveCorrelations(t *testing.T) {
	s := song()
	s.add(10*ms, 200)
	s.add(10*ms, 200)
	r := replay.Open(correlated{s}, toys, nil)
	for _, tt := range []struct{ address, want string }{
		{"corr:50", "1"},
		{"corr:200", "2"},
		{"corr:200#2", "5"},
		{"corr:200#-1", "6"},
		{"corr:200#-3", "2"},
		{"corr:200#-4", "none: 3 entries have that"},
		{"corr:200#-9223372036854775808", "none: 3 entries have that"},
		{"corr:200#4", "none: 3 entries have that"},
		{"corr:50#2", "none: one entry has that"},
		{"corr:7", "none: no entry of tape has that correlation id"},
		{"corr:200+395ms", "5+5ms"},
	} {
		got, message := resolve(r, tt.address)
		want, reason, _ := strings.Cut(tt.want, ": ")
		assert.Equal(t, want, got, "%s: %s", tt.address, message)
		assert.Contains(t, message, reason, tt.address)
	}
	got, _ := resolve(replay.Open(correlated{&tape{}}, toys, nil), "corr:1")
	assert.Equal(t, "none", got, "an empty session")
}

// TestResolveTimesAtTheEnd shows that a time is an address while something is under way.
func TestResolveTimesAtTheEnd(t *testing.T) {
	s := song()
	s.add(0, 80) // an action from 500 to 580 ms
	r := replay.Open(s, toys, nil)
	for _, tt := range []struct{ address, want string }{
		{"t:500ms", "5"},
		{"t:579ms", "5+79ms"},
		{"t:580ms", "5+80ms"},
		{"t:581ms", "none"},
		{"t:500ms+80ms", "5+80ms"},
		{"t:500ms+81ms", "none"},
		{"t:500ms+9223372036s", "none"},
	} {
		got, message := resolve(r, tt.address)
		assert.Equal(t, tt.want, got, "%s: %s", tt.address, message)
	}
}
