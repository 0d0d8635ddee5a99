package fork_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/fork"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// recordTasks records a session of declarations and n signals of tasks.
func recordTasks(t testing.TB, eng *sajou.Engine, name string, n int) {
	ses := enginetest.BeginManual(t, eng, name)
	_, err := ses.Define(t.Context(), enginetest.Definitions(t, enginetest.Dispatch)...)
	require.NoError(t, err)
	for i := range n {
		_, err := ses.Signal(t.Context(), enginetest.TaskSignal(i, int64(i)*300))
		require.NoError(t, err)
	}
}

func endOf(t require.TestingT, eng *sajou.Engine, name string) *projection.Fold {
	r, err := eng.Replay(name)
	require.NoError(t, err)
	f, err := r.At(context.Background(), replay.Moment{Seq: r.Head().Seq, Offset: 100 * time.Millisecond})
	require.NoError(t, err)
	return f
}

// without returns the digests except that of the session itself, which counts entries and
// has the label.
func without(digests []projection.Digest) (list []string) {
	for _, d := range digests {
		if d.Name != session.ProjectionSession {
			list = append(list, d.String())
		}
	}
	return list
}

func entries(t require.TestingT, eng *sajou.Engine, name string) (list []eventlog.Entry) {
	log, err := eng.Log().Session(name)
	require.NoError(t, err)
	for e, err := range log.Entries(context.Background(), 1) {
		require.NoError(t, err)
		list = append(list, e)
	}
	return list
}

// A fork of signals has the states of the variant, the numbers of its parent and a label;
// the parent stays as it was.
func TestSignals(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	recordTasks(t, eng, "night", 12)
	log, err := eng.Log().Session("night")
	require.NoError(t, err)
	before := log.Head()
	edits := variant.Edits{Set: map[eventlog.Seq][]byte{5: enginetest.TaskSignal(40, 900).Append(nil)}, Drop: []eventlog.Seq{7, 9}, Until: 13}
	made, head, err := eng.Fork(t.Context(), "night", "what-if", fork.Config{At: 5, Edits: edits})
	require.NoError(t, err)
	require.Equal(t, eventlog.Seq(13), head.Seq)
	require.Equal(t, before, log.Head())
	require.Equal(t, fork.Reapplied{Entries: 13}, made.Report())

	v, err := variant.New(t.Context(), log, edits)
	require.NoError(t, err)
	want, err := session.NewReplay(v, eng.Projections(), nil).At(t.Context(), replay.Moment{Seq: 13, Offset: 100 * time.Millisecond})
	require.NoError(t, err)
	got := endOf(t, eng, "what-if")
	require.Equal(t, without(want.Digests()), without(got.Digests()))

	label := session.StateOf(got).Fork()
	require.Equal(t, "night", label.Parent)
	require.Equal(t, before, label.Head)
	require.Equal(t, eventlog.Seq(5), label.At)
	require.True(t, label.Complete(head))
	require.False(t, label.Complete(eventlog.Head{Seq: 12}))
	require.Contains(t, label.String(), `fork of "night" at 5, head 14:`)
	require.Equal(t, map[string]any{"parent": "night", "head": before.String(), "at": int64(5)}, got.View()["session"].(map[string]any)["fork"])
	require.Equal(t, `fork of "night" at 5`, session.StageOf(got).Frame().Mark)
	require.Empty(t, session.StageOf(endOf(t, eng, "night")).Frame().Mark)
	require.Nil(t, session.StateOf(endOf(t, eng, "night")).Fork())

	// The label survives an image, and so does the mark.
	again, err := projection.RestoreFold(got.Set(), got.Image())
	require.NoError(t, err)
	require.Equal(t, got.Image(), again.Image())
	require.Equal(t, `fork of "night" at 5`, session.StageOf(again).Frame().Mark)

	report, err := eng.Log().Verify(t.Context(), "what-if", verify.Options{})
	require.NoError(t, err)
	require.Nil(t, report.Fault)
}

