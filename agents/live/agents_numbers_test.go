package live_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// TestOwnNumbers shows that what an agent gets from a live world has the same
// numbers however much happens out of its sight, also after a restart, and that its
// numbers are understood when it gives them back.
func TestOwnNumbers(t *testing.T) {
	play := func(noise int) (account []string) {
		ctx, fs := t.Context(), vfs.NewMem()
		note := func(format string, args ...any) { account = append(account, fmt.Sprintf(format, args...)) }
		open := func() (*sajou.Engine, *agentslive.Agents) {
			eng, err := sajou.Open("store", sajou.Config{FS: fs})
			require.NoError(t, err)
			ses, err := eng.Begin(ctx, "world", session.TimeManual)
			require.NoError(t, err)
			return eng, ses.Agents()
		}
		eng, world := open()
		hidden := func() {
			for range noise {
				if _, err := world.Broadcast(ctx, enginetest.Draft("EntityUpdated", "spy", `{"entity_id":"spy","fields":{"hp":1}}`)); err != nil {
					t.Fatal(err)
				}
			}
		}
		require.NoError(t, world.Configure(ctx, enginetest.Value(t, `{`+unlimited+`}`)))
		require.NoError(t, world.Configure(ctx, enginetest.Value(t, `{"cooldowns":"off","quota_intents_per_minute":-1,"staleness_threshold":1}`)))
		require.NoError(t, world.Begin(ctx, enginetest.Value(t, `{"entities":{"me":{},"you":{},"spy":{}},"spatial_index":{"me":[0,0],"you":[1,0],"spy":[99,0]}}`)))
		hidden()
		me, err := world.Register(ctx, "me", enginetest.Value(t, `{"policy":"fog","of":{"policy":"distance","limit":5}}`))
		require.NoError(t, err)
		read := func() {
			require.NoError(t, world.Settle(ctx))
			for _, o := range drain(t, me) {
				note("told %d %v %s", o.ViewSeq, jsondoc.PatchValue(o.Patches), o.ContextDigest())
			}
			v, err := world.View(ctx, "me")
			latest, _ := world.LatestViewSeq("me")
			note("view %v %v, latest %d", v.Value(), err, latest)
		}
		submit := func(req string, context uint64, kind, payload string) {
			o, err := me.Submit(ctx, agents.Intent{Kind: kind, ReqID: req, ContextSeq: context, Payload: enginetest.Value(t, payload)})
			note("%s: %v %d %s, %v", req, o.Status, o.GlobalSeq, o.UUID, err)
			if o.Effect != nil {
				note("%+v", *o.Effect)
			}
			if r, ok := errors.AsType[*agents.Rejection](err); ok {
				note("%+v", *r)
			}
		}
		for i := range 4 {
			hidden()
			submit(fmt.Sprint("a", i), me.ViewSeq(), "Speak", `{"text":"hi"}`)
			if _, err := world.Broadcast(ctx, enginetest.Draft("EntityUpdated", "you", fmt.Sprintf(`{"entity_id":"you","fields":{"n":%d}}`, i))); err != nil {
				t.Fatal(err)
			}
			submit(fmt.Sprint("b", i), 1, "Interact", `{"target_id":"you"}`)
			submit(fmt.Sprint("c", i), 1<<40, "Interact", `{"target_id":"spy"}`)
			gen, err := me.Begin(ctx, agents.TokenRequest{ReqID: fmt.Sprint("g", i), ContextSeq: me.ViewSeq()})
			require.NoError(t, err)
			note("goes by %d", gen.Token().ContextSeq)
			read()
			note("%v", cause(gen))
		}
		if _, err := world.Broadcast(ctx, enginetest.Draft("Move", "you", `{"to":[50,0]}`)); err != nil {
			t.Fatal(err)
		}
		hidden()
		last := me.ViewSeq()
		require.NoError(t, eng.Close())
		eng, world = open()
		defer func() { _ = eng.Close() }()
		if me, err = world.Resume(ctx, "me", last); err != nil {
			t.Fatal(err)
		}
		read()
		submit("a1", 0, "Speak", `{}`)
		submit("last", me.ViewSeq(), "Speak", `{"text":"bye"}`)
		read()
		return account
	}
	quiet, loud := play(0), play(5)
	for i := range max(len(quiet), len(loud)) {
		if i >= len(quiet) || i >= len(loud) || quiet[i] != loud[i] {
			t.Fatalf("line %d:\n%s\n%s", i, quiet[min(i, len(quiet)-1)], loud[min(i, len(loud)-1)])
		}
	}
}
