package history_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

const ms = time.Millisecond

func path(t testing.TB, s string) jsondoc.Pointer {
	t.Helper()
	p, err := view.ParseViewPath(s)
	require.NoError(t, err)
	return p
}

// TestKnows shows that an agent knows the deltas that have reached it, not the present
// world; that it keeps an entity that it has seen and that its policy no longer shows;
// and that a delta in flight when the agent leaves is never delivered.
func TestKnows(t *testing.T) {
	v := enginetest.RecordVault(t, sajou.Config{SnapshotEvery: 2})
	v.Mark("begun")
	v.Wait(1000 * ms)
	v.Happens("Move", "scout", `{"to":[5,0]}`)
	v.Mark("near")
	v.Wait(2000 * ms)
	v.Happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"locked":false}}`)
	v.Mark("open")
	v.Wait(2020 * ms)
	v.Happens("Move", "scout", `{"to":[100,0]}`)
	v.Mark("away")
	v.Wait(3000 * ms)
	v.Happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"code":"ZZ-0000"}}`)
	v.Mark("changed")
	v.Wait(4000 * ms)
	v.Happens("Speak", "scout", `{"text":"on my way out"}`)
	scout, err := v.World.Agent(t.Context(), "scout")
	v.Must(err)
	v.Must(scout.Leave(t.Context()))
	v.Mark("left")
	v.Register("scout", `{"policy":"self"}`)
	v.Mark("back")

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
		{"away", 50 * ms, "/visible_entities/vault/last_seen_seq", "3", 0},
		{"changed", 500 * ms, "/visible_entities/vault/code", `"XK-4711"`, 0},
		{"left", 0, "/visible_entities/vault/code", `"XK-4711"`, 0},
		{"left", 0, "/visible_entities/scout/last_message", "", 0},
		{"back", 0, "/visible_entities/scout/last_message", `"on my way out"`, 0},
		{"back", 0, "vault", "", 0},
	} {
		m := replay.Moment{Seq: v.Seqs[tt.at], Offset: tt.offset}
		k := v.Knows("scout", m)
		got, ok := path(t, tt.path).In(k.View.Value())
		if ok != (tt.want != "") || ok && enginetest.Shown(got) != tt.want {
			t.Errorf("%s%+v: %s is %s, want %s", tt.at, tt.offset, tt.path, enginetest.Shown(got), tt.want)
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
	if k := v.Knows("scout", replay.Moment{Seq: 2}); k.Presence != query.Absent || k.View.VisibleEntities.Len() != 0 {
		t.Errorf("before it was registered: %+v", k)
	}
	if k := v.Knows("scout", replay.Moment{Seq: v.Seqs["left"]}); k.Presence != query.Departed || k.Left != v.Seqs["left"] {
		t.Errorf("after it left: %v by entry %d", k.Presence, k.Left)
	}
	// A policy hides a field from first to last.
	k := v.Knows("clerk", replay.Moment{Seq: v.Seqs["changed"]})
	if got, _ := path(t, "vault").In(k.View.Value()); strings.Contains(enginetest.Shown(got), "code") || !strings.Contains(enginetest.Shown(got), `"locked":false`) {
		t.Errorf("the clerk sees %s", enginetest.Shown(got))
	}
}

// TestFirstKnown shows by which delta an agent came to know something, and each
// change of it; a value counts when it is that value.
func TestFirstKnown(t *testing.T) {
	v := enginetest.RecordVault(t, sajou.Config{})
	v.Wait(1000 * ms)
	v.Happens("Move", "scout", `{"to":[5,0]}`)
	v.Mark("near")
	v.Wait(2000 * ms)
	v.Happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"locked":false}}`)
	v.Mark("open")
	v.Wait(3000 * ms)
	v.Happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"alarm":true}}`)
	v.Mark("end")

	first := func(agent, at, is string) (history.ValueChange, bool) {
		t.Helper()
		var want signal.Value
		if is != "" {
			want = enginetest.Value(t, is)
		}
		s, ok, err := v.Replay().FirstKnown(t.Context(), agent, path(t, at), want)
		v.Must(err)
		return s, ok
	}
	s, ok := first("scout", "vault", "")
	if !ok || eventlog.Seq(s.Entry) != v.Seqs["near"] || s.Delivery.At != 1050*ms || s.Made != 1000*ms ||
		s.Cause.Kind != "Move" || s.Cause.Source != "scout" || s.Cause.GlobalSeq != 4 || len(s.Delivery.Delta.Patches) == 0 {
		t.Errorf("the vault: %v %+v", ok, s)
	}
	if s, ok := first("scout", "/visible_entities/vault/locked", "false"); !ok || eventlog.Seq(s.Entry) != v.Seqs["open"] || enginetest.Shown(s.Before) != "true" {
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
	for s, err := range v.Replay().ValueChanges(t.Context(), "scout", path(t, "/visible_entities/vault/locked"), nil) {
		v.Must(err)
		changes = append(changes, fmt.Sprint(s.Delivery.At, " ", enginetest.Shown(s.Value)))
	}
	if diff := cmp.Diff([]string{"1.05s true", "2.05s false"}, changes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestLeak shows that a secret is found wherever it was told, in a path, a
// value, a name, a list or a private word, and nowhere else; and that a proof says
// what was looked at.
func TestLeak(t *testing.T) {
	v := enginetest.RecordVault(t, sajou.Config{})
	v.Happens("EntityCreated", "gm", `{"entity_id":"guard","entity_data":{"type":"agent","team":"blue"},"position":[1,0]}`)
	v.Register("guard", `{"policy":"everything"}`)
	v.Happens("Speak", "clerk", `{"text":"the password is swordfish","channel":"private","target_id":"scout"}`)
	v.Mark("whispered")
	v.Wait(1000 * ms)
	// By another policy the clerk gets a whole view.
	v.Register("clerk", `{"policy":"everything"}`)
	v.Mark("promoted")
	if _, err := v.World.Submit(t.Context(), agents.Intent{Kind: "Interact", AgentID: "clerk", ReqID: "q", Payload: enginetest.Value(t, `{"target_id":"hidden lever","type":"use"}`), ContextSeq: 99}); !errors.Is(err, agents.ErrInvalid) {
		t.Fatalf("the lever: %v", err)
	}
	v.Mark("end")

	for _, tt := range []struct {
		agent string
		q     query.LeakQuery
		want  string // "" for none
	}{
		{"scout", query.LeakQuery{Text: "XK-4711"}, ""},
		{"scout", query.LeakQuery{Text: "4711"}, ""},
		{"scout", query.LeakQuery{Entity: "vault"}, ""},
		{"clerk", query.LeakQuery{Text: "4711"}, "promoted /visible_entities/vault/code value"},
		{"clerk", query.LeakQuery{Path: path(t, "/visible_entities/vault/code")}, "promoted /visible_entities/vault/code path"},
		{"clerk", query.LeakQuery{Text: "cod"}, "promoted /visible_entities/vault/code name"},
		{"clerk", query.LeakQuery{Path: path(t, "/visible_entities/vault/nothing")}, ""},
		{"clerk", query.LeakQuery{Text: "lever"}, "end /problems/0/reason reason"},
		{"scout", query.LeakQuery{Text: "lever"}, ""},
		{"guard", query.LeakQuery{Text: "swordfish"}, ""}, // it sees everything, and is neither who said it nor to whom
		{"scout", query.LeakQuery{Text: "swordfish"}, "whispered /visible_entities/scout/private_message/text value"},
		{"clerk", query.LeakQuery{Text: "swordfish"}, "whispered /visible_entities/clerk/private_message/text value"},
		{"clerk", query.LeakQuery{Text: "100"}, "registered /visible_entities/scout/position/0 value"},
	} {
		var found []query.Leak
		proof, err := v.Replay().Leak(t.Context(), tt.agent, tt.q, func(l query.Leak) error {
			found = append(found, l)
			return nil
		})
		v.Must(err)
		if int(proof.Leaks) != len(found) || proof.From != 1 || proof.Head.Seq != v.Seqs["end"] || proof.Stats.Deltas == 0 || proof.Stats.Operations < proof.Stats.Deltas {
			t.Errorf("%s %+v: proof %+v, %d found", tt.agent, tt.q, proof, len(found))
		}
		got := ""
		if len(found) > 0 {
			name := "registered"
			for n, seq := range v.Seqs {
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
	if _, err := v.Replay().Leak(t.Context(), "clerk", query.LeakQuery{Text: "a"}, func(query.Leak) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the error of found: %v", err)
	}
}

// TestLeakOfRelations shows that a list of relationships reveals an entity too.
func TestLeakOfRelations(t *testing.T) {
	for _, typed := range []string{"true", "false"} {
		v := enginetest.RecordVault(t, sajou.Config{})
		v.Register("clerk", `{"policy":"everything","typed_relationships":`+typed+`}`)
		v.Happens("RelationshipAdded", "gm", `{"from":"clerk","to":"vault","type":"guards"}`)
		v.Mark("related")
		relations := 0
		_, err := v.Replay().Leak(t.Context(), "clerk", query.LeakQuery{Entity: "vault"}, func(l query.Leak) error {
			if l.How == query.LeakRelation {
				relations++
				if l.Place != "/visible_relationships/clerk/0" || eventlog.Seq(l.Entry) != v.Seqs["related"] {
					t.Errorf("typed %s: %+v", typed, l)
				}
			}
			return nil
		})
		v.Must(err)
		if relations != 1 {
			t.Errorf("typed %s: %d relations", typed, relations)
		}
	}
}

// TestRequest shows why a generation was cancelled and how a request was
// answered, and what is known where nothing is recorded.
func TestRequest(t *testing.T) {
	ctx := t.Context()
	v := enginetest.RecordVault(t, sajou.Config{})
	clerk, err := v.World.Agent(ctx, "clerk")
	v.Must(err)
	begin := func(req string) *agentslive.Generation {
		t.Helper()
		g, err := clerk.Begin(ctx, agents.TokenRequest{ReqID: req, Current: true})
		v.Must(err)
		return g
	}
	begin("stale")
	v.Mark("token")
	v.Wait(10 * ms)
	v.Happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"locked":false}}`)
	v.Mark("update")
	v.Wait(20 * ms)
	begin("late")
	v.Happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"locked":true}}`)
	v.Mark("within the debounce")
	v.Wait(500 * ms)
	g := begin("user")
	v.Must(g.End(ctx, agents.ReasonUser))
	begin("replaced")
	begin("replaced")
	in := agents.Intent{Kind: "Speak", ReqID: "replaced", Payload: enginetest.Value(t, `{"text":"hi"}`), ContextSeq: 99}
	_, err = clerk.Submit(ctx, in)
	v.Must(err)
	begin("deadline")
	v.Wait(time.Minute)
	in = agents.Intent{Kind: "Interact", ReqID: "refused", Payload: enginetest.Value(t, `{"target_id":"nobody","type":"use"}`), ContextSeq: 99}
	if _, err = clerk.Submit(ctx, in); !errors.Is(err, agents.ErrInvalid) {
		t.Fatal(err)
	}
	in.ReqID, in.ContextSeq = "retriable", 1
	if _, err = clerk.Submit(ctx, in); !errors.Is(err, agents.ErrStaleContext) {
		t.Fatal(err)
	}
	begin("open")
	begin("left")
	v.Mark("end")

	report := func(req string) query.RequestReport {
		t.Helper()
		r, err := v.Replay().Request(ctx, "clerk", req)
		v.Must(err)
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
	if eventlog.Seq(stale.Entry) != v.Seqs["token"] || eventlog.Seq(stale.EndEntry) != v.Seqs["update"] || stale.EndAt != 10*ms ||
		len(stale.Later) != 1 || !stale.Later[0].Decisive || stale.Later[0].Cause.Kind != "EntityUpdated" || stale.PutOff {
		t.Errorf("stale: %+v", stale)
	}
	late := report("late").Generations[0]
	if !late.PutOff || late.StaleAt != 20*ms || late.EndAt != 110*ms || late.Interrupted != 10*ms || fmt.Sprint(late.By) != "[stale]" {
		t.Errorf("late: %+v", late)
	}
	if p := report("refused").Ruling.Problems(); len(p) != 1 || p[0].Path != "/payload/target_id" {
		t.Errorf("refused: %+v", p)
	}
	s, err := v.Replay().AdmissionAt(ctx, "clerk", replay.Moment{Seq: v.Seqs["end"]})
	v.Must(err)
	if !s.Registered || s.ViewSeq != 6 || s.LeastContext != 6 || s.Intents != 2 || s.QuotaIntents != 60 || len(s.Generations) != 2 {
		t.Errorf("standing: %+v", s)
	}
	v.Must(clerk.Leave(ctx))
	if got := ends("left"); got != "left " {
		t.Errorf("left: %q", got)
	}
	if s, err := v.Replay().AdmissionAt(ctx, "clerk", replay.Moment{Seq: v.Seqs["end"] + 1}); err != nil || s.Registered {
		t.Errorf("gone: %+v, %v", s, err)
	}
}

// TestTryPolicy shows what another policy would have shown, and from when on.
func TestTryPolicy(t *testing.T) {
	v := enginetest.RecordVault(t, sajou.Config{})
	v.Mark("begun")
	v.Happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"code":"ZZ-0000"}}`)
	v.Mark("changed")
	v.Happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"locked":false}}`)
	v.Mark("open")
	try := func(trial history.PolicyTrial) (list []string, tally query.PolicyTally) {
		t.Helper()
		tally, err := v.Replay().TryPolicy(t.Context(), trial, func(d query.PolicyDifference) error {
			list = append(list, fmt.Sprintf("%d %v %s %s %s %s %s", d.Entry, d.Standing, d.Agent, d.What, d.Path, enginetest.Shown(d.Before), enginetest.Shown(d.After)))
			return nil
		})
		v.Must(err)
		return list, tally
	}
	begun := int(v.Seqs["begun"])
	got, tally := try(history.PolicyTrial{Agents: []string{"clerk"}, Policy: enginetest.Value(t, `{"field_visibility":{"locked":false}}`)})
	want := []string{
		fmt.Sprintf("%d false clerk only_after /visible_entities/vault/code null \"XK-4711\"", begun),
		fmt.Sprintf("%d false clerk only_before /visible_entities/vault/locked true null", begun),
		fmt.Sprintf("%d false clerk only_after /visible_entities/vault/code null \"ZZ-0000\"", begun+1),
		fmt.Sprintf("%d false clerk only_before /visible_entities/vault/locked false null", begun+2),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if want := (query.PolicyTally{Entries: 3, DeltasBefore: 3, DeltasAfter: 3, OnlyBefore: 2, OnlyAfter: 2}); tally != want {
		t.Errorf("%+v, want %+v", tally, want)
	}
	// In a range, what differs already comes first.
	got, _ = try(history.PolicyTrial{Policy: enginetest.Value(t, `{"field_visibility":{"code":false}}`), From: v.Seqs["changed"], To: v.Seqs["changed"]})
	want = []string{
		fmt.Sprintf("%d true scout only_after /visible_entities/clerk null {\"position\":[0,0,0],\"team\":\"blue\",\"type\":\"agent\"}", begun),
	}
	if len(got) < 2 || !strings.HasPrefix(got[0], want[0][:40]) {
		t.Errorf("the range: %q", got)
	}
	if got, tally := try(history.PolicyTrial{Agents: []string{"clerk"}, Policy: enginetest.Value(t, `{"field_visibility":{"code":false}}`)}); len(got) > 0 || !tally.Same() {
		t.Errorf("its own policy: %q", got)
	}
	if _, err := v.Replay().TryPolicy(t.Context(), history.PolicyTrial{Policy: enginetest.Value(t, `{"policy":"no"}`)}, nil); !errors.Is(err, view.ErrPolicy) {
		t.Errorf("no policy: %v", err)
	}
}

// TestQuestionErrors shows that a question about an unknown agent fails, and that a
// question ends with its context.
func TestQuestionErrors(t *testing.T) {
	v := enginetest.RecordVault(t, sajou.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	ask := func(ctx context.Context, r *history.History, agent string) map[string]error {
		errs := map[string]error{}
		_, errs["knows"] = r.ViewAt(ctx, agent, replay.Moment{Seq: 1})
		_, _, errs["first"] = r.FirstKnown(ctx, agent, path(t, "x"), nil)
		_, errs["leak"] = r.Leak(ctx, agent, query.LeakQuery{Text: "x"}, nil)
		_, errs["request"] = r.Request(ctx, agent, "r")
		_, errs["standing"] = r.AdmissionAt(ctx, agent, replay.Moment{Seq: 1})
		_, errs["policy"] = r.TryPolicy(ctx, history.PolicyTrial{Agents: []string{"clerk", agent}, Policy: enginetest.Value(t, `{}`)}, func(query.PolicyDifference) error { return nil })
		return errs
	}
	for what, err := range ask(ctx, v.Replay(), "nobody") {
		var none *history.NoAgentError
		if !errors.As(err, &none) || !errors.Is(err, agents.ErrUnknownAgent) || fmt.Sprint(none.Known) != "[clerk scout]" {
			t.Errorf("%s of nobody: %v", what, err)
		}
	}
	if _, err := v.Eng.AgentHistory("nowhere"); !errors.Is(err, eventlog.ErrNoSession) {
		t.Errorf("of no session: %v", err)
	}
	if _, err := v.Replay().ViewAt(ctx, "clerk", replay.Moment{Seq: 999}); !errors.Is(err, replay.ErrNoAddress) {
		t.Errorf("no moment: %v", err)
	}
	seen := eventlog.Seq(0)
	if _, err := v.Replay().OnProgress(func(done, total eventlog.Seq) { seen = done }).Leak(ctx, "clerk", query.LeakQuery{Text: "x"}, nil); err != nil || seen == 0 {
		t.Errorf("progress up to %d, %v", seen, err)
	}
	cancel()
	for what, err := range ask(ctx, v.Replay(), "clerk") {
		assert.ErrorIsf(t, err, context.Canceled, "%s: %v, want canceled", what, err)
	}
}
