package sajou_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// vault is a recorded world: a scout far from a vault, which walks up to it and
// away again, a clerk who sees all but codes, and what they are told late.
type vault struct {
	eng   *sajou.Engine
	world *sajou.Agents
	t     testing.TB
	seqs  map[string]eventlog.Seq // named entries
}

const ms = time.Millisecond

func recordVault(t testing.TB, cfg sajou.Config) *vault {
	t.Helper()
	cfg.FS = vfs.NewMem()
	eng, err := sajou.Open("store", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	ses, err := eng.Begin(t.Context(), "vault", sajou.TimeManual)
	if err != nil {
		t.Fatal(err)
	}
	v := &vault{eng, ses.Agents(), t, map[string]eventlog.Seq{}}
	v.must(v.world.Configure(t.Context(), value(t, `{"authority":"manual","cooldowns":"off","debounce_ms":100}`)))
	for _, e := range []string{
		`"scout","entity_data":{"type":"agent","team":"red"},"position":[100,0]`, `"clerk","entity_data":{"type":"agent","team":"blue"},"position":[0,0]`,
		`"vault","entity_data":{"type":"thing","locked":true,"code":"XK-4711"},"position":[0,0]`,
	} {
		v.happens("EntityCreated", "gm", `{"entity_id":`+e+`}`)
	}
	v.register("scout", `{"policy":"fog","of":{"policy":"all","of":[{"policy":"distance","limit":10},{"policy":"channel","channels":["public","private"]}]},"latency_model":50}`) // 7
	v.register("clerk", `{"field_visibility":{"code":false}}`)
	return v
}

func (v *vault) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

func (v *vault) register(id, policy string) {
	v.t.Helper()
	_, err := v.world.Register(v.t.Context(), id, value(v.t, policy))
	v.must(err)
}

func (v *vault) happens(kind, source, payload string) {
	v.t.Helper()
	_, err := v.world.Broadcast(v.t.Context(), draft(kind, source, payload))
	v.must(err)
}

func (v *vault) wait(to time.Duration) {
	v.t.Helper()
	v.must(v.world.Advance(v.t.Context(), to))
}

// mark notes the last entry.
func (v *vault) mark(name string) {
	v.t.Helper()
	v.must(v.world.Settle(v.t.Context()))
	log, err := v.eng.Log().Session("vault")
	v.must(err)
	v.seqs[name] = log.Head().Seq
}

func (v *vault) replay() *sajou.Replay { return v.eng.Replay("vault") }

func (v *vault) knows(agent string, m replay.Moment) sajou.Knowledge {
	v.t.Helper()
	k, err := v.replay().Knows(v.t.Context(), agent, m)
	v.must(err)
	return k
}

func path(t testing.TB, s string) agents.Pointer {
	t.Helper()
	p, err := agents.ParseViewPath(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func shown(v signal.Value) string { return string(v.AppendJSON(nil)) }

// TestKnows shows that an agent knows what has reached it, not what has
// happened; that it remembers what it saw and is told nothing more of; and that what was
// on its way when it left never came.
func TestKnows(t *testing.T) {
	v := recordVault(t, sajou.Config{SnapshotEvery: 2})
	v.mark("begun")
	v.wait(1000 * ms)
	v.happens("Move", "scout", `{"to":[5,0]}`)
	v.mark("near")
	v.wait(2000 * ms)
	v.happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"locked":false}}`)
	v.mark("open")
	v.wait(2020 * ms)
	v.happens("Move", "scout", `{"to":[100,0]}`)
	v.mark("away")
	v.wait(3000 * ms)
	v.happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"code":"ZZ-0000"}}`)
	v.mark("changed")
	v.wait(4000 * ms)
	v.happens("Speak", "scout", `{"text":"on my way out"}`)
	scout, err := v.world.Agent(t.Context(), "scout")
	v.must(err)
	v.must(scout.Leave(t.Context()))
	v.mark("left")
	v.register("scout", `{"policy":"self"}`)
	v.mark("back")

	for _, tt := range []struct {
		at      string
		offset  time.Duration
		path    string
		want    string // "": it knows nothing of it
		pending int
	}{
		{"begun", 0, "vault", "", 0},
		{"near", 0, "vault", "", 1},
		{"near", 49 * ms, "vault", "", 1},
		{"near", 50 * ms, "/visible_entities/vault/locked", "true", 0},
		{"open", 0, "/visible_entities/vault/locked", "true", 1},
		{"open", 20 * ms, "/visible_entities/vault/locked", "true", 1},
		{"away", 29 * ms, "/visible_entities/vault/locked", "true", 2},
		{"away", 30 * ms, "/visible_entities/vault/locked", "false", 1},
		{"away", 30 * ms, "/visible_entities/vault/last_seen_seq", "", 1},
		{"away", 50 * ms, "/visible_entities/vault/last_seen_seq", "6", 0},
		{"changed", 500 * ms, "/visible_entities/vault/code", `"XK-4711"`, 0},
		{"left", 0, "/visible_entities/vault/code", `"XK-4711"`, 0},
		{"left", 0, "/visible_entities/scout/last_message", "", 0},
		{"back", 0, "/visible_entities/scout/last_message", `"on my way out"`, 0},
		{"back", 0, "vault", "", 0},
	} {
		m := replay.Moment{Seq: v.seqs[tt.at], Offset: tt.offset}
		k := v.knows("scout", m)
		got, ok := path(t, tt.path).In(k.View.Value())
		if ok != (tt.want != "") || ok && shown(got) != tt.want {
			t.Errorf("%s%+v: %s is %s, want %s", tt.at, tt.offset, tt.path, shown(got), tt.want)
		}
		if len(k.Pending) != tt.pending {
			t.Errorf("%s%+v: %d on their way, want %d", tt.at, tt.offset, len(k.Pending), tt.pending)
		}
		for _, n := range k.Pending {
			if n.Delivery.At <= k.At || n.Delivery.Agent != "scout" {
				t.Errorf("%s%+v: on its way at %v: %+v", tt.at, tt.offset, k.At, n)
			}
		}
	}
	if k := v.knows("scout", replay.Moment{Seq: 2}); k.Presence != agents.Absent || k.View.VisibleEntities.Len() != 0 {
		t.Errorf("before it was registered: %+v", k)
	}
	if k := v.knows("scout", replay.Moment{Seq: v.seqs["left"]}); k.Presence != agents.Departed || k.Left != v.seqs["left"] {
		t.Errorf("after it left: %v by entry %d", k.Presence, k.Left)
	}
	// A policy hides a field from first to last.
	k := v.knows("clerk", replay.Moment{Seq: v.seqs["changed"]})
	if got, _ := path(t, "vault").In(k.View.Value()); strings.Contains(shown(got), "code") || !strings.Contains(shown(got), `"locked":false`) {
		t.Errorf("the clerk sees %s", shown(got))
	}
}

