package variant_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
)

// world is a session of an agent ann, who sees by a policy, and of a lamp.
func world(t *testing.T, policy string) *tape {
	record := func(d *session.Drafts, word, v string) {
		d.Record(eventlog.KindEffect, 0, word, enginetest.Value(t, v))
	}
	return taped(func(d *session.Drafts) {
		d.Opened(0, session.TimeManual)
		record(d, agents.WordWorld, `{"entities": {"ann": {"type": "agent"}, "lamp": {"lit": true, "oil": 3}}}`)
		record(d, agents.WordAgent, `{"agent_id": "ann", "policy": `+policy+`, "permissions": ["submit_intent"]}`)
		record(d, agents.WordAgent, `{"agent_id": "ben", "policy": {"policy": "everything", "weight": 3}, "permissions": []}`)
	})
}

// The other policy shows the views of a session that was recorded with it, and the
// settings of each agent stay.
func TestPolicy(t *testing.T) {
	parent := world(t, `{"policy": "self", "deadline_ms": 70}`)
	v, err := variant.New(bg, parent, variant.Edits{Policy: enginetest.Value(t, `{"policy": "fields", "fields": {"oil": false}, "deadline_ms": 9}`)})
	require.NoError(t, err)
	require.Equal(t, eventlog.Seq(2), v.Shared())
	require.Equal(t, parent.Head().Seq, v.Head().Seq)
	seen := func(src replay.Source, agent string) (view string, settings agents.Settings) {
		r := session.NewReplay(src, session.Projections(session.ProjectionConfig{}), nil)
		f, err := r.At(bg, replay.Moment{Seq: src.Head().Seq})
		require.NoError(t, err)
		shown, ok := session.WorldOf(f).View(agent)
		require.True(t, ok)
		settings, _ = session.WorldOf(f).Settings(agent)
		return shown.Value().String(), settings
	}
	before, was := seen(parent, "ann")
	require.NotContains(t, before, "lamp")
	now, is := seen(v, "ann")
	require.Equal(t, was, is)
	recorded, _ := seen(world(t, `{"policy": "fields", "fields": {"oil": false}, "deadline_ms": 70}`), "ann")
	require.Equal(t, recorded, now)
	require.Contains(t, now, `"lit":true`)
	require.NotContains(t, now, "oil")
	ben, settings := seen(v, "ben")
	require.NotContains(t, ben, "oil")
	require.Equal(t, 3, settings.Weight)

	same, err := variant.New(bg, world(t, `{"policy": "everything"}`), variant.Edits{Policy: enginetest.Value(t, `{"policy": "everything"}`)})
	require.NoError(t, err)
	require.Equal(t, eventlog.Seq(4), same.Shared())
}

func TestPolicyWithoutAgents(t *testing.T) {
	_, err := variant.New(bg, song(t, "go"), variant.Edits{Policy: enginetest.Value(t, `{}`)})
	require.ErrorIs(t, err, variant.ErrChange)
	require.ErrorContains(t, err, "no agent is registered")
	// A registration that is dropped is none.
	_, err = variant.New(bg, world(t, `{}`), variant.Edits{Policy: enginetest.Value(t, `{}`), Drop: []eventlog.Seq{3, 4}})
	require.ErrorIs(t, err, variant.ErrChange)
}
