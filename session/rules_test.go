package session_test

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
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
