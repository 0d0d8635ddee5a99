package replay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

func TestResolve(t *testing.T) {
	s := song()
	s.origin = time.Date(2026, 11, 21, 14, 2, 5, 0, time.UTC)
	s.entries[1].Hash = eventlog.Hash{0x9f, 0x3a, 0xb2, 0xc1}
	s.entries[2].Hash = eventlog.Hash{0x9f, 0x3a, 0xb2, 0xd1}
	r := replay.Open(s, toys, nil)
	for _, tt := range []struct{ address, want string }{
		{"0", "0"},
		{"3", "3"},
		{"007", "none: last entry of tape is 4"},
		{"18446744073709551615", "none: last entry"},
		{"18446744073709551616", "syntax: not a sequence number"},
		{"end", "4"},
		{"end-4", "0"},
		{"end-5", "none: only 4 entries"},
		{"end-", "syntax: not a sequence number"},
		{"end+1s", "4+1s"},
		{"end-1+5ms", "3+5ms"},
		{"1+20ms", "1+20ms"},
		{"1+21ms", "none: up to 20ms"},
		{"1+0s", "1"},
		{"0+100ms", "0+100ms"},
		{"1+", "syntax: duration"},
		{"1+5", "syntax: duration"},
		{"1+-5ms", "syntax: duration"},
		{"1+5ms+5ms", "syntax: sequence number"},
		{"4+9223372036.8s", "none: ends before"},
		{"#9f3ab2c1", "2"},
		{"#9F3AB2C", "2"},
		{"#9f3ab2d1+1ms", "3+1ms"},
		{"#9f3ab2", "none: it could be 2 (#9f3ab2c100000000), 3 (#9f3ab2d100000000)"},
		{"#9f3ab2ff", "none: no entry"},
		{"#abcdef01", "0"},
		{"#9f3", "syntax: 4 to 64"},
		{"#9f3g", "syntax: 4 to 64"},
		{"#" + strings.Repeat("0", 65), "syntax: 4 to 64"},
		{"t:0s", "0"},
		{"t:99ms", "0+99ms"},
		{"t:100ms", "1"},
		{"t:120ms", "3"},
		{"t:0.5s", "4"},
		{"t:1.5s", "none: the last entry of tape is at 500ms, and nothing is under way any more"},
		{"t:120ms+5ms", "3+5ms"},
		{"t:-1s", "syntax: want t:1.5s"},
		{"t:", "syntax: want t:1.5s"},
		{"t:14:02:05", "0"},
		{"t:14:02:05.11", "1+10ms"},
		{"t:14:03", "none: nothing is under way any more"},
		{"t:14:02:04", "none: nothing is under way"}, // of the next day
		{"t:25:00:00", "syntax: want t:1.5s"},
		{"t:2026-11-21T14:02:05Z", "0"},
		{"t:2026-11-21T14:02:05.12Z+1ms", "3+1ms"},
		{"t:2026-11-21T16:02:05.1+02:00", "1"},
		{"t:2026-11-21T16:02:05.1+02:00+5ms", "1+5ms"},
		{"t:2026-11-21T14:02:04Z", "none: began at 2026-11-21T14:02:05Z"},
		{"perf:p-2-1", "none: no projection of this session"},
		{"perf:p-9-1", "none: last entry"},
		{"perf:p-0-1", "syntax: id of a performance"},
		{"perf:p-1", "syntax: id of a performance"},
		{"perf:1-1", "syntax: id of a performance"},
		{"@release", "none: tape has no bookmark of that name"},
		{"beat:salary#1", "none: tape has no script"},
		{"turn:1", "none: tape has no script"},
		{"@", "none: no address was used before it"},
		{"@a.b", "syntax: letters, digits"},
		{"@+x", "syntax: number of entries"},
		{"@-", "syntax: number of entries"},
		{"corr:c", "none: have no correlation ids"},
		{"corr:", "syntax: want corr:ID"},
		{"corr:#2", "syntax: want corr:ID"},
		{"corr:c#0", "syntax: N from 1"},
		{"beat:", "syntax: want beat:ID"},
		{"beat:#1", "syntax: want beat:ID"},
		{"beat:a#0", "syntax: N from 1"},
		{"beat:a#9223372036854775808", "syntax: N from 1"},
		{"turn:", "syntax: number of a turn"},
		{"turn:0", "syntax: number of a turn"},
		{"turn:-1", "syntax: number of a turn"},
		{"turn:1#x", "syntax: number of a turn"},
		{"turn:1#0", "syntax: number of a turn"},
		{"turn:1#9223372036854775808", "syntax: number of a turn"},
		{"turn:x#1", "syntax: number of a turn"},
		{"", "syntax: want a number"},
		{"start", "syntax: want a number"},
		{"+5ms", "none: no address was used"},
		{"-1", "none: no address was used"},
		{"+", "syntax: number of entries"},
		{strings.Repeat("9", 300), "syntax: more than 256"},
		{"corr:" + strings.Repeat("c", 251), "none: have no correlation ids"},
		{"corr:" + strings.Repeat("c", 252), "syntax: more than 256"},
		{"#" + strings.Repeat("0", 64), "none: no entry"},
		{"#abcd", "0"},
		{"#9f3a", "none: it could be 2"},
		{"perf:p-1-0", "syntax: id of a performance"},
		{"perf:p-1-", "syntax: id of a performance"},
		{"perf:p-1-1-1", "syntax: id of a performance"},
		{"end-0", "4"},
		{"4+0s", "4"},
		{"t:120ms+1h", "none: nothing is under way"},
		{"@release+1ms", "none: tape has no bookmark of that name"},
		{"@é-1_x", "none: tape has no bookmark of that name"},
		{"@a b", "syntax: letters, digits"},
		{"@+1+x", "syntax: duration"},
		{"beat:a#-", "none: tape has no script"}, // the number sign belongs to the id
		{"beat:a#-x", "none: tape has no script"},
	} {
		got, message := resolve(r, tt.address)
		if want, rest, isError := strings.Cut(tt.want, ": "); got != want || isError && !strings.Contains(message, rest) {
			t.Errorf("%q = %s %s, want %s", tt.address, got, message, tt.want)
		}
	}
	s.origin = time.Time{}
	if got, message := resolve(r, "t:14:02"); got != "none" || !strings.Contains(message, "no wall clock") {
		t.Errorf("without an origin: %s %s", got, message)
	}
}