// A fork is a session: it is continued, and forked again. Its label names its parent, whose
// own label it has too.
func TestForkOfFork(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	recordTasks(t, eng, "a", 4)
	_, _, err := eng.Fork(t.Context(), "a", "b", fork.Config{Edits: variant.Edits{Drop: []eventlog.Seq{4}}})
	require.NoError(t, err)
	ses, err := eng.Session(t.Context(), "b")
	require.NoError(t, err)
	_, err = ses.Signal(t.Context(), enginetest.TaskSignal(9, 5000))
	require.NoError(t, err)
	_, head, err := eng.Fork(t.Context(), "b", "c", fork.Config{At: 6})
	require.NoError(t, err)
	require.Equal(t, ses.Head().Seq, head.Seq)
	f := endOf(t, eng, "c")
	label := session.StateOf(f).Fork()
	require.Equal(t, "b", label.Parent)
	require.Equal(t, ses.Head(), label.Head)
	require.Equal(t, "a", label.Of.Parent)
	require.Nil(t, label.Of.Of)
	require.Contains(t, label.String(), `itself a fork of "a" at 4`)
	require.Equal(t, session.Rules, session.StateOf(f).Rules())
	require.Equal(t, without(endOf(t, eng, "b").Digests()), without(f.Digests()))

	_, _, err = eng.Fork(t.Context(), "a", "c", fork.Config{})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	_, _, err = eng.Fork(t.Context(), "nobody", "d", fork.Config{})
	require.ErrorIs(t, err, eventlog.ErrNoSession)
	_, err = eng.Delete(t.Context(), "a")
	require.NoError(t, err)
	_, _, err = eng.Fork(t.Context(), "a", "d", fork.Config{})
	require.ErrorIs(t, err, eventlog.ErrDeleted)
	require.Equal(t, "a", session.StateOf(endOf(t, eng, "c")).Fork().Of.Parent)
	_, _, err = eng.Fork(t.Context(), "c", "a", fork.Config{})
	require.ErrorIs(t, err, eventlog.ErrDeleted)
}

func TestImpossible(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	recordTasks(t, eng, "a", 4)
	broken := *enginetest.TaskSignal(1, 1)
	broken.Payload = signal.NewObject(0).Value()
	for reason, cfg := range map[string]fork.Config{
		"entry 3 is in front of entry 4": {At: 4, Edits: variant.Edits{Drop: []eventlog.Seq{3}}},
		"cannot end at 3":                {At: 4, Edits: variant.Edits{Until: 3}},
		"no entry 9 to fork at":          {At: 9},
		"the last one is 6":              {Edits: variant.Edits{Until: 7}},
		"payload":                        {Edits: variant.Edits{Set: map[eventlog.Seq][]byte{4: broken.Append(nil)}}},
	} {
		_, _, err := eng.Fork(t.Context(), "a", "b", cfg)
		require.ErrorIs(t, err, variant.ErrChange, reason)
		assert.ErrorContains(t, err, reason)
	}
	log, err := eng.Log().Session("b")
	require.NoError(t, err)
	require.False(t, log.Exists())
}

// recordWorld records a world with two agents, of whom one asks for what another made
// possible.
func recordWorld(t testing.TB, eng *sajou.Engine, name string) *sajou.Session {
	ctx := t.Context()
	ses := enginetest.BeginManual(t, eng, name)
	w := ses.Agents()
	require.NoError(t, w.Configure(ctx, enginetest.Value(t, `{"authority":"manual","cooldowns":"off"}`)))
	require.NoError(t, w.Begin(ctx, enginetest.Value(t, `{"entities":{"ann":{"position":[0,0]},"bob":{"position":[5,0]},"lamp":{"position":[1,0]}}}`)))
	for _, id := range []string{"ann", "bob"} {
		_, err := w.Register(ctx, id, enginetest.Value(t, `{}`))
		require.NoError(t, err)
	}
	return ses
}

func speak(t testing.TB, ses *sajou.Session, by, req, text string) {
	seen, _ := ses.Agents().LatestViewSeq(by)
	_, err := ses.Agents().Submit(t.Context(), agents.Intent{
		Kind: world.KindSpeak, AgentID: by, ReqID: req, ContextSeq: seen,
		Payload: enginetest.Value(t, fmt.Sprintf(`{"channel":"public","text":%q}`, text)),
	})
	require.NoError(t, err)
}

// applied returns the words of the effect entries, and fails the test if a fold ignores one.
func applied(t require.TestingT, eng *sajou.Engine, name string) (words []string) {
	f := projection.NewFold(session.Projections(session.ProjectionConfig{}), eventlog.Genesis(name))
	session.ObserveWorld(f, func(c session.WorldChange) {
		require.NoError(t, c.Applied.Err, "entry %d", c.Entry.Seq)
		if c.Applied.Effect != nil {
			words = append(words, fmt.Sprintf("%d %s", c.Applied.Effect.GlobalSeq, c.Applied.Effect.Kind))
		}
	})
	for _, e := range entries(t, eng, name) {
		require.NoError(t, f.Apply(&e))
	}
	return words
}

