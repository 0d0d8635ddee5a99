package edits_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/edits"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

const ms = time.Millisecond

// tape is a session in memory.
type tape struct{ entries []eventlog.Entry }

func (s *tape) Name() string           { return "tape" }
func (s *tape) Genesis() eventlog.Hash { return chain.Genesis("tape") }
func (s *tape) Head() eventlog.Head {
	if len(s.entries) == 0 {
		return eventlog.Head{Hash: s.Genesis()}
	}
	return s.entries[len(s.entries)-1].Head()
}

func (s *tape) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for i := max(int(from), 1) - 1; i < len(s.entries) && ctx.Err() == nil; i++ {
			if !yield(s.entries[i], nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(eventlog.Entry{}, err)
		}
	}
}

// walks is a session in which a signal moves one figure once a second, from entry 2 on.
func walks(times int) *tape {
	var d session.Drafts
	d.Opened(0, session.TimeManual)
	for i := range times {
		d.Signal(time.Duration(i+1)*time.Second, &signal.Signal{
			ID: fmt.Sprint(i), Type: "walk", Timestamp: signal.Int(1), Source: "test",
			Payload: signal.NewObject(1).Text("agentId", "ann").Value(),
		})
	}
	s := &tape{}
	for _, draft := range d.List() {
		body := chain.AppendBody(nil, &draft, "")
		e := eventlog.Entry{Seq: s.Head().Seq + 1, Batch: 1}
		e.Hash[0], e.Hash[1] = byte(e.Seq), 1
		if err := chain.DecodeBody(&e, body); err != nil {
			panic(err)
		}
		s.entries = append(s.entries, e)
	}
	return s
}

// walkTo is a version in which ann walks to x in 500 ms.
func walkTo(x int) edits.Version {
	return version(fmt.Sprintf(`{"id": "walk", "on": "walk", "steps": [{"action": "move", "entity": "signal.agentId", "to": {"x": %d, "y": 100}, "duration": 500}]}`, x))
}

func version(text string) edits.Version {
	return edits.Version{Name: text, Content: bisect.HashInput([]byte(text)), Read: func(context.Context) ([]edits.VersionFile, error) {
		if text == "" {
			return nil, nil
		}
		return []edits.VersionFile{{Name: "walk.json", Text: []byte(text)}}, nil
	}}
}

func compile(_ context.Context, v *edits.Version, files []edits.VersionFile) (variant.Edits, error) {
	list, problems := language.Parse(files[0].Name, files[0].Text)
	if problems.Refused() {
		return variant.Edits{}, &edits.RefusedError{Version: v.Name, Reason: errors.New("broken")}
	}
	return variant.Edits{Define: list}, nil
}

// where is where ann stands, or -1.
func where(f *projection.Fold) float64 {
	for _, figure := range session.StageOf(f).Frame().Figures {
		if figure.ID == "ann" {
			return figure.X
		}
	}
	return -1
}

func config(at replay.Moment) edits.Config {
	return edits.Config{At: at, Projections: session.Projections(session.ProjectionConfig{}), Compile: compile}
}

// place is a test that sees where ann stands. Judge says that far away is bad, and counts.
func place(runs *int) bisect.Test {
	return bisect.Test{
		Needs: replay.NeedsState,
		Input: func(_ context.Context, s *replay.ScanStep) (bisect.InputHash, error) {
			return bisect.HashInput(fmt.Append(nil, where(s.Fold))), nil
		},
		Judge: func(_ context.Context, _ replay.Moment, f *projection.Fold) (bisect.TestResult, error) {
			*runs++
			return verdict(where(f)), nil
		},
	}
}

func verdict(x float64) bisect.TestResult {
	if x > 500 {
		return bisect.Bad
	}
	return bisect.Good
}

var far = bisect.Exact(replay.NeedsState, func(_ context.Context, s *replay.ScanStep) (bisect.TestResult, error) {
	return verdict(where(s.Fold)), nil
})

var bg = context.Background()

