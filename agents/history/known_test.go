package history_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/query"
	agentview "github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/internal/attack"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
)

// A prompt holds what the agent knows when its generation begins: what is still on
// its way, be it for an hour, is not in the view, as [sajou.Replay.Knows] says of the
// same moment.
func TestPromptHoldsWhatTheAgentKnows(t *testing.T) {
	v := enginetest.RecordVault(t, sajou.Config{SnapshotEvery: 2})
	v.Register("clerk", `{"policy":"everything","latency_model":3600000,"staleness_threshold":1000}`)
	v.Wait(time.Hour) // its whole view
	before := v.Given("clerk", "first", nil)
	if _, ok := path(t, "vault").In(before.Value()); !ok {
		t.Fatalf("before anything happens the clerk sees %s", enginetest.Shown(before.Value()))
	}
	v.Wait(time.Hour + time.Second)
	v.Happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"code":"NEW-1"}}`)
	v.Happens("EntityCreated", "gm", `{"entity_id":"door","entity_data":{}}`)
	for i, wait := range []time.Duration{0, time.Second, 30 * time.Minute} {
		v.Wait(time.Hour + time.Second + wait)
		req := fmt.Sprint("early-", i)
		view := v.Given("clerk", req, nil)
		if _, ok := path(t, "door").In(view.Value()); ok || view.ContextDigest != before.ContextDigest {
			t.Errorf("%v after it happened, an hour before it arrives: %s", wait, enginetest.Shown(view.Value()))
		}
		seq, token := v.Token("clerk", req)
		known := v.Knows("clerk", replay.Moment{Seq: seq})
		digest, _ := token.Get("context_digest")
		if known.View.ContextDigest != view.ContextDigest || len(known.Pending) == 0 ||
			enginetest.Shown(digest) != `"`+view.ContextDigest+`"` {
			t.Errorf("the prompt has %d %s, knows says %d %s, the token %s", view.ViewSeq, view.ContextDigest,
				known.View.ViewSeq, known.View.ContextDigest, enginetest.Shown(digest))
		}
	}
	// Neither does the token of a generation that the program drives itself tell of it.
	g, err := v.World.Agent(t.Context(), "clerk")
	v.Must(err)
	by, err := g.Begin(t.Context(), agents.TokenRequest{ReqID: "by hand", Current: true})
	v.Must(err)
	if by.Token().ContextDigest != before.ContextDigest {
		t.Errorf("the token has the digest %s of a view that is on its way", by.Token().ContextDigest)
	}
	v.Must(by.End(t.Context(), "given_up"))
	now, err := v.World.Known(t.Context(), "clerk")
	v.Must(err)
	if now.ContextDigest != before.ContextDigest {
		t.Errorf("Known: %s", enginetest.Shown(now.Value()))
	}
	v.Wait(2*time.Hour + 2*time.Second)
	if view := v.Given("clerk", "late", nil); !contains(view, "door") {
		t.Errorf("when it has arrived: %s", enginetest.Shown(view.Value()))
	}
}

func contains(v agentview.View, id string) bool {
	_, ok := agentview.EntityPath(id).In(v.Value())
	return ok
}

// The view of a prompt is the same in a program that was started again while news
// was on its way.
func TestPromptAfterARestart(t *testing.T) {
	for _, every := range []int{-1, 1} {
		fs := vfs.NewMem()
		first := enginetest.RecordVault(t, sajou.Config{SnapshotEvery: every, FS: fs})
		first.Register("clerk", `{"policy":"everything","latency_model":60000}`)
		first.Wait(time.Minute)
		first.Happens("EntityCreated", "gm", `{"entity_id":"door","entity_data":{}}`)
		first.Wait(time.Minute + time.Second)
		first.Must(first.World.Settle(t.Context()))
		first.Must(first.Eng.Close())
		eng, err := sajou.Open("store", sajou.Config{SnapshotEvery: every, FS: fs})
		first.Must(err)
		defer func() { _ = eng.Close() }()
		ses, err := eng.Session(t.Context(), "vault")
		first.Must(err)
		v := &enginetest.Vault{Eng: eng, World: ses.Agents(), T: t}
		if view := v.Given("clerk", "early", nil); contains(view, "door") || !contains(view, "vault") {
			t.Errorf("snapshots every %d: %s", every, enginetest.Shown(view.Value()))
		}
		v.Wait(90 * time.Second)
		v.Happens("EntityCreated", "gm", `{"entity_id":"bell","entity_data":{}}`)
		v.Wait(2 * time.Minute)
		if view := v.Given("clerk", "next", nil); !contains(view, "door") || contains(view, "bell") {
			t.Errorf("snapshots every %d, a minute later: %s", every, enginetest.Shown(view.Value()))
		}
	}
}

// News that arrives while a generation runs makes it stale, also if it was made
// before the generation began.
func TestArrivingNewsInterrupts(t *testing.T) {
	v := enginetest.RecordVault(t, sajou.Config{})
	v.Register("clerk", `{"policy":"everything","latency_model":1000}`)
	v.Wait(time.Second)
	v.Happens("EntityCreated", "gm", `{"entity_id":"door","entity_data":{}}`)
	g, err := v.World.Agent(t.Context(), "clerk")
	v.Must(err)
	begun := make(chan struct{})
	waits := generatorFunc(func(ctx context.Context, _ generate.Prompt) iter.Seq2[string, error] {
		return func(func(string, error) bool) {
			close(begun)
			<-ctx.Done()
		}
	})
	failed := make(chan error, 1)
	go func() {
		_, err := generate.Run(t.Context(), g, waits, generate.Request{ReqID: "r", Regenerations: -1, Prompt: func(agentview.View) generate.Prompt { return generate.Prompt{} }})
		failed <- err
	}()
	<-begun
	v.Wait(2 * time.Second)
	err = <-failed
	var halted *agentslive.InterruptedError
	if !errors.As(err, &halted) {
		t.Errorf("the news has arrived, and the generation ended with %v", err)
	}
}

type generatorFunc func(context.Context, generate.Prompt) iter.Seq2[string, error]

func (f generatorFunc) Generate(ctx context.Context, p generate.Prompt) iter.Seq2[string, error] {
	return f(ctx, p)
}

// TestAttackPrompts is the law of prompts: whatever happens, is delayed, is changed
// in policies and starts again, each prompt is made of the view that knows says of
// the entry by which its generation began.
func TestAttackPrompts(t *testing.T) {
	policies := []string{
		`{"policy":"distance","limit":8,"latency_model":{"model":"jitter","ms":30,"spread_ms":300}}`,
		`{"policy":"fog","of":{"policy":"distance","limit":5},"latency_model":200}`, `{"policy":"everything"}`,
		`{"policy":"everything","latency_model":3600000,"staleness_threshold":100000}`,
	}
	for range attack.Rounds(1, 30) {
		rapid.Check(t, func(r *rapid.T) { attackPrompts(t, r, policies) })
	}
}

func attackPrompts(t *testing.T, r *rapid.T, policies []string) {
	fs := vfs.NewMem()
	every := rapid.SampledFrom([]int{-1, 1, 3}).Draw(r, "snapshots")
	v := enginetest.RecordVault(t, sajou.Config{SnapshotEvery: every, FS: fs})
	type prompt struct {
		req  string
		view agentview.View
	}
	var prompts []prompt
	now := time.Duration(0)
	for i := range rapid.IntRange(5, 30).Draw(r, "steps") {
		switch rapid.IntRange(0, 9).Draw(r, "step") {
		case 0, 1:
			v.Happens("Move", rapid.SampledFrom([]string{"scout", "clerk"}).Draw(r, "moves"), fmt.Sprintf(`{"to":[%d,0]}`, rapid.IntRange(0, 20).Draw(r, "x")))
		case 2, 3:
			v.Happens("EntityUpdated", "gm", fmt.Sprintf(`{"entity_id":"vault","fields":{"code":%d}}`, rapid.IntRange(0, 9).Draw(r, "code")))
		case 4:
			v.Register("scout", rapid.SampledFrom(policies).Draw(r, "policy"))
		case 5:
			if rapid.IntRange(0, 3).Draw(r, "leaves") == 0 {
				g, err := v.World.Agent(t.Context(), "scout")
				v.Must(err)
				v.Must(g.Leave(t.Context()))
				v.Register("scout", rapid.SampledFrom(policies).Draw(r, "policy"))
			}
		case 6:
			if rapid.IntRange(0, 2).Draw(r, "restart") > 0 {
				break
			}
			v.Must(v.World.Settle(t.Context()))
			v.Must(v.Eng.Close())
			eng, err := sajou.Open("store", sajou.Config{SnapshotEvery: every, FS: fs})
			v.Must(err)
			ses, err := eng.Session(t.Context(), "vault")
			v.Must(err)
			v.Eng, v.World = eng, ses.Agents()
		case 7, 8:
			req := fmt.Sprint("r", i)
			prompts = append(prompts, prompt{req, v.Given("scout", req, nil)})
		default:
			now += time.Duration(rapid.IntRange(1, 150).Draw(r, "ms")) * ms
			v.Wait(now)
		}
	}
	v.Must(v.World.Settle(t.Context()))
	for _, p := range prompts {
		seq, token := v.Token("scout", p.req)
		k := v.Knows("scout", replay.Moment{Seq: seq})
		digest, _ := token.Get("context_digest")
		if k.View.ContextDigest != p.view.ContextDigest || p.view.Digest() != p.view.ContextDigest ||
			enginetest.Shown(digest) != `"`+k.View.ContextDigest+`"` {
			r.Fatalf("%s, entry %d: the prompt has %d %s, knows says %d %s, the token %s", p.req, seq,
				p.view.ViewSeq, enginetest.Shown(p.view.Value()), k.View.ViewSeq, enginetest.Shown(k.View.Value()), enginetest.Shown(digest))
		}
	}
	// Nothing about it is uncovered but the prompts' texts.
	proof, err := v.Replay().Leak(t.Context(), "scout", query.LeakQuery{Text: "no such secret"}, nil)
	v.Must(err)
	want := 0
	if len(prompts) > 0 {
		want = 1
	}
	if len(proof.Unsearched) != want || want > 0 && (proof.Unsearched[0].Kind != query.UnsearchedDigest || proof.Unsearched[0].Count != uint64(len(prompts))) {
		r.Fatalf("%d prompts, gaps %v", len(prompts), proof.Unsearched)
	}
	v.Must(v.Eng.Close())
}
