package debugger_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/debugger"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// record records the files of testdata in memory: entry 1 is the session, 2 to 4 are
// definitions, and 5 to 12 are signals.
func record(t testing.TB) *replay.Replay {
	t.Helper()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, eng.Close()) })
	ses, err := eng.Session(context.Background(), "yard")
	require.NoError(t, err)
	read := func(name string) []byte {
		data, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		return data
	}
	place, problems := scene.Parse("scene.json", read("scene.json"))
	require.Empty(t, problems)
	defs, problems := language.Parse("choreographies.json", read("choreographies.json"))
	require.Empty(t, problems)
	_, err = ses.Define(context.Background(), append([]language.Declaration{place}, defs...)...)
	require.NoError(t, err)
	for line := range strings.Lines(string(read("session.jsonl"))) {
		sig, err := signal.Parse([]byte(line))
		require.NoError(t, err)
		_, err = ses.Signal(context.Background(), sig)
		require.NoError(t, err)
	}
	travel, err := eng.Replay("yard")
	require.NoError(t, err)
	return travel
}

// compile compiles an expression over entries and states.
func compile(expr string) (debugger.StopCondition, error) {
	p, err := where.Compile(expr, session.Projections(session.ProjectionConfig{}))
	if err != nil {
		return debugger.StopCondition{}, err
	}
	return debugger.StopCondition{Holds: func(ctx context.Context, s *replay.ScanStep) (bool, error) {
		return p.Match(ctx, where.Input{Entry: s.Entry, State: s.Fold, Prev: s.Prev()})
	}}, nil
}

// desk is a debugger whose work is done at once.
type desk struct {
	*debugger.Debugger
	t     require.TestingT
	now   time.Duration
	marks []debugger.NamedMoment
}

func newDesk(t require.TestingT, travel *replay.Replay, cfg debugger.Config) *desk {
	d := &desk{t: t}
	if cfg.To.IsZero() {
		var err error
		cfg.To, err = travel.Rest(context.Background(), replay.Moment{Seq: travel.Head().Seq})
		require.NoError(t, err)
	}
	cfg.Rate, cfg.Frame, cfg.Idle, cfg.Compile = 1, 100*time.Millisecond, time.Hour, compile
	cfg.Bookmarks = func() ([]debugger.NamedMoment, error) { return d.marks, nil }
	cfg.View = func(_ context.Context, agent string, at replay.Moment) (any, error) {
		if agent != "ann" {
			return nil, fmt.Errorf("no agent %q", agent)
		}
		return map[string]any{"seq": int64(at.Seq)}, nil
	}
	cfg.Mark = func(name string, at replay.Moment) error {
		if name == "bad" {
			return fmt.Errorf("no name")
		}
		d.marks = append(d.marks, debugger.NamedMoment{Name: name, At: at})
		return nil
	}
	var err error
	d.Debugger, err = debugger.New(context.Background(), travel, cfg)
	require.NoError(t, err)
	return d
}

func (d *desk) work(w *debugger.Work) {
	for w != nil {
		w = d.Done(d.Run(context.Background(), w, nil))
	}
	_, err := d.Ended()
	require.NoError(d.t, err)
}

func (d *desk) press(keys ...string) {
	for _, key := range keys {
		d.work(d.Key(key))
	}
}

// text answers a prompt.
func (d *desk) text(key, text string) {
	d.press(key, "ctrl+u")
	for _, r := range text {
		if r == ' ' {
			d.press("space")
		} else {
			d.press(string(r))
		}
	}
	d.press("enter")
}

// checkView checks that a view fits its window.
func checkView(t require.TestingT, view string, cols, rows int) {
	lines := strings.Split(view, "\n")
	require.LessOrEqual(t, len(lines), rows)
	for _, line := range lines {
		require.LessOrEqual(t, displaywidth.String(line), cols, line)
	}
}

