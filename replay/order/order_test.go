package order_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/compare"
	"github.com/sajou-dev/sajou-go/replay/order"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

const ms = time.Millisecond

var bg = context.Background()

// The figures ann and ben have their places, and two slots are free.
const room = `{"sajou": "scene", "version": 1, "name": "room", "size": {"width": 320, "height": 180},
	"looks": {"clerk": {"figure": "person", "color": "teal", "size": 40}}, "slots": {"left": {"x": 40, "y": 60}, "right": {"x": 280, "y": 60}}, "stranger": "clerk",
	"entities": [{"id": "ann", "look": "clerk", "at": {"x": 60, "y": 120}}, {"id": "ben", "look": "clerk", "at": {"x": 200, "y": 120}}]}`

// Of the types, east and west move one figure each way, off interrupts them, and ring is a
// sound.
const rules = `[
	{"id": "east", "on": "east", "steps": [{"action": "move", "entity": "signal.agentId", "to": {"x": 300, "y": 120}, "duration": 100}]},
	{"id": "west", "on": "west", "steps": [{"action": "move", "entity": "signal.agentId", "to": {"x": 20, "y": 120}, "duration": 50}]},
	{"id": "off", "on": "off", "interrupts": true, "steps": [{"action": "setAnimation", "entity": "signal.agentId", "state": "idle"}]},
	{"id": "ring", "on": "ring", "steps": [{"action": "playSound", "sound": "bell"}]}
]`

// line is a signal of a tape.
type line struct {
	typ, agent string
	at         int // ms
}

func drafted(t require.TestingT, d *session.Drafts, lines ...line) {
	for i, l := range lines {
		payload, err := signal.Marshal(map[string]any{"agentId": l.agent})
		require.NoError(t, err)
		at := time.Duration(l.at) * ms
		d.Signal(at, &signal.Signal{ID: fmt.Sprint(l.typ, i), Type: l.typ, Source: "test", CorrelationID: &l.agent, Timestamp: signal.Int(int64(l.at)), Payload: payload})
	}
}

func opened(t require.TestingT, d *session.Drafts) {
	d.Opened(0, session.TimeManual)
	v, err := signal.ParseValue([]byte(room))
	require.NoError(t, err)
	place, err := scene.Compile(v)
	require.NoError(t, err)
	d.Declaration(0, place)
	list, problems := language.Parse("test.json", []byte(rules))
	require.Empty(t, problems)
	for _, one := range list {
		d.Declaration(0, one)
	}
}

// before is the number of entries in front of the first signal.
const before = 6

func played(t require.TestingT, lines ...line) *enginetest.Tape {
	return enginetest.Taped(func(d *session.Drafts) {
		opened(t, d)
		drafted(t, d, lines...)
	})
}

func replayOf(src replay.Source) *replay.Replay {
	return session.NewReplay(src, session.Projections(session.ProjectionConfig{}), nil)
}

func search(t require.TestingT, src replay.Source, cfg order.Config) (list []order.Swap, stats order.Stats) {
	stats, err := order.Search(bg, replayOf(src), cfg, func(s *order.Swap) error {
		list = append(list, *s)
		return nil
	})
	require.NoError(t, err)
	return list, stats
}