// A search over any versions finds what judging each of them alone finds.
func TestFindProperty(t *testing.T) {
	s := walks(2)
	rapid.Check(t, func(t *rapid.T) {
		at := replay.Moment{Seq: eventlog.Seq(rapid.IntRange(2, 3).Draw(t, "seq")), Offset: time.Duration(rapid.IntRange(0, 600).Draw(t, "ms")) * ms}
		var all []edits.Version
		var alone []bisect.TestResult
		for range rapid.IntRange(2, 8).Draw(t, "versions") {
			text := "["
			if x := rapid.IntRange(-1, 9).Draw(t, "x"); x >= 0 {
				all = append(all, walkTo(100*x))
				v, err := variant.New(bg, s, variant.Edits{Define: parse(all[len(all)-1].Name)})
				require.NoError(t, err)
				f, err := session.NewReplay(v, session.Projections(session.ProjectionConfig{}), nil).At(bg, at)
				require.NoError(t, err)
				alone = append(alone, verdict(where(f)))
				continue
			} else if rapid.Bool().Draw(t, "absent") {
				text = ""
			}
			all, alone = append(all, version(text)), append(alone, bisect.Skip)
		}
		cfg := config(at)
		cfg.Jobs = rapid.IntRange(1, 3).Draw(t, "jobs")
		cfg.Goal = rapid.SampledFrom([]bisect.Goal{bisect.Any, bisect.First, bisect.Last, bisect.AllPhases}).Draw(t, "goal")
		out, err := edits.Find(bg, s, all, far, cfg)
		require.NoError(t, err)
		good, bad := -1, -1
		last := -1
		for i, r := range alone {
			require.Equal(t, r, out.Search.Result(i), "version %d", i)
			require.Equal(t, r == bisect.Skip, out.Refused[i] != nil)
			switch {
			case r == bisect.Good:
				last = i
			case r == bisect.Bad && last >= 0 && (bad < 0 || cfg.Goal == bisect.Last):
				good, bad = last, i
			}
			if r == bisect.Bad {
				last = -1
			}
		}
		require.Equal(t, bad >= 0, out.Found)
		if !out.Found {
			require.Nil(t, out.Parting)
			return
		}
		require.Equal(t, [2]int{good, bad}, [2]int{out.Good, out.Bad})
		require.NotNil(t, out.Parting)
		require.LessOrEqual(t, out.Parting.Moment.Compare(at), 0)
	})
}

func parse(text string) []language.Declaration {
	list, _ := language.Parse("walk.json", []byte(text))
	return list
}

// A search by halves runs the test once for versions with which it sees the same, and its
// answer has both the edit and the instant.
func TestFindBoth(t *testing.T) {
	s := walks(3)
	var all []edits.Version
	for i := range 40 { // the contents differ, and what ann does does not
		v := walkTo(300 + 400*(i/25))
		v.Content = bisect.HashInput([]byte{byte(i)})
		all = append(all, v)
	}
	runs := 0
	out, err := edits.Find(bg, s, all, place(&runs), config(replay.Moment{Seq: 3}))
	require.NoError(t, err)
	require.Equal(t, [2]int{24, 25}, [2]int{out.Good, out.Bad})
	assert.Equal(t, 2, runs)
	assert.Equal(t, 2, out.Tests)
	assert.Equal(t, "one transition", out.Assumes())
	assert.Equal(t, edits.Parting{Moment: replay.Moment{Seq: 2, Offset: ms}, At: 1001 * ms, Step: ms}, *out.Parting)
}

func TestFindChanged(t *testing.T) {
	s := walks(2)
	test := place(new(int))
	test.Judge = nil
	cfg := config(replay.Moment{Seq: 3})
	cfg.Changed = true
	out, err := edits.Find(bg, s, []edits.Version{walkTo(300), walkTo(700), walkTo(300)}, test, cfg)
	require.NoError(t, err)
	require.Equal(t, []bisect.Phase{{First: 0, Last: 0, Result: bisect.Good}, {First: 1, Last: 1, Result: bisect.Bad}, {First: 2, Last: 2, Result: bisect.Good}}, out.Phases)
	require.NotEqual(t, out.Seen[0], out.Seen[1])
	require.Equal(t, out.Seen[0], out.Seen[2])

	_, err = edits.Find(bg, s, []edits.Version{version("["), walkTo(700)}, test, cfg)
	refused := &edits.RefusedError{}
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "[", refused.Version)
}

