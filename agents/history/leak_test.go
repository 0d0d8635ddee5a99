package history_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// A secret that goes to an agent by one route alone is found there, however long the
// text around it is.
func TestLeakSearchesEveryRoute(t *testing.T) {
	ctx := t.Context()
	long := strings.Repeat("a reason that goes on and on; ", 30)
	validator := agents.Validator{Name: "guard", Check: func(_ world.ReadOnly, in agents.Intent) []agents.Problem {
		if in.ReqID != "guarded" {
			return nil
		}
		return []agents.Problem{{Path: "/payload/text", Reason: long}, {Path: "/payload/x", Reason: "the word is REFUSAL-7"}}
	}}
	v := enginetest.RecordVault(t, sajou.Config{RecordPrompts: true, World: agents.Options{Validators: []agents.Validator{validator}}})
	clerk, err := v.World.Agent(ctx, "clerk")
	v.Must(err)
	defer clerk.Close()
	speak := func(req, payload string) error {
		_, err := clerk.Submit(ctx, agents.Intent{Kind: "Speak", ReqID: req, Payload: enginetest.Value(t, payload), ContextSeq: 99})
		return err
	}
	first := speak("guarded", `{"text":"hm"}`)
	if again := speak("guarded", `{"text":"hm"}`); first == nil || again == nil || first.Error() != again.Error() {
		t.Errorf("refused: %v\nand again: %v", first, again)
	}
	v.Must(speak("own", `{"text":"hm","memo":"OUTCOME-7"}`))
	g, err := clerk.Begin(ctx, agents.TokenRequest{ReqID: "stopped", Current: true})
	v.Must(err)
	v.Must(g.End(ctx, "since CANCELLATION-7"))
	v.Given("clerk", "prompted", func(view.View) string { return long + "PROMPT-7" })
	v.Happens("Speak", "scout", `{"text":"psst","aside":"MESSAGE-7"}`)
	v.Happens("EpisodeStep", "env", `{"episode":1,"step":1,"after":1,"agents":[{"agent":"scout","reason":"OTHER-7","reward":0},{"agent":"clerk","reason":"JUDGEMENT-7","reward":12.5}]}`)
	v.Mark("end")

	for text, want := range map[string]string{
		"REFUSAL-7":      "refusal /problems/1/reason reason",
		"OUTCOME-7":      "outcome /payload/memo value",
		"CANCELLATION-7": "cancellation /reason reason",
		"PROMPT-7":       "prompt /prompt/0/content value",
		"MESSAGE-7":      "message /payload/aside value",
		"JUDGEMENT-7":    "judgement /payload/agents/1/reason value",
		"12.5":           "judgement /payload/agents/1/reward value",
		"XK-4711":        "",
		"OTHER-7":        "",
	} {
		v.WantLeak("clerk", query.LeakQuery{Text: text}, want)
		first, found, proof, err := v.Replay().FirstSent(ctx, "clerk", query.LeakQuery{Text: text}, nil)
		v.Must(err)
		if found != (want != "") || found && (enginetest.Places([]query.Leak{first})[0] != want || first.Entry == 0) || !found && proof.Err() != nil {
			t.Errorf("%s was first sent by %v %v, %v", text, found, enginetest.Places([]query.Leak{first}), proof.Err())
		}
		if found {
			before := replay.Moment{Seq: eventlog.Seq(first.Entry) - 1}
			if _, found, _, err := v.Replay().FirstSent(ctx, "clerk", query.LeakQuery{Text: text}, &before); err != nil || found {
				t.Errorf("%s was sent before entry %d: %v", text, first.Entry, err)
			}
		}
	}
	proof, _ := v.Leak("clerk", query.LeakQuery{Text: "nothing"})
	if n := proof.Stats; n.Refusals != 1 || n.Outcomes != 1 || n.Cancellations != 2 || n.Prompts != 1 || n.Messages != 1 || n.Judgements != 1 || len(proof.Unsearched) != 0 {
		t.Errorf("%+v, gaps %v", n, proof.Unsearched)
	}
	// A path tells nothing about an environment's rewards.
	if proof, _ := v.Leak("clerk", query.LeakQuery{Path: path(t, "/visible_entities/vault/code")}); fmt.Sprint(proof.Unsearched) != "[1 step of an environment, with rewards and action masks, first in entry "+fmt.Sprint(v.Seqs["end"])+"]" {
		t.Errorf("a path: %v", proof.Unsearched)
	}
}