// TestViews plays keys, and compares what the window then shows.
func TestViews(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		var out strings.Builder
		var d *desk
		cols, rows := 80, 24
		for line := range strings.Lines(string(in[0].Data)) {
			line = strings.TrimSpace(line)
			word, rest, _ := strings.Cut(line, " ")
			switch word {
			case "open":
				d = newDesk(t, record(t), debugger.Config{PauseOn: rest})
				if errs := d.Index()(t.Context()); true {
					d.Indexed(errs)
				}
				d.Resize(cols, rows)
			case "size":
				c, r, _ := strings.Cut(rest, "x")
				var err error
				cols, err = strconv.Atoi(c)
				require.NoError(t, err)
				rows, err = strconv.Atoi(r)
				require.NoError(t, err)
				if d != nil {
					d.Resize(cols, rows)
				}
			case "press":
				d.press(strings.Fields(rest)...)
			case "type":
				key, text, _ := strings.Cut(rest, " ")
				d.text(key, text)
			case "pass":
				span, err := time.ParseDuration(rest)
				require.NoError(t, err)
				d.work(d.Tick(d.now)) // finds where to pause
				d.work(d.Tick(d.now))
				d.now += span
				d.work(d.Tick(d.now))
			case "status":
				lines := strings.Split(d.View(), "\n")
				fmt.Fprintf(&out, "%s\n", lines[len(lines)-1])
			case "show":
				checkView(t, d.View(), cols, rows)
				for _, l := range strings.Split(d.View(), "\n") {
					fmt.Fprintf(&out, "%s|\n", l)
				}
			default:
				t.Fatalf("unknown line %q", line)
			}
		}
		return []txtar.File{{Name: "told", Data: []byte(out.String())}}
	})
}

// In a window that is too low for the help, it scrolls to its last line, stops there, and
// another key closes it.
func TestHelpScrolls(t *testing.T) {
	d := newDesk(t, record(t), debugger.Config{})
	d.Resize(40, 12)
	d.press("?")
	seen := map[string]bool{}
	for range 60 {
		view := d.View()
		checkView(t, view, 40, 12)
		for _, line := range strings.Split(view, "\n") {
			seen[strings.TrimRight(line, " ")] = true
		}
		d.press("down")
	}
	assert.True(t, seen["space     play, or pause"], "%v", seen)
	assert.True(t, seen["  e; q quits"], "%v", seen)
	bottom := d.View()
	d.press("end")
	assert.Equal(t, bottom, d.View())
	d.press("pgup", "pgdown")
	assert.Equal(t, bottom, d.View())
	d.press("home")
	assert.Contains(t, d.View(), "play, or pause")
	d.press("x")
	assert.NotContains(t, d.View(), "keys")
}

// A step, of whatever kind, and the step back are where it began; and no keys leave the
// window.
func TestStepsThereAndBack(t *testing.T) {
	travel := record(t)
	var all []replay.Moment
	last, err := travel.Rest(t.Context(), replay.Moment{Seq: travel.Head().Seq})
	require.NoError(t, err)
	for s, err := range travel.Moments(t.Context(), replay.MomentRange{To: last}, 0) {
		require.NoError(t, err)
		all = append(all, s.Moment)
	}
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t, travel, debugger.Config{})
		cols, rows := rapid.IntRange(1, 130).Draw(t, "cols"), rapid.IntRange(1, 45).Draw(t, "rows")
		d.Resize(cols, rows)
		i := rapid.IntRange(1, len(all)-2).Draw(t, "moment")
		d.text("g", all[i].String())
		require.Equal(t, all[i], d.Moment())
		d.press("]")
		require.Equal(t, all[i+1], d.Moment())
		d.press("[", "[")
		require.Equal(t, all[i-1], d.Moment())
		d.press("]")
		require.Equal(t, all[i], d.Moment())
		if all[i].Offset == 0 && all[i].Seq < last.Seq {
			d.press("right", "left")
			require.Equal(t, all[i], d.Moment())
		}
		keys := []string{"]", "[", ".", ",", "{", "}", "b", "B", "c", "C", "left", "right", "home", "end", "p", "d", "?", "n", "+", "-", "space", "esc"}
		for _, key := range rapid.SliceOfN(rapid.SampledFrom(keys[:len(keys)-1]), 0, 6).Draw(t, "keys") {
			d.press(key)
			checkView(t, d.View(), cols, rows)
		}
	})
}