func TestFindRefuses(t *testing.T) {
	s := walks(2)
	_, err := edits.Find(bg, s, []edits.Version{walkTo(1)}, far, config(replay.Moment{Seq: 2}))
	require.ErrorIs(t, err, edits.ErrVersions)
	_, err = edits.Find(bg, s, []edits.Version{walkTo(1), walkTo(2)}, far, config(replay.Moment{Seq: 9}))
	require.ErrorIs(t, err, replay.ErrNoAddress)

	end := &bisect.EndpointError{}
	out, err := edits.Find(bg, s, []edits.Version{version("["), walkTo(700)}, place(new(int)), config(replay.Moment{Seq: 3}))
	require.ErrorAs(t, err, &end)
	require.Equal(t, 0, end.Index)
	require.Error(t, out.Refused[0])

	ctx, cancel := context.WithCancel(bg)
	test := place(new(int))
	judge := test.Judge
	test.Judge = func(ctx context.Context, m replay.Moment, f *projection.Fold) (bisect.TestResult, error) {
		cancel()
		return judge(ctx, m, f)
	}
	out, err = edits.Find(ctx, s, []edits.Version{walkTo(1), walkTo(2), walkTo(700)}, test, config(replay.Moment{Seq: 3}))
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, out.Judged, 3)
}

// A test that contradicts itself at an end is noticed, because the ends are judged again by
// the test, and not by what is known of their input.
func TestFindRecheck(t *testing.T) {
	runs := 0
	test := place(new(int))
	test.Judge = func(_ context.Context, _ replay.Moment, f *projection.Fold) (bisect.TestResult, error) {
		if runs++; runs > 2 {
			return bisect.Bad, nil
		}
		return verdict(where(f)), nil
	}
	cfg := config(replay.Moment{Seq: 3})
	cfg.Recheck = true
	out, err := edits.Find(bg, walks(2), []edits.Version{walkTo(300), walkTo(700)}, test, cfg)
	require.NoError(t, err)
	require.Equal(t, []bisect.Conflict{{Index: 0, Was: bisect.Good, Now: bisect.Bad}}, out.Conflicts)
	require.Equal(t, 4, out.Tests)
}

// Two sessions part at an entry, at a boundary, while something moves, or not at all.
func TestPart(t *testing.T) {
	s := walks(2)
	open := func(text string) *replay.Replay {
		v, err := variant.New(bg, s, variant.Edits{Define: parse(text)})
		require.NoError(t, err)
		return session.NewReplay(v, session.Projections(session.ProjectionConfig{}), nil)
	}
	const teleport = `{"id": "walk", "on": "walk", "steps": [{"action": "spawn", "entity": "ann", "at": {"x": %d, "y": 1}}]}`
	const later = `{"id": "walk", "on": "walk", "steps": [{"action": "wait", "duration": 300}, {"action": "spawn", "entity": "ann", "at": {"x": %d, "y": 1}}]}`
	for _, c := range []struct {
		name, left, right string
		want              *edits.Parting
	}{
		{"entry", fmt.Sprintf(teleport, 1), fmt.Sprintf(teleport, 2), &edits.Parting{Moment: replay.Moment{Seq: 2}, At: time.Second}},
		{"boundary", fmt.Sprintf(later, 1), fmt.Sprintf(later, 2), &edits.Parting{Moment: replay.Moment{Seq: 2, Offset: 300 * ms}, At: 1300 * ms}},
		{"moving", walkTo(300).Name, walkTo(301).Name, &edits.Parting{Moment: replay.Moment{Seq: 2, Offset: ms}, At: 1001 * ms, Step: ms}},
		{"same", walkTo(300).Name, walkTo(300).Name, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			test := place(new(int))
			got, err := edits.Part(bg, open(c.left), open(c.right), replay.Moment{Seq: 3, Offset: 700 * ms}, test)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
			if c.name == "moving" { // a test of the moment before has none between boundaries
				test.Needs |= replay.NeedsPrev
				got, err = edits.Part(bg, open(c.left), open(c.right), replay.Moment{Seq: 3}, test)
				require.NoError(t, err)
				assert.Equal(t, &edits.Parting{Moment: replay.Moment{Seq: 2, Offset: 500 * ms}, At: 1500 * ms}, got)
			}
		})
	}
}