// A delta in flight reaches its agent at its time, unless the agent leaves before that time;
// then the first delta that was sent is one after the agent's return.
func TestFirstSentInFlight(t *testing.T) {
	ctx := t.Context()
	for name, tt := range map[string]struct {
		leaves  time.Duration // after the secrets; negative if the scout stays
		returns bool
		want    time.Duration // of the arrival; negative if nothing arrives
	}{
		"stays":              {-1, false, 1050 * time.Millisecond},
		"leaves before":      {49 * time.Millisecond, false, -1},
		"returns":            {49 * time.Millisecond, true, 1049 * time.Millisecond},
		"leaves on arrival":  {50 * time.Millisecond, false, 1050 * time.Millisecond},
		"leaves long after":  {time.Second, false, 1050 * time.Millisecond},
		"leaves in the same": {0, false, -1},
	} {
		t.Run(name, func(t *testing.T) {
			v := enginetest.RecordVault(t, sajou.Config{})
			scout, err := v.World.Agent(ctx, "scout")
			v.Must(err)
			defer scout.Close()
			v.Wait(time.Second)
			for i := range 3 {
				v.Happens("EntityCreated", "gm", fmt.Sprintf(`{"entity_id":"note%d","entity_data":{"text":"SECRET-7"},"position":[100,0]}`, i))
			}
			if tt.leaves >= 0 {
				v.Wait(time.Second + tt.leaves)
				v.Must(scout.Leave(ctx))
			}
			if tt.returns {
				v.Register("scout", `{"policy":"everything"}`)
			}
			v.Wait(time.Minute)
			v.Mark("end")
			first, found, proof, err := v.Replay().FirstSent(ctx, "scout", query.LeakQuery{Text: "SECRET-7"}, nil)
			v.Must(err)
			require.Equal(t, tt.want >= 0, found, "%v", first)
			if found {
				require.Equal(t, tt.want, first.Delivery.At)
				require.EqualValues(t, 1, proof.Leaks)
				early := replay.Moment{Seq: eventlog.Seq(first.Entry) - 1}
				_, found, _, err = v.Replay().FirstSent(ctx, "scout", query.LeakQuery{Text: "SECRET-7"}, &early)
				v.Must(err)
				require.False(t, found)
			}
		})
	}
}