// Only the address of a bookmark has the name of one.
func TestBookmarkOf(t *testing.T) {
	for text, want := range map[string]string{"@mark": "mark", "@é-1_x+5ms": "é-1_x", "@": "", "@+1": "", "-1": "", "beat:mark": "", "corr:mark": "", "12": "", "#abcd": ""} {
		a, err := replay.ParseAddress(text)
		require.NoError(t, err)
		name, ok := a.Bookmark()
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Equal(t, want, name)
		}
	}
}

// The bound of a range is that of two addresses.
func TestLongestRange(t *testing.T) {
	long := "corr:" + strings.Repeat("c", 250)
	for text, want := range map[string]bool{long + ".." + long: true, "c" + long + "..": false, long + "c.." + long: false, strings.Repeat("9", 513): false} {
		_, err := replay.ParseRange(text)
		assert.Equal(t, want, err == nil, "%d bytes: %v", len(text), err)
		if !want {
			assert.ErrorIs(t, err, replay.ErrSyntax)
		}
	}
}

// resolve returns the moment, or the class of the error and its text.
func resolve(r *replay.Replay, address string) (got, message string) {
	a, err := replay.ParseAddress(address)
	if err == nil {
		if a.String() != address {
			return a.String(), "is what String returned"
		}
		var m replay.Moment
		if m, err = r.Resolve(context.Background(), a); err == nil {
			return m.String(), ""
		}
	}
	var detail *replay.AddressError
	if !errors.As(err, &detail) {
		return "other", err.Error()
	}
	if errors.Is(err, replay.ErrSyntax) {
		return "syntax", err.Error()
	}
	return "none", err.Error()
}

