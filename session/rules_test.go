package session_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// A new session records the number of its rules, which the session's state has.
func TestRulesAreRecorded(t *testing.T) {
	eng, ses := enginetest.Begin(t, "store", sajou.Config{FS: vfs.NewMem()})
	defer func() { _ = eng.Close() }()
	if _, err := ses.Record(t.Context(), enginetest.DigestStory[0].Record(t, 0, 0)); err != nil {
		t.Fatal(err)
	}
	for e, err := range ses.Entries(t.Context(), 1) {
		require.NoError(t, err)
		if got := session.RulesOf(&e); got != session.Rules {
			t.Errorf("the first entry records rules %d, want %d", got, session.Rules)
		}
		break
	}
	f, err := ses.State(t.Context())
	require.NoError(t, err)
	view, _ := f.View()[session.ProjectionSession].(map[string]any)
	if view["rules"] != int64(session.Rules) {
		t.Errorf("session.rules = %v, want %d", view["rules"], session.Rules)
	}
}

// A session of newer rules is not folded, for reading or for writing, and its
// log can be verified all the same.
func TestNewerRulesAreNotFolded(t *testing.T) {
	ctx := t.Context()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { _ = eng.Close() }()
	newer := session.Rules + 1
	_, err = eng.Restore(ctx, "future", eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindSession, Data: openedUnder(newer)}}})
	require.NoError(t, err)
	_, opening := eng.Session(ctx, "future")
	_, replaying := enginetest.ReplayedAt(ctx, eng, "future", 1)
	for _, err := range []error{opening, replaying} {
		var rules *session.RulesError
		if !errors.Is(err, session.ErrRules) || !errors.As(err, &rules) || rules.Recorded != newer || rules.Present != session.Rules {
			t.Errorf("err = %v, want a RulesError from %d to %d", err, newer, session.Rules)
		}
	}
	if report, err := eng.Log().Verify(ctx, "future", verify.Options{}); err != nil || report.Fault != nil {
		t.Errorf("verify: %+v, %v", report, err)
	}
}

// A session is folded by the rules under which it was recorded, from its first entry and
// from an image alike: under rules 1 each tick was news to the agents, and cancelled what
// they generated.
func TestRecordedRulesStay(t *testing.T) {
	ctx := t.Context()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { _ = eng.Close() }()
	for rules, want := range map[int]struct {
		seq    uint64 // the view_seq of the agent
		tokens int
	}{0: {2, 0}, 1: {2, 0}, session.Rules: {0, 1}} {
		name := fmt.Sprintf("rules-%d", rules)
		var d session.Drafts
		record := func(word, value string) {
			d.Record(eventlog.KindEffect, 0, word, enginetest.Value(t, value))
		}
		record(agents.WordAgent, `{"agent_id":"a","policy":{"policy":"everything","debounce_ms":0}}`)
		record(agents.WordEffect, `{"uuid":"1","kind":"TimeTick","payload":{},"global_seq":1,"sim_time":0.0,"source_id":"game"}`)
		record(agents.WordToken, `{"agent_id":"a","req_id":"r","context_seq":1}`)
		record(agents.WordEffect, `{"uuid":"2","kind":"TimeTick","payload":{},"global_seq":2,"sim_time":0.0,"source_id":"game"}`)
		opened := eventlog.Draft{Kind: eventlog.KindSession, Data: openedUnder(rules)}
		if rules == 0 {
			opened.Data = []byte("\x92\xa6opened\x81\xa4time\xa4wall")
		}
		_, err := eng.Restore(ctx, name, eventlog.Batch{Drafts: append([]eventlog.Draft{opened}, d.List()...)})
		require.NoError(t, err)

		whole, err := enginetest.ReplayedAt(ctx, eng, name, 5)
		require.NoError(t, err)
		parts, err := enginetest.ReplayedAt(ctx, eng, name, 4)
		require.NoError(t, err)
		parts, err = parts.Clone() // restored from an image
		require.NoError(t, err)
		for e, err := range enginetest.Replay(t, eng, name).Entries(ctx, 5) {
			require.NoError(t, err)
			require.NoError(t, parts.Apply(&e))
		}
		for what, fold := range map[string]*projection.Fold{"folded": whole, "from an image": parts} {
			core := session.WorldOf(fold)
			view, _ := core.View("a")
			require.Equal(t, want.seq, view.ViewSeq, "rules %d, %s", rules, what)
			require.Len(t, core.Tokens("a"), want.tokens, "rules %d, %s", rules, what)
		}
	}
}

// The stage of a session of earlier rules notes no reference that does not resolve, from
// the first entry and from an image alike: its digests are those of earlier programs.
func TestUnresolvedReferencesByRules(t *testing.T) {
	ctx := t.Context()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { _ = eng.Close() }()
	for rules, want := range map[int]int{1: 0, session.Rules: 2} {
		name := fmt.Sprintf("rules-%d", rules)
		var d session.Drafts
		for _, declaration := range enginetest.Definitions(t, `{"id":"work","on":"error","guard":{"entity":"signal.bench"},"steps":[{"action":"setAnimation","entity":"signal.agentId","state":"signal.extra"}]}`) {
			d.Declaration(0, declaration)
		}
		sig, err := signal.Parse([]byte(`{"id":"s","type":"error","timestamp":0,"source":"test","payload":{"message":"m","severity":"error","agentId":"scout"}}`))
		require.NoError(t, err)
		d.Signal(0, sig)
		opened := eventlog.Draft{Kind: eventlog.KindSession, Data: openedUnder(rules)}
		_, err = eng.Restore(ctx, name, eventlog.Batch{Drafts: append([]eventlog.Draft{opened}, d.List()...)})
		require.NoError(t, err)

		whole, err := enginetest.ReplayedAt(ctx, eng, name, 3)
		require.NoError(t, err)
		parts, err := enginetest.ReplayedAt(ctx, eng, name, 2)
		require.NoError(t, err)
		parts, err = parts.Clone() // restored from an image
		require.NoError(t, err)
		for e, err := range enginetest.Replay(t, eng, name).Entries(ctx, 3) {
			require.NoError(t, err)
			require.NoError(t, parts.Apply(&e))
		}
		parts.Advance(parts.At()) // the step is due at the time of its signal
		require.Len(t, session.StageOf(whole).Unresolved(0), want, "rules %d", rules)
		require.Len(t, session.StageOf(parts).Unresolved(0), want, "rules %d, from an image", rules)
	}
}