// TestFirstKnown shows by which delta an agent came to know something, and each
// change of it; a value counts when it is that value.
func TestFirstKnown(t *testing.T) {
	v := recordVault(t, sajou.Config{})
	v.wait(1000 * ms)
	v.happens("Move", "scout", `{"to":[5,0]}`)
	v.mark("near")
	v.wait(2000 * ms)
	v.happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"locked":false}}`)
	v.mark("open")
	v.wait(3000 * ms)
	v.happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"alarm":true}}`)
	v.mark("end")

	first := func(agent, at, is string) (sajou.Sighting, bool) {
		t.Helper()
		var want signal.Value
		if is != "" {
			want = value(t, is)
		}
		s, ok, err := v.replay().FirstKnown(t.Context(), agent, path(t, at), want)
		v.must(err)
		return s, ok
	}
	s, ok := first("scout", "vault", "")
	if !ok || eventlog.Seq(s.Entry) != v.seqs["near"] || s.Delivery.At != 1050*ms || s.Made != 1000*ms ||
		s.Cause.Kind != "Move" || s.Cause.Source != "scout" || s.Cause.GlobalSeq != 4 || len(s.Delivery.Delta.Patches) == 0 {
		t.Errorf("the vault: %v %+v", ok, s)
	}
	if s, ok := first("scout", "/visible_entities/vault/locked", "false"); !ok || eventlog.Seq(s.Entry) != v.seqs["open"] || shown(s.Before) != "true" {
		t.Errorf("that it is open: %v %+v", ok, s)
	}
	if s, ok := first("clerk", "vault", ""); !ok || s.Cause.Word != agents.WordAgent {
		t.Errorf("the clerk: %v %+v", ok, s)
	}
	if _, ok := first("clerk", "/visible_entities/vault/code", ""); ok {
		t.Error("the clerk knows the code")
	}
	if s, ok := first("scout", "/visible_entities/vault/alarm", ""); ok || !s.Coming || s.Delivery.At != 3050*ms {
		t.Errorf("the alarm is on its way: %v %+v", ok, s)
	}
	if s, ok := first("scout", "/visible_entities/vault/position/0", "0.0"); !ok {
		t.Errorf("0 is 0.0: %+v", s)
	}
	var changes []string
	for s, err := range v.replay().Sightings(t.Context(), "scout", path(t, "/visible_entities/vault/locked"), nil) {
		v.must(err)
		changes = append(changes, fmt.Sprint(s.Delivery.At, " ", shown(s.Value)))
	}
	if diff := cmp.Diff([]string{"1.05s true", "2.05s false"}, changes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestLeak shows that a secret is found wherever it was told, in a path, a
// value, a name, a list or a private word, and nowhere else; and that a proof says
// what was looked at.
func TestLeak(t *testing.T) {
	v := recordVault(t, sajou.Config{})
	v.happens("EntityCreated", "gm", `{"entity_id":"guard","entity_data":{"type":"agent","team":"blue"},"position":[1,0]}`)
	v.register("guard", `{"policy":"everything"}`)
	v.happens("Speak", "clerk", `{"text":"the password is swordfish","channel":"private","target_id":"scout"}`)
	v.mark("whispered")
	v.wait(1000 * ms)
	// By another policy the clerk gets a whole view.
	v.register("clerk", `{"policy":"everything"}`)
	v.mark("promoted")
	if _, err := v.world.Submit(t.Context(), agents.Intent{Kind: "Interact", AgentID: "clerk", ReqID: "q", Payload: value(t, `{"target_id":"hidden lever","type":"use"}`), ContextSeq: 99}); !errors.Is(err, agents.Invalid) {
		t.Fatalf("the lever: %v", err)
	}
	v.mark("end")

	for _, tt := range []struct {
		agent string
		q     agents.LeakQuery
		want  string // "" for none
	}{
		{"scout", agents.LeakQuery{Text: "XK-4711"}, ""},
		{"scout", agents.LeakQuery{Text: "4711"}, ""},
		{"scout", agents.LeakQuery{Entity: "vault"}, ""},
		{"clerk", agents.LeakQuery{Text: "4711"}, "promoted /visible_entities/vault/code value"},
		{"clerk", agents.LeakQuery{Path: path(t, "/visible_entities/vault/code")}, "promoted /visible_entities/vault/code path"},
		{"clerk", agents.LeakQuery{Text: "cod"}, "promoted /visible_entities/vault/code name"},
		{"clerk", agents.LeakQuery{Path: path(t, "/visible_entities/vault/nothing")}, ""},
		{"clerk", agents.LeakQuery{Text: "lever"}, "end /reason reason"},
		{"scout", agents.LeakQuery{Text: "lever"}, ""},
		{"guard", agents.LeakQuery{Text: "swordfish"}, ""}, // it sees everything, and is neither who said it nor to whom
		{"scout", agents.LeakQuery{Text: "swordfish"}, "whispered /visible_entities/scout/private_message/text value"},
		{"clerk", agents.LeakQuery{Text: "swordfish"}, "whispered /visible_entities/clerk/private_message/text value"},
		{"clerk", agents.LeakQuery{Text: "100"}, "registered /visible_entities/scout/position/0 value"},
	} {
		var found []agents.Leak
		proof, err := v.replay().Leak(t.Context(), tt.agent, tt.q, func(l agents.Leak) error {
			found = append(found, l)
			return nil
		})
		v.must(err)
		if int(proof.Leaks) != len(found) || proof.From != 1 || proof.Head.Seq != v.seqs["end"] || proof.Looked.Deltas == 0 || proof.Looked.Operations < proof.Looked.Deltas {
			t.Errorf("%s %+v: proof %+v, %d found", tt.agent, tt.q, proof, len(found))
		}
		got := ""
		if len(found) > 0 {
			name := "registered"
			for n, seq := range v.seqs {
				if uint64(seq) == found[0].Entry {
					name = n
				}
			}
			got = fmt.Sprint(name, " ", found[0].Place, " ", found[0].How)
		}
		if got != tt.want {
			t.Errorf("%s %+v: %q, want %q", tt.agent, tt.q, got, tt.want)
		}
	}
	stop := errors.New("enough")
	if _, err := v.replay().Leak(t.Context(), "clerk", agents.LeakQuery{Text: "a"}, func(agents.Leak) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the error of found: %v", err)
	}
}

// TestLeakOfRelations shows that an entity is told of by a list of
// relationships too.
func TestLeakOfRelations(t *testing.T) {
	for _, typed := range []string{"true", "false"} {
		v := recordVault(t, sajou.Config{})
		v.register("clerk", `{"policy":"everything","typed_relationships":`+typed+`}`)
		v.happens("RelationshipAdded", "gm", `{"from":"clerk","to":"vault","type":"guards"}`)
		v.mark("related")
		relations := 0
		_, err := v.replay().Leak(t.Context(), "clerk", agents.LeakQuery{Entity: "vault"}, func(l agents.Leak) error {
			if l.How == agents.LeakRelation {
				relations++
				if l.Place != "/visible_relationships/clerk/0" || eventlog.Seq(l.Entry) != v.seqs["related"] {
					t.Errorf("typed %s: %+v", typed, l)
				}
			}
			return nil
		})
		v.must(err)
		if relations != 1 {
			t.Errorf("typed %s: %d relations", typed, relations)
		}
	}
}

// TestRequest shows why a generation was cancelled and how a request was
// answered, and what is known where nothing is recorded.
func TestRequest(t *testing.T) {
	ctx := t.Context()
	v := recordVault(t, sajou.Config{})
	clerk, err := v.world.Agent(ctx, "clerk")
	v.must(err)
	begin := func(req string) *sajou.Generation {
		t.Helper()
		g, err := clerk.Begin(ctx, agents.TokenRequest{ReqID: req, Current: true})
		v.must(err)
		return g
	}
	begin("stale")
	v.mark("token")
	v.wait(10 * ms)
	v.happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"locked":false}}`)
	v.mark("update")
	v.wait(20 * ms)
	begin("late")
	v.happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"locked":true}}`)
	v.mark("within the debounce")
	v.wait(500 * ms)
	g := begin("user")
	v.must(g.End(ctx, agents.ReasonUser))
	begin("replaced")
	begin("replaced")
	in := agents.Intent{Kind: "Speak", ReqID: "replaced", Payload: value(t, `{"text":"hi"}`), ContextSeq: 99}
	_, err = clerk.Submit(ctx, in)
	v.must(err)
	begin("deadline")
	v.wait(time.Minute)
	in = agents.Intent{Kind: "Interact", ReqID: "refused", Payload: value(t, `{"target_id":"nobody","type":"use"}`), ContextSeq: 99}
	if _, err = clerk.Submit(ctx, in); !errors.Is(err, agents.Invalid) {
		t.Fatal(err)
	}
	in.ReqID, in.ContextSeq = "retriable", 1
	if _, err = clerk.Submit(ctx, in); !errors.Is(err, agents.StaleContext) {
		t.Fatal(err)
	}
	begin("open")
	begin("left")
	v.mark("end")

	report := func(req string) agents.RequestReport {
		t.Helper()
		r, err := v.replay().Request(ctx, "clerk", req)
		v.must(err)
		return r
	}
	ends := func(req string) (text string) {
		t.Helper()
		for _, g := range report(req).Generations {
			text += string(g.End) + " "
		}
		if r := report(req).Ruling; r != nil {
			text += "= " + string(r.Answer.Code)
			if r.Effect != nil {
				text += r.Effect.Kind
			}
		}
		return text
	}
	for req, want := range map[string]string{
		"stale": "stale ", "late": "stale ", "user": "cancelled = GENERATION_CANCELLED", "replaced": "replaced accepted = Speak",
		"deadline": "deadline = TIMEOUT", "refused": "= INTENT_VALIDATION_FAILED", "retriable": "", "open": "running ", "nobody": "",
	} {
		if got := ends(req); got != want {
			t.Errorf("%s: %q, want %q", req, got, want)
		}
	}
	stale := report("stale").Generations[0]
	if eventlog.Seq(stale.Entry) != v.seqs["token"] || eventlog.Seq(stale.EndEntry) != v.seqs["update"] || stale.EndAt != 10*ms ||
		len(stale.Newer) != 1 || !stale.Newer[0].Decisive || stale.Newer[0].Cause.Kind != "EntityUpdated" || stale.PutOff {
		t.Errorf("stale: %+v", stale)
	}
	late := report("late").Generations[0]
	if !late.PutOff || late.StaleAt != 20*ms || late.EndAt != 110*ms || late.Interrupted != 10*ms || fmt.Sprint(late.By) != "[stale]" {
		t.Errorf("late: %+v", late)
	}
	if p := report("refused").Ruling.Problems(); len(p) != 1 || p[0].Path != "/payload/target_id" {
		t.Errorf("refused: %+v", p)
	}
	s, err := v.replay().Standing(ctx, "clerk", replay.Moment{Seq: v.seqs["end"]})
	v.must(err)
	if !s.Registered || s.ViewSeq != 6 || s.LeastContext != 6 || s.Intents != 2 || s.QuotaIntents != 60 || len(s.Generations) != 2 {
		t.Errorf("standing: %+v", s)
	}
	v.must(clerk.Leave(ctx))
	if got := ends("left"); got != "left " {
		t.Errorf("left: %q", got)
	}
	if s, err := v.replay().Standing(ctx, "clerk", replay.Moment{Seq: v.seqs["end"] + 1}); err != nil || s.Registered {
		t.Errorf("gone: %+v, %v", s, err)
	}
}