// A run stops at the beginnings of the intervals that a search finds, in their order,
// and backwards in the reverse one.
func TestRunsAreSearches(t *testing.T) {
	travel := record(t)
	for _, expr := range []string{
		`state.performances.size() > 0`,
		`entry.type == "tool_call"`,
		`state.performances.size() > 1`,
		`state.session.entries.signal > 2`,
		`true`,
		`false`,
	} {
		c, err := compile(expr)
		require.NoError(t, err)
		d := newDesk(t, travel, debugger.Config{})
		d.Resize(80, 24)
		d.press("end")
		end := d.Moment()
		var want []replay.Moment
		for iv, err := range replay.Intervals(t.Context(), travel, replay.MomentRange{To: end}, replay.Valuation[bool]{Value: c.Holds}) {
			require.NoError(t, err)
			if iv.Value {
				want = append(want, iv.From.Moment)
			}
		}
		var back []replay.Moment
		for {
			before := d.Moment()
			if d.text("R", expr); d.Moment() == before {
				break
			}
			back = append(back, d.Moment())
		}
		slices.Reverse(back)
		assert.Equal(t, want, back, "backwards to %s", expr)
		d.press("home")
		var forth []replay.Moment
		for {
			before := d.Moment()
			if d.text("r", expr); d.Moment() == before {
				break
			}
			forth = append(forth, d.Moment())
		}
		assert.Equal(t, want, forth, "forwards to %s", expr)
	}
}

// Work that is cancelled leaves the position, and keys wait for short work only.
func TestWork(t *testing.T) {
	d := newDesk(t, record(t), debugger.Config{})
	d.Resize(80, 24)
	d.press("right", "right")
	here := d.Moment()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := d.Key("end")
	require.NotNil(t, w)
	assert.True(t, d.Busy())
	assert.Nil(t, d.Key("right"), "a key during long work")
	d.Report("entry 7")
	assert.Contains(t, d.View(), "go to 12+500ms entry 7  esc ends it")
	assert.Nil(t, d.Done(d.Run(ctx, w, nil)))
	assert.False(t, d.Busy())
	assert.Equal(t, here, d.Moment())
	assert.Contains(t, d.View(), "stopped: go to")

	d.press("space")
	w = d.Tick(0)
	require.NotNil(t, w)
	assert.False(t, d.Busy())
	assert.Nil(t, d.Key("home"))
	w = d.Done(d.Run(t.Context(), w, nil))
	require.NotNil(t, w, "the key that waited")
	d.work(w)
	assert.Equal(t, replay.Moment{}, d.Moment())
	assert.False(t, d.Playing())
	d.press("q")
	ended, err := d.Ended()
	assert.True(t, ended)
	assert.NoError(t, err)
}

// beats is a session in memory in which two beats land.
type beats []eventlog.Entry

func (b beats) Name() string           { return "beats" }
func (b beats) Genesis() eventlog.Hash { return eventlog.Hash{} }
func (b beats) Head() eventlog.Head    { return b[len(b)-1].Head() }
func (b beats) Entries(_ context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for _, e := range b[from-1:] {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// TestBeats shows that b and B go to beats, and that a run goes to one by its name.
func TestBeats(t *testing.T) {
	var src beats
	for i, id := range []string{"", "storm", "", "salary", "storm"} {
		e := eventlog.Entry{Seq: eventlog.Seq(i + 1), Kind: eventlog.KindBeat, Hash: eventlog.Hash{byte(i + 1)}}
		if id != "" {
			v, err := signal.ParseValue([]byte(`{"beat":"` + id + `"}`))
			require.NoError(t, err)
			e.Data = session.AppendWord(nil, episode.BeatLanded, v)
		}
		src = append(src, e)
	}
	d := newDesk(t, replay.Open(src, session.Projections(session.ProjectionConfig{}), nil), debugger.Config{})
	var path []string
	at := func() { path = append(path, d.Moment().String()) }
	for _, key := range []string{"b", "b", "b", "b", "B", "B", "B"} {
		d.press(key)
		at()
	}
	d.text("r", "beat:storm")
	at()
	d.press("home")
	d.text("r", "beat:salary")
	at()
	d.text("r", "beat:salary")
	at()
	d.text("R", "beat:storm")
	at()
	assert.Equal(t, "2 4 5 5 4 2 2 5 4 4 2", strings.Join(path, " "))
}