func TestResolveAmbiguous(t *testing.T) {
	s := &tape{}
	for range 20 {
		s.add(ms)
		s.entries[len(s.entries)-1].Hash = eventlog.Hash{0x77, 0x77, byte(len(s.entries))}
	}
	// Up to eight are listed.
	for _, n := range []int{2, 8, 9} {
		few := &tape{entries: s.entries[:n]}
		got, message := resolve(replay.Open(few, toys, nil), "#7777")
		if got != "none" || strings.Count(message, "(#7777") != min(n, 8) || strings.HasSuffix(message, ", …") != (n > 8) || strings.Count(message, ", ") != n-1 {
			t.Errorf("of %d: %s %s", n, got, message)
		}
	}
	got, message := resolve(replay.Open(s, toys, nil), "#7777")
	if got != "none" || strings.Count(message, "#") != 9 || !strings.HasSuffix(message, "…") {
		t.Errorf("%s %s", got, message)
	}
}

func TestRanges(t *testing.T) {
	r := replay.Open(song(), toys, nil)
	for _, tt := range []struct{ text, want string }{
		{"1..3", "1 3"},
		{"1+5ms..end", "1+5ms 4"},
		{"2..", "2 4"},
		{"..2", "0 2"},
		{"..", "0 4"},
		{"3", "3 3"},
		{"t:0.1s..t:120ms", "1 3"},
		{"3..1", `invalid range "3..1": 3 comes after 1; swap the ends`},
		{"end..1", `invalid range "end..1": 4 comes after 1; swap the ends`},
		{"1...3", "syntax"},
		{"1..3..4", "syntax"},
		{"x..2", "syntax"},
		{"", "syntax"},
		{"1..9", "none"},
		{"9..", "none"},
	} {
		rg, err := replay.ParseRange(tt.text)
		if err == nil && rg.String() != tt.text {
			t.Errorf("%q is %q as a text", tt.text, rg)
		}
		var from, to replay.Moment
		if err == nil {
			from, to, err = r.ResolveRange(context.Background(), rg)
		}
		got := from.String() + " " + to.String()
		if reversed, ok := errors.AsType[*replay.RangeError](err); ok {
			assert.ErrorIs(t, err, replay.ErrSyntax)
			got = reversed.Error()
		} else if errors.Is(err, replay.ErrSyntax) {
			got = "syntax"
		} else if errors.Is(err, replay.ErrNoAddress) {
			got = "none"
		}
		if got != tt.want {
			t.Errorf("%q = %s, %v, want %s", tt.text, got, err, tt.want)
		}
	}
}

// choreographer is a state around a real scheduler.
type choreographer struct{ s *choreography.Scheduler }

func (c *choreographer) Apply(e *eventlog.Entry) {
	sig, err := signal.Parse(e.Data)
	if err == nil {
		c.s.Signal(uint64(e.Seq), sig)
	}
}
func (c *choreographer) Advance(at time.Duration)           { c.s.Advance(at) }
func (c *choreographer) Append(dst []byte) []byte           { return c.s.AppendState(dst) }
func (c *choreographer) View() any                          { return nil }
func (c *choreographer) Scheduler() *choreography.Scheduler { return c.s }