// TestTryPolicy shows what another policy would have shown, and from when on.
func TestTryPolicy(t *testing.T) {
	v := recordVault(t, sajou.Config{})
	v.mark("begun")
	v.happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"code":"ZZ-0000"}}`)
	v.mark("changed")
	v.happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"locked":false}}`)
	v.mark("open")
	try := func(trial sajou.PolicyTrial) (list []string, tally agents.PolicyTally) {
		t.Helper()
		tally, err := v.replay().TryPolicy(t.Context(), trial, func(d agents.PolicyDifference) error {
			list = append(list, fmt.Sprintf("%d %v %s %s %s %s %s", d.Entry, d.Standing, d.Agent, d.What, d.Path, shown(d.Before), shown(d.After)))
			return nil
		})
		v.must(err)
		return list, tally
	}
	begun := int(v.seqs["begun"])
	got, tally := try(sajou.PolicyTrial{Agents: []string{"clerk"}, Policy: value(t, `{"field_visibility":{"locked":false}}`)})
	want := []string{
		fmt.Sprintf("%d false clerk only_after /visible_entities/vault/code null \"XK-4711\"", begun),
		fmt.Sprintf("%d false clerk only_before /visible_entities/vault/locked true null", begun),
		fmt.Sprintf("%d false clerk only_after /visible_entities/vault/code null \"ZZ-0000\"", begun+1),
		fmt.Sprintf("%d false clerk only_before /visible_entities/vault/locked false null", begun+2),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if want := (agents.PolicyTally{Entries: 3, DeltasBefore: 3, DeltasAfter: 3, OnlyBefore: 2, OnlyAfter: 2}); tally != want {
		t.Errorf("%+v, want %+v", tally, want)
	}
	// In a range, what differs already comes first.
	got, _ = try(sajou.PolicyTrial{Policy: value(t, `{"field_visibility":{"code":false}}`), From: v.seqs["changed"], To: v.seqs["changed"]})
	want = []string{
		fmt.Sprintf("%d true scout only_after /visible_entities/clerk null {\"position\":[0,0,0],\"team\":\"blue\",\"type\":\"agent\"}", begun),
	}
	if len(got) < 2 || !strings.HasPrefix(got[0], want[0][:40]) {
		t.Errorf("the range: %q", got)
	}
	if got, tally := try(sajou.PolicyTrial{Agents: []string{"clerk"}, Policy: value(t, `{"field_visibility":{"code":false}}`)}); len(got) > 0 || !tally.Same() {
		t.Errorf("its own policy: %q", got)
	}
	if _, err := v.replay().TryPolicy(t.Context(), sajou.PolicyTrial{Policy: value(t, `{"policy":"no"}`)}, nil); !errors.Is(err, agents.ErrPolicy) {
		t.Errorf("no policy: %v", err)
	}
}