// Without changes the world of a fork is that of its parent.
func TestSameWorld(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	ses := recordWorld(t, eng, "a")
	speak(t, ses, "ann", "r1", "hello")
	speak(t, ses, "bob", "r2", "hi")
	_, _, err := eng.Fork(t.Context(), "a", "b", fork.Config{})
	require.NoError(t, err)
	require.Equal(t, without(endOf(t, eng, "a").Digests()), without(endOf(t, eng, "b").Digests()))
	a, b := entries(t, eng, "a"), entries(t, eng, "b")
	require.Len(t, b, len(a))
	for i := range a[1:] {
		require.Equal(t, a[i+1].Body, b[i+1].Body)
	}
}

// Behind a dropped decision the later ones are made again, and those that the new state
// refuses are left out.
func TestDecidedAgain(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	ses := recordWorld(t, eng, "a")
	speak(t, ses, "ann", "r1", "hello") // 6
	_, err := ses.Agents().Broadcast(t.Context(), enginetest.Draft("EntityCreated", "gm", `{"entity_id":"cat","position":[2,2]}`))
	require.NoError(t, err) // 7
	speak(t, ses, "bob", "r2", "hi")
	_, err = ses.Agents().Broadcast(t.Context(), enginetest.Draft("EntityUpdated", "gm", `{"entity_id":"cat","changes":{"mood":"happy"}}`))
	require.NoError(t, err)
	speak(t, ses, "ann", "r3", "bye")
	list := applied(t, eng, "a")

	made, _, err := eng.Fork(t.Context(), "a", "b", fork.Config{Edits: variant.Edits{Drop: []eventlog.Seq{7}}})
	require.NoError(t, err)
	report := made.Report()
	require.Nil(t, report.Stopped)
	t.Log(list, applied(t, eng, "b"), report)
	require.Len(t, entries(t, eng, "b"), len(entries(t, eng, "a")))
	require.Equal(t, []string{"1 Speak", "2 Speak", "3 Speak"}, applied(t, eng, "b"))
	require.Len(t, report.Left, 1)
	require.Equal(t, eventlog.Seq(9), report.Left[0].Seq)
	require.Contains(t, report.Left[0].What, "EntityUpdated")
	require.Contains(t, report.Left[0].Reason, "cat")
	require.Equal(t, 3, report.Decided)
}

// Whatever is dropped, each effect of a fork is one that its world takes in, and every
// entry keeps its number.
func TestWorldProperty(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	ses := recordWorld(t, eng, "a")
	for i := range 6 {
		speak(t, ses, "ann", fmt.Sprint("a", i), "one")
		_, err := ses.Agents().Broadcast(t.Context(), enginetest.Draft("EntityCreated", "gm", fmt.Sprintf(`{"entity_id":"cat%d"}`, i)))
		require.NoError(t, err)
		_, err = ses.Agents().Quantum(t.Context(),
			agents.Submission{Draft: ptr(enginetest.Draft("EntityUpdated", "gm", fmt.Sprintf(`{"entity_id":"cat%d","changes":{"n":1}}`, i)))},
			agents.Submission{Draft: ptr(enginetest.Draft("EntityUpdated", "gm", fmt.Sprintf(`{"entity_id":"cat%d","changes":{"m":1}}`, i/2)))})
		require.NoError(t, err)
		speak(t, ses, "bob", fmt.Sprint("b", i), "two")
	}
	all := entries(t, eng, "a")
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		drop := rapid.SliceOfDistinct(rapid.Custom(func(rt *rapid.T) eventlog.Seq {
			return eventlog.Seq(rapid.IntRange(2, len(all)).Draw(rt, "seq"))
		}), rapid.ID[eventlog.Seq]).Draw(rt, "drop")
		runs++
		name := fmt.Sprint("fork-", runs)
		made, head, err := eng.Fork(context.Background(), "a", name, fork.Config{Edits: variant.Edits{Drop: drop}})
		require.NoError(rt, err)
		require.Equal(rt, len(all), int(head.Seq))
		list := applied(rt, eng, name)
		for i, one := range list {
			require.Contains(rt, one, fmt.Sprintf("%d ", i+1))
		}
		kept, effects := 0, 0
		for i, e := range entries(rt, eng, name) {
			require.Equal(rt, all[i].At, e.At)
			if e.Kind == eventlog.KindEffect {
				effects++
			}
			if e.Kind == all[i].Kind {
				kept++
			}
		}
		report := made.Report()
		require.Equal(rt, len(all), kept+len(drop)+len(report.Left), "%v", report)
	})
}

func ptr[T any](v T) *T { return &v }