func TestSearch(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []line
		cfg   order.Config
		want  []string // seq cause first heals
		pic   string
		stats order.Stats
	}{
		{
			"two figures",
			[]line{{"east", "ann", 10}, {"west", "ben", 10}, {"ring", "", 900}},
			order.Config{},
			nil, "",
			order.Stats{Pairs: 1, Same: 1, Apart: 1, Other: 6},
		},
		{ // the later movement of one figure takes it over
			"one figure",
			[]line{{"east", "ann", 10}, {"west", "ann", 10}, {"ring", "", 900}},
			order.Config{},
			[]string{"7 order 8+50ms lasting"},
			"8+50ms",
			order.Stats{Pairs: 1, Order: 1, Apart: 1, Other: 6},
		},
		{ // each new figure takes the first free slot
			"places",
			[]line{{"east", "cleo", 10}, {"east", "dave", 10}},
			order.Config{},
			[]string{"7 order 8 lasting"},
			"8",
			order.Stats{Pairs: 1, Order: 1, Other: 6},
		},
		{ // the interruption comes first, and the movement goes on; then another replaces both
			"interruption",
			[]line{{"east", "ann", 10}, {"off", "ann", 10}, {"west", "ann", 500}},
			order.Config{},
			[]string{"7 order 8 9+50ms"},
			"8+100ms",
			order.Stats{Pairs: 1, Order: 1, Apart: 1, Other: 6},
		},
		{ // only the beginning moves, by 5 ms
			"timing",
			[]line{{"east", "ann", 10}, {"west", "ben", 15}, {"ring", "", 900}},
			order.Config{},
			[]string{"7 timing 8 8+100ms"},
			"8",
			order.Stats{Pairs: 1, Timing: 1, Apart: 1, Other: 6},
		},
		{
			"apart", []line{{"east", "ann", 10}, {"west", "ann", 31}}, order.Config{}, nil, "", order.Stats{Apart: 1, Other: 6},
		},
		{
			"within",
			[]line{{"east", "ann", 10}, {"west", "ann", 31}},
			order.Config{Within: 21 * ms},
			[]string{"7 order 8 lasting"},
			"8",
			order.Stats{Pairs: 1, Order: 1, Other: 6},
		},
		{
			"one time alone",
			[]line{{"east", "ann", 10}, {"west", "ann", 11}, {"east", "ann", 11}},
			order.Config{Within: -1},
			[]string{"8 order 9+50ms lasting"},
			"9+50ms",
			order.Stats{Pairs: 1, Order: 1, Apart: 1, Other: 5},
		},
		{
			"range",
			[]line{{"east", "ann", 10}, {"west", "ann", 10}, {"off", "ann", 10}},
			order.Config{From: 8},
			[]string{"8 order 9 lasting"},
			"9+50ms",
			order.Stats{Pairs: 1, Order: 1},
		},
		{ // sounds have no order
			"sounds", []line{{"ring", "a", 10}, {"ring", "b", 10}}, order.Config{}, nil, "", order.Stats{Pairs: 1, Same: 1, Other: 6},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, stats := search(t, played(t, c.lines...), c.cfg)
			var got []string
			for _, s := range list {
				heals := "lasting"
				if !s.Lasting() {
					heals = s.Heals.String()
				}
				got = append(got, fmt.Sprint(s.Seq, " ", s.Cause, " ", s.First, " ", heals))
				assert.Equal(t, c.pic, map[bool]string{true: s.Pictured.String()}[s.Picture != nil])
				assert.Equal(t, s.Lasting(), !s.Healed)
				assert.NotEqual(t, "[]", string(s.Patch))
			}
			assert.Equal(t, c.want, got)
			stats.Compared, stats.Last = 0, 0
			assert.Equal(t, c.stats, stats)
		})
	}
}

// Decisions, cues and pairs around a tick are not swapped.
func TestNotSwapped(t *testing.T) {
	src := enginetest.Taped(func(d *session.Drafts) {
		opened(t, d)
		drafted(t, d, line{"east", "ann", 10})
		d.Tick(10 * ms)
		drafted(t, d, line{"west", "ann", 10})
		d.Signal(10*ms, &signal.Signal{ID: "cue-9-1", Type: "east", Source: session.CueSource, Payload: enginetest.Value(t, `{"agentId": "ann"}`)})
	})
	list, stats := search(t, src, order.Config{})
	require.Empty(t, list)
	require.Equal(t, 0, stats.Pairs)
	require.Equal(t, 3+6, stats.Other)
}

// A search that stops at its limit says so.
func TestLimit(t *testing.T) {
	lines := []line{{"east", "ann", 10}, {"west", "ben", 10}}
	for i := range 10 {
		lines = append(lines, line{"ring", "", 11 + i})
	}
	list, stats := search(t, played(t, lines...), order.Config{Within: -1, Limit: 3})
	require.Empty(t, list)
	require.Equal(t, 1, stats.Open)

	list, _ = search(t, played(t, line{"east", "ann", 10}, line{"west", "ann", 10}, line{"ring", "", 20}, line{"ring", "", 500}), order.Config{Within: -1, Limit: 1})
	require.True(t, list[0].Lasting())
	require.Equal(t, replay.Moment{Seq: before + 3}, list[0].Until)
}