// TestQuestionErrors shows that nobody is told of an agent that never was, and
// that a question ends with its context.
func TestQuestionErrors(t *testing.T) {
	v := recordVault(t, sajou.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	ask := func(ctx context.Context, r *sajou.Replay, agent string) map[string]error {
		errs := map[string]error{}
		_, errs["knows"] = r.Knows(ctx, agent, replay.Moment{Seq: 1})
		_, _, errs["first"] = r.FirstKnown(ctx, agent, path(t, "x"), nil)
		_, errs["leak"] = r.Leak(ctx, agent, agents.LeakQuery{Text: "x"}, nil)
		_, errs["request"] = r.Request(ctx, agent, "r")
		_, errs["standing"] = r.Standing(ctx, agent, replay.Moment{Seq: 1})
		_, errs["policy"] = r.TryPolicy(ctx, sajou.PolicyTrial{Agents: []string{"clerk", agent}, Policy: value(t, `{}`)}, func(agents.PolicyDifference) error { return nil })
		return errs
	}
	for what, err := range ask(ctx, v.replay(), "nobody") {
		var none *sajou.NoAgentError
		if !errors.As(err, &none) || !errors.Is(err, agents.UnknownAgent) || fmt.Sprint(none.Known) != "[clerk scout]" {
			t.Errorf("%s of nobody: %v", what, err)
		}
	}
	for what, err := range ask(ctx, v.eng.Replay("nowhere"), "clerk") {
		if !errors.Is(err, eventlog.ErrNoSession) {
			t.Errorf("%s of no session: %v", what, err)
		}
	}
	if _, err := v.replay().Knows(ctx, "clerk", replay.Moment{Seq: 999}); !errors.Is(err, replay.ErrNoAddress) {
		t.Errorf("no moment: %v", err)
	}
	seen := eventlog.Seq(0)
	if _, err := v.replay().OnProgress(func(done, total eventlog.Seq) { seen = done }).Leak(ctx, "clerk", agents.LeakQuery{Text: "x"}, nil); err != nil || seen == 0 {
		t.Errorf("progress up to %d, %v", seen, err)
	}
	cancel()
	for what, err := range ask(ctx, v.replay(), "clerk") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want canceled", what, err)
		}
	}
}
