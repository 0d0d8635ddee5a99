package compare_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/compare"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

const ms = time.Millisecond

var bg = context.Background()

func parsed(t require.TestingT, text string) []language.Declaration {
	list, problems := language.Parse("test.json", []byte(text))
	require.Empty(t, problems)
	return list
}

// walks is a choreography of the type go, in which the agent walks.
func walks(x, duration int, easing string) string {
	return fmt.Sprintf(`{"id": "walk", "on": "go", "steps": [{"action": "move", "entity": "signal.agentId", "to": {"x": %d, "y": 90}, "duration": %d, "easing": %q}]}`, x, duration, easing)
}

const hears = `{"id": "hear", "on": "stop", "steps": [{"action": "playSound", "sound": "%s"}]}`

// played is a session of signals, of which each is a type and a time.
func played(t require.TestingT, definitions string, signals ...any) *enginetest.Tape {
	return enginetest.Taped(func(d *session.Drafts) {
		d.Opened(0, session.TimeManual)
		for _, one := range parsed(t, definitions) {
			d.Declaration(0, one)
		}
		for i := 0; i < len(signals); i += 2 {
			payload, err := signal.Marshal(map[string]any{"agentId": "ann"})
			require.NoError(t, err)
			at := time.Duration(signals[i+1].(int)) * ms
			d.Signal(at, &signal.Signal{ID: fmt.Sprint("s", i), Type: signals[i].(string), Source: "test", Timestamp: signal.Int(at.Milliseconds()), Payload: payload})
		}
	})
}

func replayOf(src replay.Source) *replay.Replay {
	return session.NewReplay(src, session.Projections(session.ProjectionConfig{}), nil)
}

// through returns the replay of a session with other definitions.
func through(t require.TestingT, src replay.Source, e variant.Edits) *replay.Replay {
	v, err := variant.New(bg, src, e)
	require.NoError(t, err)
	return replayOf(v)
}

func toEnd(src replay.Source) replay.MomentRange {
	return replay.MomentRange{To: replay.Moment{Seq: src.Head().Seq}, Rest: true}
}

func intervals(d *compare.DefinitionDiff) (list []string) {
	for _, i := range d.Intervals {
		until := i.Until.Moment.String()
		if i.Open {
			until = "open at " + until
		}
		list = append(list, fmt.Sprintf("%s %v..%s", i.Part, i.From.Moment, until))
	}
	return list
}

func sent(list []choreography.Command) (out []string) {
	for _, c := range list {
		out = append(out, fmt.Sprint(c.Kind, " ", c.Action, " ", c.Params))
	}
	return out
}

func TestDefinitions(t *testing.T) {
	tape := played(t, `[`+walks(100, 400, "linear")+`, `+fmt.Sprintf(hears, "bell")+`]`, "go", 100, "stop", 1000)
	last := tape.Head().Seq
	left := replayOf(tape)
	for _, c := range []struct {
		name, definitions string
		first             string
		left, right       []string // commands of the first difference
		moments           int
		intervals         []string
	}{
		{"the same", walks(100, 400, "linear"), "", nil, nil, 0, nil},
		{"another sound", fmt.Sprintf(hears, "gong"), "5", []string{"execute playSound map[sound:bell]"}, []string{"execute playSound map[sound:gong]"}, 1, []string{"picture 5..5+600ms"}},
		{
			"another place", walks(160, 400, "linear"), "4",
			[]string{"start move map[to:map[x:100 y:90]]"},
			[]string{"start move map[to:map[x:160 y:90]]"},
			2,
			[]string{"picture 4+100ms..open at 5+600ms"},
		},
		{ // only on the way: the pictures at both ends are equal
			"another way", walks(100, 400, "easeIn"), "4",
			[]string{"start move map[to:map[x:100 y:90]]"},
			[]string{"start move map[to:map[x:100 y:90]]"},
			1,
			[]string{"picture 4+100ms..4+400ms"},
		},
		{
			"shorter", walks(100, 200, "linear"), "4",
			[]string{"start move map[to:map[x:100 y:90]]"},
			[]string{"start move map[to:map[x:100 y:90]]"},
			3,
			[]string{"picture 4+100ms..4+400ms"},
		},
		{ // an added choreography is the first of its signal
			"one more", `{"id": "also", "on": "stop", "steps": [{"action": "setAnimation", "entity": "ann", "state": "acting"}]}`, "5",
			nil,
			[]string{"execute setAnimation map[state:acting]"},
			1,
			[]string{"picture 5..open at 5+600ms"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			right := through(t, tape, variant.Edits{Define: parsed(t, `[`+c.definitions+`]`)})
			d, err := compare.Definitions(bg, left, right, compare.DefinitionConfig{Over: toEnd(tape)})
			require.NoError(t, err)
			assert.Equal(t, c.first == "", d.Same())
			assert.Equal(t, c.moments, d.CommandMoments)
			assert.Equal(t, c.intervals, intervals(d))
			if d.Same() {
				return
			}
			assert.Equal(t, c.first, d.First.At.Moment.String())
			assert.Equal(t, d.First.At.Moment.Seq, d.First.Entry.Seq)
			assert.Equal(t, c.left, sent(d.First.Commands.Left))
			assert.Equal(t, c.right, sent(d.First.Commands.Right))
			want, err := right.At(bg, d.First.At.Moment)
			require.NoError(t, err)
			assert.Equal(t, want.Digests(), d.First.Right.Digests())
			assert.Equal(t, len(c.intervals) > 0, d.Picture != nil)
		})
	}

	// A range limits what is compared: the commands of its first instant count.
	right := through(t, tape, variant.Edits{Define: parsed(t, `[`+walks(160, 400, "linear")+`]`)})
	over := func(text string) *compare.DefinitionDiff {
		r, err := replay.ParseRange(text)
		require.NoError(t, err)
		from, to, err := left.ResolveRange(bg, r)
		require.NoError(t, err)
		d, err := compare.Definitions(bg, left, right, compare.DefinitionConfig{Over: replay.MomentRange{From: from, To: to}})
		require.NoError(t, err)
		return d
	}
	require.True(t, over("1..3+50ms").Same())
	require.Equal(t, []string{"picture 4+150ms..open at 4+200ms"}, intervals(over("4+150ms..4+200ms")))
	require.Zero(t, over("4+150ms..4+200ms").CommandMoments)
	require.Equal(t, 1, over("4..4").CommandMoments)
	require.Equal(t, 1, over("4+400ms..5").CommandMoments)
	require.Equal(t, 0, over("5..5").CommandMoments)

	_, err := compare.Definitions(bg, left, right, compare.DefinitionConfig{Over: replay.MomentRange{To: replay.Moment{Seq: last + 1}}})
	require.ErrorIs(t, err, replay.ErrNoAddress)
	other := replayOf(played(t, `[`+walks(100, 400, "linear")+`, `+fmt.Sprintf(hears, "bell")+`]`, "go", 101, "stop", 1000))
	_, err = compare.Definitions(bg, left, other, compare.DefinitionConfig{Over: toEnd(tape)})
	require.ErrorIs(t, err, compare.ErrOtherEntries)
	stopped, stop := context.WithCancel(bg)
	stop()
	_, err = compare.Definitions(stopped, left, right, compare.DefinitionConfig{Over: toEnd(tape)})
	require.ErrorIs(t, err, context.Canceled)
}