// A secret is found in any form that JSON gives it: as a number, in a name, below
// the escapes of a text that quotes JSON, and as a part of any of them.
func TestLeakOfForms(t *testing.T) {
	for name, tt := range map[string]struct {
		fields string
		text   string
		found  bool
	}{
		"a number":                  {`{"n":4711}`, "4711", true},
		"a number, otherwise":       {`{"n":4711.0}`, "4711", true},
		"a number with an exponent": {`{"n":1e3}`, "1000", true},
		"a part of a number":        {`{"n":5471199}`, "4711", true},
		"behind the point":          {`{"n":0.4711}`, "4711", true},
		"another number":            {`{"n":4712}`, "4711", false},
		"true":                      {`{"n":true}`, "true", true},
		"null":                      {`{"n":null}`, "null", true},
		"a name":                    {`{"code 4711":1}`, "4711", true},
		"a name deep below":         {`{"a":{"b":[{"code 4711":1}]}}`, "4711", true},
		"a part":                    {`{"n":"it is XK-4711!"}`, "4711", true},
		"another case":              {`{"n":"swordFish"}`, "swordfish", false},
		"in nested JSON":            {`{"n":"{\"code\":\"XK-4711\"}"}`, "XK-4711", true},
		"quotes in nested JSON":     {`{"n":"{\"code\":\"say \\\"friend\\\"\"}"}`, `say "friend"`, true},
		"in JSON twice":             {`{"n":"{\"a\":\"{\\\"b\\\":\\\"caf\\\\u00e9\\\"}\"}"}`, "café", true},
		"escaped letters":           {`{"n":"caf\\u00e9"}`, "café", true},
		"an escaped pair":           {`{"n":"\\ud83d\\udd11 below the mat"}`, "🔑 below", true},
		"HTML in JSON":              {`{"n":"\"\\u003cb\\u003e\""}`, "<b>", true},
		"a backslash itself":        {`{"n":"C:\\new"}`, `C:\new`, true},
		"a name with a slash":       {`{"a/b~c":1}`, "a/b~c", true},
		"two halves":                {`{"n":"47","m":"11"}`, "4711", false},
	} {
		t.Run(name, func(t *testing.T) {
			v := enginetest.RecordVault(t, sajou.Config{})
			v.Happens("EntityCreated", "gm", `{"entity_id":"note","entity_data":`+tt.fields+`,"position":[0,0]}`)
			v.Mark("end")
			if _, found := v.Leak("clerk", query.LeakQuery{Text: tt.text}); (len(found) > 0) != tt.found {
				t.Errorf("%s in %s: found %v", tt.text, tt.fields, enginetest.Places(found))
			}
		})
	}
}

// The id of an entity is found wherever it stands as a word of its own, and a path
// in texts that have all of its names.
func TestLeakOfNames(t *testing.T) {
	ctx := t.Context()
	v := enginetest.RecordVault(t, sajou.Config{RecordPrompts: true})
	v.Register("blind", `{"policy":"self"}`)
	v.Happens("EntityCreated", "gm", `{"entity_id":"blind","entity_data":{"wants":"nothing"}}`)
	v.WantLeak("blind", query.LeakQuery{Entity: "vault"}, "")
	v.WantLeak("blind", query.LeakQuery{Path: path(t, "/visible_entities/vault/code")}, "")
	v.Given("blind", "1", func(view.View) string { return "vaulting, evault, vault_2 and the code of it" })
	v.WantLeak("blind", query.LeakQuery{Entity: "vault"}, "")
	v.Happens("EntityUpdated", "gm", `{"entity_id":"blind","fields":{"wants":"the vault"}}`)
	v.WantLeak("blind", query.LeakQuery{Entity: "vault"}, "view /visible_entities/blind/wants mention")
	v.WantLeak("blind", query.LeakQuery{Path: path(t, "/visible_entities/vault/code")}, "")
	v.Given("blind", "2", func(view.View) string { return `{"vault":{"position":[0,0]},"what":"code"}` })
	v.WantLeak("blind", query.LeakQuery{Path: path(t, "/visible_entities/vault/code")}, "prompt /prompt mention")
	_ = ctx
}

// A prompt of which only the digest is recorded is not covered, whatever is asked.
func TestUncoveredPrompts(t *testing.T) {
	v := enginetest.RecordVault(t, sajou.Config{})
	queries := []query.LeakQuery{{Text: "XK-4711"}, {Entity: "scout"}, {Path: path(t, "/visible_entities/vault/code")}}
	v.Register("blind", `{"policy":"self"}`)
	for _, q := range queries {
		v.WantLeak("blind", q, "")
	}
	v.Given("blind", "1", func(view.View) string { return "by the way: XK-4711" })
	v.Given("blind", "2", nil)
	for _, q := range queries {
		proof, found := v.Leak("blind", q)
		if len(found) > 0 || !errors.Is(proof.Err(), history.ErrUncovered) || len(proof.Unsearched) != 1 || proof.Unsearched[0].Kind != query.UnsearchedDigest || proof.Unsearched[0].Count != 2 {
			t.Errorf("%+v: %v, %v", q, enginetest.Places(found), proof.Err())
		}
	}
	// Another agent's prompts are not its own.
	v.WantLeak("clerk", query.LeakQuery{Text: "XK-4711"}, "")
}

