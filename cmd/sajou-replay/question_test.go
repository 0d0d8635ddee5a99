package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestQuestionScript queries agents. Each file in testdata/question is a story about a
// store that the command "record" creates.
func TestQuestionScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/question",
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("SAJOU_STORE", filepath.Join(env.WorkDir, "store"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"record": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(recordVault(context.Background(), ts.Getenv("SAJOU_STORE")))
			},
		},
	})
}

// recordVault records the session vault: a scout with a high latency walks up to a
// vault while another agent opens it, receives a whispered password, generates twice
// and is interrupted, and leaves. A clerk may see everything but codes.
func recordVault(ctx context.Context, store string) (err error) {
	eng, err := sajou.Open(store, sajou.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	ses, err := eng.Begin(ctx, "vault", session.TimeManual)
	if err != nil {
		return err
	}
	world := ses.Agents()
	r := recording{ctx: ctx, world: world}
	r.do(world.Configure(ctx, r.value(`{"authority":"manual","cooldowns":"off","debounce_ms":100}`)))
	r.happens("EntityCreated", "gm", `{"entity_id":"scout","entity_data":{"type":"agent"},"position":[100,0]}`)
	r.happens("EntityCreated", "gm", `{"entity_id":"clerk","entity_data":{"type":"agent"},"position":[0,0]}`)
	r.happens("EntityCreated", "gm", `{"entity_id":"vault","entity_data":{"type":"thing","locked":true,"code":"XK-4711"},"position":[0,0]}`)
	r.register("scout", `{"policy":"fog","of":{"policy":"distance","limit":10},"latency_model":50}`)
	r.register("clerk", `{"field_visibility":{"code":false}}`)
	r.wait(1000)
	r.happens("Move", "scout", `{"to":[5,0]}`)
	r.wait(2000)
	r.begin("clerk", "look")
	r.happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"locked":false}}`)
	r.begin("clerk", "think")
	r.wait(2020)
	r.happens("Speak", "clerk", `{"text":"the password is swordfish","channel":"private","target_id":"scout"}`)
	r.wait(3000)
	r.submit("scout", "step", "Move", `{"to":[6,0]}`, agents.Code(""))
	r.submit("scout", "pull", "Interact", `{"target_id":"lever","type":"use"}`, agents.ErrInvalid)
	r.submit("scout", "old", "Move", `{"to":[7,0]}`, agents.ErrStaleContext)
	r.begin("scout", "given-up")
	r.wait(3010)
	r.happens("Move", "scout", `{"to":[100,0]}`)
	if r.err == nil {
		agent, err := world.Agent(ctx, "scout")
		r.do(err)
		r.do(agent.Leave(ctx))
	}
	return r.err
}

// recording runs steps until one fails.
type recording struct {
	ctx   context.Context
	world *agentslive.Agents
	err   error
}

func (r *recording) do(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *recording) value(text string) signal.Value {
	v, err := signal.ParseValue([]byte(text))
	r.do(err)
	return v
}

func (r *recording) happens(kind, source, payload string) {
	_, err := r.world.Broadcast(r.ctx, agents.EffectDraft{Kind: kind, SourceID: source, Payload: r.value(payload)})
	r.do(err)
}

func (r *recording) register(id, policy string) {
	_, err := r.world.Register(r.ctx, id, r.value(policy))
	r.do(err)
}

func (r *recording) wait(ms int) {
	r.do(r.world.Advance(r.ctx, time.Duration(ms)*time.Millisecond))
}

func (r *recording) begin(id, req string) {
	g, err := r.world.Agent(r.ctx, id)
	r.do(err)
	if err == nil {
		_, err = g.Begin(r.ctx, agents.TokenRequest{ReqID: req, Current: true, Deadline: time.Hour})
		r.do(err)
		g.Close()
	}
}

// submit submits an intent, with an old context if it is to be stale.
func (r *recording) submit(id, req, kind, payload string, want agents.Code) {
	in := agents.Intent{Kind: kind, AgentID: id, ReqID: req, Payload: r.value(payload), ContextSeq: 99}
	if want == agents.ErrStaleContext {
		in.ContextSeq = 1
	}
	if _, err := r.world.Submit(r.ctx, in); want == "" || !errors.Is(err, want) {
		r.do(err)
	}
}

// TestQuestionExitCodes shows the exit code of every kind of answer and mistake.
func TestQuestionExitCodes(t *testing.T) {
	store, policy := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "policy.json")
	require.NoError(t, recordVault(t.Context(), store))
	require.NoError(t, os.WriteFile(policy, []byte(`{"policy":"self"}`), 0o600))
	for _, tc := range []struct {
		args string
		code int
	}{
		{"knows", 2},
		{"knows scout", 0},
		{"knows scout vault", 0},
		{"knows scout vault more", 2},
		{"knows scout nowhere", 4},
		{"knows nobody", 4},
		{"knows scout --at 0", 1},
		{"knows scout --at 99", 4},
		{"knows scout --at nonsense", 2},
		{"knows scout --at 8+1h", 4},
		{"knows scout --path /a~", 2},
		{"knows scout --path /view_seq", 0},
		{"knows scout --path ghost", 4},
		{"first-known scout", 2},
		{"first-known scout vault", 0},
		{"first-known scout ghost", 4},
		{"first-known scout /a~", 2},
		{"first-known scout vault --is {", 2},
		{"first-known nobody vault", 4},
		{"leak scout", 2},
		{"leak scout ghost", 4},
		{"leak scout vault", 1},
		{"leak scout --value 4711", 1},
		{"leak clerk vault --value 4711", 0}, // vault is the session
		{"leak clerk nowhere --value 4711", 4},
		{"leak nobody vault", 4},
		{"why-cancelled clerk", 2},
		{"why-cancelled clerk look", 0},
		{"why-cancelled clerk nothing", 4},
		{"why-cancelled nobody look", 4},
		{"why-rejected scout pull", 0},
		{"why-rejected scout step", 1},
		{"why-rejected scout old", 5},
		{"why-rejected scout old --at nonsense", 2},
		{"why-rejected nobody old", 4},
		{"policy-diff", 2},
		{"policy-diff --policy nothing.json", 2},
		{"policy-diff --policy " + policy, 1},
		{"policy-diff vault 1..3 --policy " + policy, 0},
		{"policy-diff 1..99 --policy " + policy, 4},
		{"policy-diff 1.. 2 --policy " + policy, 2},
		{"policy-diff --agent nobody --policy " + policy, 4},
	} {
		args := append([]string{"-C", store}, strings.Fields(tc.args)...)
		if r := sajouReplay(t.Context(), t, nil, args...); r.code != tc.code || strings.Count(r.stderr, "\n") > 1 {
			t.Errorf("%s: exit %d, want %d\n%s%s", tc.args, r.code, tc.code, r.stdout, r.stderr)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := sajouReplay(ctx, t, nil, "-C", store, "leak", "clerk", "vault"); r.code != cli.ExitInterrupted {
		t.Errorf("interrupted: exit %d, %s", r.code, r.stderr)
	}
}