// Commands in another order are a difference of the order, and the ids of performances are
// none.
func TestCommandsReordered(t *testing.T) {
	const one, two = `{"id": "one", "on": "stop", "steps": [{"action": "playSound", "sound": "a"}]}`, `{"id": "two", "on": "stop", "steps": [{"action": "playSound", "sound": "b"}]}`
	left := replayOf(played(t, `[`+one+`, `+two+`]`, "stop", 10))
	tape := played(t, `[`+two+`, `+one+`]`, "stop", 10)
	d, err := compare.Definitions(bg, left, replayOf(tape), compare.DefinitionConfig{Over: toEnd(tape)})
	require.NoError(t, err)
	require.Equal(t, []int{1, 1, 0, 0}, []int{d.CommandMoments, d.Reordered, d.OnlyLeft, d.OnlyRight})
	require.True(t, d.Commands[0].Reordered)
	require.Equal(t, []string{"execute playSound map[sound:a]", "execute playSound map[sound:b]"}, sent(d.Commands[0].Left))
}

// The views of agents are compared by what they show.
func TestViewsDiffer(t *testing.T) {
	record := func(d *session.Drafts, at time.Duration, word, v string) {
		d.Record(eventlog.KindEffect, at, word, enginetest.Value(t, v))
	}
	tape := enginetest.Taped(func(d *session.Drafts) {
		d.Opened(0, session.TimeManual)
		record(d, 0, "world", `{"entities": {"ann": {"type": "agent"}, "lamp": {"lit": true}}}`)
		record(d, 10*ms, "agent", `{"agent_id": "ann", "policy": {"policy": "everything"}, "permissions": []}`)
		record(d, 20*ms, "agent", `{"agent_id": "ben", "policy": {"policy": "self"}, "permissions": []}`)
		record(d, 30*ms, "left", `{"agent_id": "ann"}`)
	})
	right := through(t, tape, variant.Edits{Policy: enginetest.Value(t, `{"policy": "self"}`)})
	d, err := compare.Definitions(bg, replayOf(tape), right, compare.DefinitionConfig{Over: toEnd(tape)})
	require.NoError(t, err)
	require.Equal(t, []string{"view of ann 3..5"}, intervals(d))
	require.Equal(t, []compare.DifferencePart{{Kind: compare.AgentView, Agent: "ann"}}, d.First.Parts)
	require.Equal(t, compare.DifferenceTotal{Intervals: 1, Time: 20 * ms}, d.Totals[d.First.Parts[0]])
}