func TestSearchEnds(t *testing.T) {
	src := played(t, line{"east", "ann", 10}, line{"west", "ann", 10}, line{"off", "ann", 10})
	enough := errors.New("enough")
	stats, err := order.Search(bg, replayOf(src), order.Config{}, func(*order.Swap) error { return enough })
	require.ErrorIs(t, err, enough)
	require.Equal(t, 1, stats.Order)
	require.Equal(t, eventlog.Seq(before+2), stats.Last) // the third signal undoes the first two in either order
	stopped, stop := context.WithCancel(bg)
	stop()
	_, err = order.Search(stopped, replayOf(src), order.Config{}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// model compares the states of a session and of a variant of it in full replays, by the text
// of their views, and returns what [order.Search] is to find.
func model(t require.TestingT, src replay.Source, seq eventlog.Seq) (first, heals replay.Moment, differs, healed bool) {
	v, err := variant.New(bg, src, variant.Edits{Swap: []eventlog.Seq{seq}})
	require.NoError(t, err)
	a, b := replayOf(src), replayOf(v)
	var moments []replay.Moment
	over := replay.MomentRange{From: replay.Moment{Seq: seq + 1}, To: replay.Moment{Seq: src.Head().Seq}, Rest: true}
	for _, r := range []*replay.Replay{a, b} {
		for s, err := range r.Moments(bg, over, replay.NeedsState) {
			require.NoError(t, err)
			moments = append(moments, s.Moment)
		}
	}
	slices.SortFunc(moments, replay.Moment.Compare)
	one, two := fmt.Sprintf("p-%d-", seq), fmt.Sprintf("p-%d-", seq+1)
	sigOne, sigTwo := fmt.Sprintf(`"signal":%d,`, seq), fmt.Sprintf(`"signal":%d,`, seq+1)
	exchange := strings.NewReplacer(one, two, two, one, sigOne, sigTwo, sigTwo, sigOne)
	for _, m := range slices.Compact(moments) {
		var folds [2]*projection.Fold
		var views [2]map[string]any
		for i, r := range []*replay.Replay{a, b} {
			folds[i], err = r.At(bg, m)
			require.NoError(t, err)
			text, err := json.Marshal(folds[i].View())
			require.NoError(t, err)
			if i == 1 {
				text = []byte(exchange.Replace(string(text)))
			}
			require.NoError(t, json.Unmarshal(text, &views[i]))
			stage := views[i]["stage"].(map[string]any)
			delete(views[i]["session"].(map[string]any), "origin")
			delete(stage, "sounds")
			delete(stage["diagnostics"].(map[string]any), "recent")
			delete(stage["diagnostics"].(map[string]any), "unresolved")
		}
		now := false
		for name := range folds[0].States() { // equal bytes are equal states, whatever the numbers
			now = now || folds[0].Digest(name) != folds[1].Digest(name) && !assert.ObjectsAreEqual(views[0][name], views[1][name])
		}
		fr, fs := session.StageOf(folds[0]).Frame(), session.StageOf(folds[1]).Frame()
		fr.Sounds, fs.Sounds = nil, nil
		now = now || !compare.SameFrame(fr, fs)
		switch {
		case now && !differs:
			first, differs, healed = m, true, false
		case now:
			healed = false
		case differs && !healed:
			heals, healed = m, true
		}
	}
	return first, heals, differs, healed
}

// Search finds what full replays of variants show.
func TestSearchProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lines []line
		at := 0
		for range rapid.IntRange(2, 4).Draw(t, "signals") {
			at += rapid.SampledFrom([]int{0, 0, 3, 20, 70}).Draw(t, "gap")
			lines = append(lines, line{rapid.SampledFrom([]string{"east", "west", "off", "ring", "thinking"}).Draw(t, "type"), rapid.SampledFrom([]string{"ann", "ben", "cleo"}).Draw(t, "agent"), at})
		}
		src := played(t, lines...)
		list, stats := search(t, src, order.Config{})
		found := map[eventlog.Seq]order.Swap{}
		for _, s := range list {
			found[s.Seq] = s
		}
		pairs := 0
		for i := range len(lines) - 1 {
			if lines[i+1].at-lines[i].at > 20 {
				continue
			}
			pairs++
			seq := eventlog.Seq(before + 1 + i)
			first, heals, differs, healed := model(t, src, seq)
			s, ok := found[seq]
			require.Equal(t, differs, ok, "pair %d", seq)
			if !ok {
				continue
			}
			require.Equal(t, first, s.First, "pair %d", seq)
			require.Equal(t, healed, s.Healed, "pair %d", seq)
			if healed {
				require.Equal(t, heals, s.Heals, "pair %d", seq)
			}
			if lines[i].at == lines[i+1].at {
				require.Equal(t, order.ByOrder, s.Cause)
			}
		}
		require.Equal(t, pairs, stats.Pairs)
		require.Equal(t, pairs, stats.Same+stats.Order+stats.Timing)
	})
}