func TestResolvePerformance(t *testing.T) {
	defs, diags := language.Parse("t.json", []byte(`[{"on": "error", "steps": [{"action": "flash", "entity": "x"}]}]`))
	if len(defs) != 1 {
		t.Fatal(diags)
	}
	newState := func() projection.State {
		s := choreography.NewScheduler()
		if err := s.Define(defs[0]); err != nil {
			panic(err)
		}
		return &choreographer{s}
	}
	set := projection.Set{{
		Name: "choreographer", Version: 1, New: newState,
		Restore: func(b []byte) (projection.State, error) {
			s, err := choreography.RestoreScheduler(b)
			return &choreographer{s}, err
		},
	}}
	s := &tape{}
	for n, typ := range []string{"thinking", "error"} {
		payload := `{"agentId": "a", "content": "c"}`
		if typ == "error" {
			payload = `{"agentId": "a", "code": "E", "message": "m", "severity": "error"}`
		}
		s.add(10*ms, fmt.Appendf(nil, `{"id": "%d", "type": %q, "timestamp": 1, "source": "s", "payload": %s}`, n, typ, payload)...)
	}
	r := replay.Open(s, set, nil)
	for _, tt := range []struct{ address, want string }{
		{"perf:p-2-1", "2"},
		{"perf:p-2-1+3ms", "2+3ms"},
		{"perf:p-2-2", "none: entry 2 began no such performance"},
		{"perf:p-1-1", "none: entry 1 began no such performance"},
	} {
		want, reason, _ := strings.Cut(tt.want, ": ")
		if got, message := resolve(r, tt.address); got != want || !strings.Contains(message, reason) {
			t.Errorf("%q = %s %s, want %s", tt.address, got, message, tt.want)
		}
	}
}

// Every parsed address resolves or is refused without a panic, and the text of a
// resolved moment resolves to the same moment.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"812", "end-10", "1+350ms", "#abcd", "t:1.5s", "t:14:02:05.5", "t:2026-11-21T14:02:05+02:00", "perf:p-1-1", "@a", "@-3", "+2", "-20ms", "@+1+5ms", "corr:c#-1", "beat:b#1", "beat:b#-1", "turn:2#2", "1..end"} {
		f.Add(s)
	}
	tape := song()
	tape.origin = time.Date(2026, 11, 21, 14, 2, 5, 0, time.UTC)
	r := replay.Open(tape, toys, nil)
	f.Fuzz(func(t *testing.T, s string) {
		if rg, err := replay.ParseRange(s); err == nil {
			_, _, err = r.ResolveRange(t.Context(), rg)
			if err != nil && !errors.Is(err, replay.ErrNoAddress) && !errors.Is(err, replay.ErrSyntax) {
				t.Errorf("range %q: %v", s, err)
			}
		} else if !errors.Is(err, replay.ErrSyntax) {
			t.Errorf("range %q: %v", s, err)
		}
		a, err := replay.ParseAddress(s)
		if err != nil {
			return
		}
		m, err := r.Resolve(t.Context(), a)
		if err != nil {
			if !errors.Is(err, replay.ErrNoAddress) {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if got, message := resolve(r, m.String()); got != m.String() {
			t.Errorf("%q is %v, and that is %s %s", s, m, got, message)
		}
	})
}

// An address is bounded to the byte, and a range to the byte with both its ends.
func TestAddressBounds(t *testing.T) {
	long := func(n int) string { return "@" + strings.Repeat("b", n-1) }
	if a, err := replay.ParseAddress(long(256)); err != nil || a.String() != long(256) {
		t.Errorf("256 bytes: %v, %v", a, err)
	}
	if _, err := replay.ParseAddress(long(257)); !errors.Is(err, replay.ErrSyntax) || !strings.Contains(err.Error(), "more than 256 bytes") {
		t.Errorf("257 bytes: %v", err)
	}
	if _, err := replay.ParseRange(long(255) + ".." + long(255)); err != nil {
		t.Errorf("512 bytes: %v", err)
	}
	if _, err := replay.ParseRange(long(256) + ".." + long(255)); !errors.Is(err, replay.ErrSyntax) || !strings.Contains(err.Error(), "more than 512 bytes") {
		t.Errorf("513 bytes: %v", err)
	}
	// Only the time of day with a zone may end in a plus that begins no duration.
	for _, s := range []string{"t:1s+x", "t:14:02:05+", "@T+x", "3+02:00", "t:+", "beat:T+1"} {
		if _, err := replay.ParseAddress(s); !errors.Is(err, replay.ErrSyntax) || !strings.Contains(err.Error(), "want a duration like 350ms after the plus") {
			t.Errorf("%s: %v, want the missing duration", s, err)
		}
	}
	if _, err := replay.ParseAddress("t:2026-11-21T14:02:05+02:00"); err != nil {
		t.Error(err)
	}
}