// The director differs from the entry on that begins another episode.
func TestDirectorsDiffer(t *testing.T) {
	story := func(text string) language.Declaration {
		d, err := session.CompileDeclaration("episode", enginetest.Value(t, `{"id": "e", "beats": [{"id": "a", "character_instruction": "`+text+`", "target_turn": 1, "detection_type": "automatic"}]}`))
		require.NoError(t, err)
		return d
	}
	recorded := enginetest.Authored(t, `{"id": "e", "beats": [{"id": "b", "character_instruction": "Go.", "target_turn": 1, "detection_type": "automatic"}]}`)
	tape := enginetest.Taped(func(d *session.Drafts) {
		d.Opened(0, session.TimeManual)
		d.Declaration(0, recorded)
		d.Record(eventlog.KindBeat, 10*ms, "episodeStarted", enginetest.Value(t, `{"episode": "e", "digest": "`+recorded.Digest().String()+`", "energy": "playful", "flags": []}`))
	})
	right := through(t, tape, variant.Edits{Define: []language.Declaration{story("Stop.")}})
	d, err := compare.Definitions(bg, replayOf(tape), right, compare.DefinitionConfig{Over: toEnd(tape)})
	require.NoError(t, err)
	require.Contains(t, intervals(d), "director 3..open at 3")
}

// The intervals of the picture and the instants of commands are those that a model finds
// that folds each millisecond from the beginning.
func TestDefinitionsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var signals []any
		at := 0
		for range rapid.IntRange(1, 3).Draw(t, "signals") {
			at += rapid.IntRange(1, 25).Draw(t, "gap")
			signals = append(signals, rapid.SampledFrom([]string{"go", "stop"}).Draw(t, "type"), at)
		}
		draw := func() string {
			w := walks(rapid.IntRange(100, 102).Draw(t, "x"), rapid.IntRange(8, 16).Draw(t, "duration"), rapid.SampledFrom([]string{"linear", "easeIn"}).Draw(t, "easing"))
			return `[` + w + `, ` + fmt.Sprintf(hears, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "sound")) + `]`
		}
		tape := played(t, draw(), signals...)
		left, right := replayOf(tape), through(t, tape, variant.Edits{Define: parsed(t, draw())})
		over := replay.MomentRange{To: replay.Moment{Seq: tape.Head().Seq, Offset: 18 * ms}, Every: ms}
		d, err := compare.Definitions(bg, left, right, compare.DefinitionConfig{Over: over})
		require.NoError(t, err)

		end := d.Last.At
		look := func(r *replay.Replay, m replay.Moment) [32]byte {
			f, err := r.At(bg, m)
			require.NoError(t, err)
			frame, err := film.FrameOf(f)
			require.NoError(t, err)
			return picture.Draw(frame, picture.Options{}).Hash()
		}
		var want []string
		var from time.Duration
		differs := false
		note := func(at time.Duration, now bool) {
			switch {
			case now && !differs:
				from = at
			case !now && differs && at > from:
				want = append(want, fmt.Sprint(from, at))
			}
			differs = now
		}
		for i, e := range tape.List {
			next := end
			if i+1 < len(tape.List) {
				next = tape.List[i+1].At
			}
			for off := time.Duration(0); e.At+off <= next; off += ms {
				m := replay.Moment{Seq: e.Seq, Offset: off}
				note(e.At+off, look(left, m) != look(right, m))
			}
		}
		if differs {
			want = append(want, fmt.Sprint(from, end, " open"))
		}
		var got []string
		for _, i := range d.Intervals {
			line := fmt.Sprint(i.From.At, i.Until.At)
			if i.Open {
				line = fmt.Sprint(i.From.At, i.Until.At, " open")
			}
			if i.Open || i.Until.At > i.From.At {
				got = append(got, line)
			}
		}
		require.Equal(t, want, got)

		all := func(r *replay.Replay) map[time.Duration][]string {
			var c collected
			require.NoError(t, r.Commands(bg, replay.Moment{Seq: 1}, over.To, 0, &c))
			return c.byTime()
		}
		a, b := all(left), all(right)
		var apart []time.Duration
		for at := time.Duration(0); at <= end; at += ms {
			if !slices.Equal(a[at], b[at]) {
				apart = append(apart, at)
			}
		}
		var found []time.Duration
		for _, c := range d.Commands {
			found = append(found, c.At.At)
		}
		require.Equal(t, apart, slices.Compact(found))
	})
}

// collected are the commands of a replay.
type collected []choreography.Command

func (c *collected) OnActionStart(a choreography.ActionStart)       { *c = append(*c, a.Command()) }
func (c *collected) OnActionUpdate(choreography.ActionUpdate)       {}
func (c *collected) OnActionComplete(a choreography.ActionComplete) { *c = append(*c, a.Command()) }
func (c *collected) OnActionExecute(a choreography.ActionExecute)   { *c = append(*c, a.Command()) }
func (c *collected) OnInterrupt(a choreography.Interrupt)           { *c = append(*c, a.Command()) }

func (c collected) byTime() map[time.Duration][]string {
	m := map[time.Duration][]string{}
	for _, one := range c {
		m[one.At] = append(m[one.At], fmt.Sprint(one.Kind, one.Action, one.EntityRef, one.Params, one.Duration, one.Easing))
		slices.Sort(m[one.At])
	}
	return m
}
