package asciicast_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/export/asciicast"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// screen is a terminal that knows the sequences of a cast and no others. It keeps rows
// of text without colors.
type screen struct {
	rows []string
	at   int // row, from 0
}

var sequence = regexp.MustCompile(`^\x1b\[(\??[0-9;]*)([A-Za-z])`)

func (s *screen) write(t *testing.T, text string) {
	t.Helper()
	for text != "" {
		if m := sequence.FindStringSubmatch(text); m != nil {
			text = text[len(m[0]):]
			switch m[2] {
			case "H":
				row, col, _ := strings.Cut(m[1], ";")
				require.Equal(t, "1", col)
				n, err := strconv.Atoi(row)
				require.NoError(t, err)
				require.LessOrEqual(t, n, len(s.rows))
				s.at = n - 1
				s.rows[s.at] = "" // every row is written whole
			case "J":
				clear(s.rows)
			case "m", "K", "l", "h":
			default:
				t.Fatalf("a sequence %q", m[0])
			}
			continue
		}
		end := strings.IndexByte(text, 0x1b)
		if end < 0 {
			end = len(text)
		}
		require.NotZero(t, end, "an unknown sequence in %q", text)
		s.rows[s.at] += text[:end]
		text = text[end:]
	}
}

func (s *screen) text() string {
	var b strings.Builder
	for _, row := range s.rows[:len(s.rows)-1] {
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	return b.String()
}

type event struct {
	at   float64
	kind string
	text string
}

func written(t *testing.T, reel *film.Reel, o asciicast.Options) (header map[string]any, events []event) {
	t.Helper()
	var out bytes.Buffer
	frames, err := asciicast.Write(t.Context(), &out, reel, replay.Moment{}, replay.Moment{}, o)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &header))
	for _, line := range lines[1:] {
		var fields [3]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		events = append(events, event{fields[0].(float64), fields[1].(string), fields[2].(string)})
	}
	n := 0
	for _, e := range events {
		if e.kind == "o" {
			n++
		}
	}
	assert.Equal(t, frames+1, n, "the frames, and the end")
	return header, events
}

func reelOf(t *testing.T, signals []string, definitions ...string) *film.Reel {
	t.Helper()
	log, r := enginetest.Recorded(t, signals, definitions...)
	return film.Open(log, r)
}

// TestScreens plays a cast in a small terminal: each frame is the stage at its time, drawn
// without the cast.
func TestScreens(t *testing.T) {
	reel := reelOf(t, enginetest.BustleSignals(4, 30), enginetest.Bustle)
	const cols, rows = 60, 20
	header, events := written(t, reel, asciicast.Options{Cols: cols, Rows: rows, Frame: 50 * time.Millisecond})
	assert.Equal(t, map[string]any{"version": 2., "width": 60., "height": 20., "title": "a", "env": map[string]any{"TERM": "xterm-256color"}}, header)
	s := screen{rows: make([]string, rows)}
	last := 0.
	for i, e := range events[:len(events)-1] {
		require.GreaterOrEqual(t, e.at, last)
		last = e.at
		if e.kind != "o" {
			continue
		}
		s.write(t, e.text)
		for _, row := range s.rows {
			require.LessOrEqual(t, displaywidth.String(row), cols)
		}
		status := strings.Fields(s.rows[rows-1])
		address, err := replay.ParseAddress(status[2])
		require.NoError(t, err, "the status %q", s.rows[rows-1])
		m, err := reel.Travel().Resolve(t.Context(), address)
		require.NoError(t, err)
		shot, err := reel.Shot(t.Context(), m)
		require.NoError(t, err)
		var want strings.Builder
		drawn := strings.Split(picture.Terminal(shot.Frame, cols, rows-1, false), "\n")
		for row := range rows - 1 {
			if row < len(drawn) {
				want.WriteString(strings.TrimRight(drawn[row], " "))
			}
			want.WriteString("\n")
		}
		require.Equal(t, want.String(), s.text(), "frame %d at %v", i, m)
	}
}

// TestPace: the rate shortens all waits, and no wait is longer than the limit.
func TestPace(t *testing.T) {
	reel := reelOf(t, []string{
		`{"id":"1","type":"text_delta","timestamp":1000,"source":"s","payload":{"agentId":"ann","content":"one"}}`,
		`{"id":"2","type":"text_delta","timestamp":61000,"source":"s","payload":{"agentId":"ann","content":"two"}}`,
		`{"id":"3","type":"error","timestamp":62000,"source":"s","payload":{"agentId":"ann","severity":"error","message":"no"}}`,
	})
	length := func(o asciicast.Options) float64 {
		_, events := written(t, reel, o)
		markers := 0
		for _, e := range events {
			if e.kind == "m" {
				markers++
				assert.Contains(t, e.text, "ann has an error: no")
			}
		}
		assert.Equal(t, 1, markers)
		return events[len(events)-1].at
	}
	whole := length(asciicast.Options{})
	assert.GreaterOrEqual(t, whole, 61.)
	assert.InDelta(t, whole/2, length(asciicast.Options{Rate: 2}), .001)
	_, events := written(t, reel, asciicast.Options{Idle: time.Second})
	for i, e := range events[1:] {
		assert.LessOrEqual(t, e.at-events[i].at, 1.0001)
	}
}

// TestBounds checks that terminals outside the bounds are refused.
func TestBounds(t *testing.T) {
	reel := reelOf(t, []string{`{"id":"1","type":"note","timestamp":1000,"source":"s","payload":{}}`})
	for _, o := range []asciicast.Options{{Cols: 19}, {Cols: 501}, {Rows: 4}, {Rows: 201}, {Cols: -1}} {
		_, err := asciicast.Write(t.Context(), &bytes.Buffer{}, reel, replay.Moment{}, replay.Moment{}, o)
		require.ErrorContains(t, err, "must be from 20 to 500 and from 5 to 200")
	}
}

// TestHostile: no control character of a name reaches the terminal of the one who plays
// the cast, or who prints it.
func TestHostile(t *testing.T) {
	attack := `\u001b[2J\u0007\u009b31m\r\nX`
	_, events := written(t, reelOf(t, []string{
		`{"id":"1","type":"error","timestamp":1000,"source":"` + attack + `","payload":{"agentId":"` + attack + `","severity":"error","message":"` + attack + `"}}`,
	}), asciicast.Options{})
	for _, e := range events[:len(events)-1] {
		text := strings.Replace(e.text, "\x1b[?25l\x1b[2J", "", 1)
		assert.NotContains(t, text, "\x1b[2J")
		assert.NotRegexp(t, `[\x07\r\n\x{9b}]`, text)
	}
}