// A generation whose prompt was sent and whose attempt is not recorded, since it
// still runs or the program ended, is not covered.
func TestUnrecordedAttempt(t *testing.T) {
	v := enginetest.RecordVault(t, sajou.Config{RecordPrompts: true})
	clerk, err := v.World.Agent(t.Context(), "clerk")
	v.Must(err)
	asked := make(chan struct{})
	slow := generatorFunc(func(ctx context.Context, _ generate.Prompt) iter.Seq2[string, error] {
		return func(func(string, error) bool) {
			close(asked)
			<-ctx.Done()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = generate.Run(ctx, clerk, slow, generate.Request{ReqID: "r", Prompt: func(view.View) generate.Prompt {
			return generate.Prompt{Messages: []generate.ChatMessage{{Role: "user", Content: "XK-4711"}}}
		}})
	}()
	<-asked
	proof, found := v.Leak("clerk", query.LeakQuery{Text: "XK-4711"})
	if len(found) > 0 || len(proof.Unsearched) != 1 || proof.Unsearched[0].Kind != query.UnsearchedAttempt {
		t.Errorf("while it runs: %v, %v", enginetest.Places(found), proof.Unsearched)
	}
	cancel()
	<-done
	v.WantLeak("clerk", query.LeakQuery{Text: "XK-4711"}, "prompt /prompt/0/content value")
}

// A recorded prompt that is not that of its digest, and a view that the agent had
// not been sent, prove nothing.
func TestForgedAttempts(t *testing.T) {
	digest := agents.PromptDigest(enginetest.Value(t, `[{"role":"user","content":"hello"}]`))
	for record, want := range map[string]query.UnsearchedKind{
		`{"agent_id":"clerk","req_id":"r","finish":"stop","prompt_sha256":"` + digest + `","prompt":[{"content":"hello","role":"user"}]}`: "",
		`{"agent_id":"clerk","req_id":"r","finish":"stop","prompt_sha256":"` + digest + `","prompt":[{"content":"hallo","role":"user"}]}`: query.UnsearchedMismatch,
		`{"agent_id":"clerk","req_id":"r","finish":"stop","prompt_sha256":7,"prompt":3}`:                                                  query.UnsearchedMismatch,
		`{"agent_id":"clerk","req_id":"r","finish":"stop","prompt_sha256":"` + digest + `"}`:                                              query.UnsearchedDigest,
		`{"agent_id":"clerk","req_id":"r","finish":"stop","text":"of rules 0"}`:                                                           query.UnsearchedDigest,
		`{"agent_id":"clerk","req_id":"r","answer":"by the program itself"}`:                                                              "",
		`{"agent_id":"scout","req_id":"r","finish":"stop"}`:                                                                               "",
	} {
		fs := vfs.NewMem()
		v := enginetest.RecordVault(t, sajou.Config{FS: fs})
		v.Forge(fs, "generated", record)
		proof, _ := v.Leak("clerk", query.LeakQuery{Text: "nothing"})
		got := query.UnsearchedKind("")
		if len(proof.Unsearched) > 0 {
			got = proof.Unsearched[0].Kind
		}
		if got != want {
			t.Errorf("%s: %v, want %q", record, proof.Unsearched, want)
		}
	}
	fs := vfs.NewMem()
	v := enginetest.RecordVault(t, sajou.Config{FS: fs})
	v.Forge(fs, "token", `{"agent_id":"clerk","req_id":"r","context_seq":99,"context_digest":"x","prompted":true}`)
	if proof, _ := v.Leak("clerk", query.LeakQuery{Text: "nothing"}); len(proof.Unsearched) != 2 || proof.Unsearched[1].Kind != query.UnsearchedMismatch {
		t.Errorf("a token of another view: %v", proof.Unsearched)
	}
}

// A misspelt name proves nothing: an entity that never existed was never sent.
func TestLeakOfNothing(t *testing.T) {
	v := enginetest.RecordVault(t, sajou.Config{})
	v.Happens("EntityCreated", "gm", `{"entity_id":"ghost","entity_data":{"age":900}}`)
	v.Happens("RelationshipAdded", "gm", `{"from":"clerk","to":"scout","type":"knows"}`)
	v.Happens("EntityRemoved", "gm", `{"entity_id":"ghost"}`)
	v.Mark("end")
	for text, exists := range map[string]bool{
		"vault": true, "vualt": false, "ghost": true, "scout": true, "gm": false, "/visible_entities": true, "/view_seq": true,
		"/visible_entities/vault/code": true, "/visible_entities/vault/cod": false, "/visible_entities/ghost/age": true, "/visible_entities/ghost/age/1": false,
		"/visible_entities/nobody/code": false, "/visible_relationships/clerk": true, "/visible_relationships/clerk/0": true, "/visible_relationships/vault": false,
	} {
		q := query.LeakQuery{Entity: text}
		if text[0] == '/' {
			q = query.LeakQuery{Path: path(t, text)}
		}
		proof, _ := v.Leak("scout", q)
		if proof.Exists != exists || errors.Is(proof.Err(), history.ErrNoThing) == exists {
			t.Errorf("%s: exists %v, %v", text, proof.Exists, proof.Err())
		}
	}
}

// Guidance that contains the secret may have reached the agent that plays the
// character; guidance without the secret reveals it to no agent.
func TestLeakOfGuidance(t *testing.T) {
	v := enginetest.RecordVault(t, sajou.Config{})
	ses, err := v.Eng.Session(t.Context(), "vault")
	v.Must(err)
	v.Must(ses.Director().Start(t.Context(), enginetest.Authored(t, enginetest.Tea), director.Opening{}))
	_, err = ses.Director().Guide(t.Context(), director.TurnInput{Turn: 1, Text: "Hello, MARKED-7."})
	v.Must(err)
	v.WantLeak("clerk", query.LeakQuery{Text: "XK-4711"}, "")
	for _, q := range []query.LeakQuery{{Text: "Offer tea"}, {Text: "MARKED-7"}, {Path: path(t, "/visible_entities/vault/code")}} {
		proof, found := v.Leak("clerk", q)
		if len(found) > 0 || len(proof.Unsearched) != 1 || proof.Unsearched[0].Kind != query.UnsearchedGuidance {
			t.Errorf("%+v: %v, %v", q, enginetest.Places(found), proof.Unsearched)
		}
	}
}

// A session that was recorded under other rules is answered by the present ones,
// together with the reason why that proves nothing.
func TestQuestionsAboutOtherRules(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "testdata", "stores", "ca1d511", "agents"))))
	eng, err := sajou.Open(dir, sajou.Config{ReadOnly: true})
	require.NoError(t, err)
	defer func() { _ = eng.Close() }()
	ctx := t.Context()
	r, err := eng.AgentHistory("conversation")
	require.NoError(t, err)
	last := eng.Log()
	log, err := last.Session("conversation")
	require.NoError(t, err)
	m := replay.Moment{Seq: log.Head().Seq}
	for name, ask := range map[string]func() (bool, error){
		"Knows": func() (bool, error) {
			k, err := r.ViewAt(ctx, "A", m)
			return k.View.VisibleEntities.Len() > 0, err
		},
		"FirstKnown": func() (bool, error) {
			s, ok, err := r.FirstKnown(ctx, "A", path(t, "B"), nil)
			return ok && s.Value != nil, err
		},
		"Leak": func() (bool, error) {
			proof, err := r.Leak(ctx, "A", query.LeakQuery{Text: "nothing"}, nil)
			if err == nil {
				err = proof.Err()
			}
			return proof.Stats.Deltas > 0, err
		},
		"FirstSent": func() (bool, error) {
			_, found, proof, err := r.FirstSent(ctx, "A", query.LeakQuery{Text: "nothing"}, nil)
			if err == nil {
				err = proof.Err()
			}
			return !found, err
		},
		"Request": func() (bool, error) {
			report, err := r.Request(ctx, "A", "story")
			return len(report.Generations) > 0, err
		},
		"Standing": func() (bool, error) {
			s, err := r.AdmissionAt(ctx, "A", m)
			return s.Registered, err
		},
	} {
		answered, err := ask()
		rules, ok := errors.AsType[*session.RulesError](err)
		if !answered || !ok || rules.Recorded != 0 || rules.Present != session.Rules || rules.Session != "conversation" {
			t.Errorf("%s: answered %v, %v", name, answered, err)
		}
	}
}

// A refusal that leaves no record has none of the words of the program's validators:
// they are built from the whole world.
func TestUnrecordedRefusalHasNoWordsOfValidators(t *testing.T) {
	validator := agents.Validator{Name: "guard", Check: func(w world.ReadOnly, in agents.Intent) []agents.Problem {
		if note, ok := w.Entity("vault"); ok && in.AgentID == "clerk" {
			if open, _ := note.Get("locked"); enginetest.Shown(open) == "false" {
				code, _ := note.Get("code")
				return []agents.Problem{{Path: "/payload/text", Reason: "not with " + enginetest.Shown(code)}}
			}
		}
		return nil
	}}
	unlock := world.Handler{Kind: "Unlock", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) {
		return []world.Change{world.SetField("vault", "locked", signal.Value{0xc2})}, nil
	}}
	v := enginetest.RecordVault(t, sajou.Config{World: agents.Options{Validators: []agents.Validator{validator}, Handlers: []world.Handler{unlock}}})
	v.Wait(time.Second)
	outcomes, err := v.World.Quantum(t.Context(),
		agents.Submission{Draft: &agents.EffectDraft{Kind: "Unlock", SourceID: "a", Payload: enginetest.Value(t, `{}`)}, SimTime: 0.1, Timed: true},
		agents.Submission{Intent: &agents.Intent{Kind: "Speak", AgentID: "clerk", ReqID: "r", Payload: enginetest.Value(t, `{"text":"x"}`), ContextSeq: 99}, SimTime: 0.2, Timed: true})
	v.Must(err)
	refused := outcomes[1].Rejection
	if refused == nil || refused.Code != agents.ErrIntentConflict || strings.Contains(refused.Error(), "not with") || len(refused.Problems) != 1 || refused.Problems[0].Reason != agents.ReasonConflict {
		t.Errorf("refused: %v", refused)
	}
}

// A prompt that has to be recorded and cannot be is not sent.
func TestPromptBeyondAnEntry(t *testing.T) {
	v := enginetest.RecordVault(t, sajou.Config{RecordPrompts: true, FS: vfs.NewMem()})
	clerk, err := v.World.Agent(t.Context(), "clerk")
	v.Must(err)
	prompt := func(size int) func(view.View) generate.Prompt {
		return func(view.View) generate.Prompt {
			return generate.Prompt{Messages: []generate.ChatMessage{{Role: "user", Content: strings.Repeat("x", size) + "END-7"}}}
		}
	}
	never := generatorFunc(func(context.Context, generate.Prompt) iter.Seq2[string, error] {
		t.Error("it was sent")
		return func(func(string, error) bool) {}
	})
	if _, err := generate.Run(t.Context(), clerk, never, generate.Request{ReqID: "huge", Prompt: prompt(600_000)}); !errors.Is(err, eventlog.ErrTooLarge) {
		t.Errorf("a huge prompt: %v", err)
	}
	chatty := generatorFunc(func(context.Context, generate.Prompt) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) { yield(strings.Repeat("y", 2_000_000), nil) }
	})
	out, err := generate.Run(t.Context(), clerk, chatty, generate.Request{ReqID: "large", Prompt: prompt(400_000)})
	if err != nil || !out.Attempts[0].Cut || len(out.Text) < 500_000 {
		t.Errorf("a large prompt: %d bytes of text, %v", len(out.Text), err)
	}
	v.Must(v.World.Settle(t.Context()))
	if _, found := v.Leak("clerk", query.LeakQuery{Text: "END-7"}); len(found) != 1 {
		t.Errorf("found %v", enginetest.Places(found))
	}
}
