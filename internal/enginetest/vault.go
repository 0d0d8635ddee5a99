package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/agents/history"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/message"
	"github.com/sajou-dev/sajou-go/agents/query"
	agentview "github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Vault is a recorded world: a scout far from a vault, which walks up to it and
// away again, a clerk who sees all but codes, and what they are told late.
type Vault struct {
	Eng   *sajou.Engine
	World *agentslive.Agents
	T     testing.TB
	Seqs  map[string]eventlog.Seq // named entries
}

// RecordVault begins the world of a vault in a session "vault".
func RecordVault(t testing.TB, cfg sajou.Config) *Vault {
	t.Helper()
	if cfg.FS == nil {
		cfg.FS = vfs.NewMem()
	}
	eng, err := sajou.Open("store", cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	ses, err := eng.Begin(t.Context(), "vault", session.TimeManual)
	require.NoError(t, err)
	v := &Vault{eng, ses.Agents(), t, map[string]eventlog.Seq{}}
	v.Must(v.World.Configure(t.Context(), Value(t, `{"authority":"manual","cooldowns":"off","debounce_ms":100}`)))
	for _, e := range []string{
		`"scout","entity_data":{"type":"agent","team":"red"},"position":[100,0]`, `"clerk","entity_data":{"type":"agent","team":"blue"},"position":[0,0]`,
		`"vault","entity_data":{"type":"thing","locked":true,"code":"XK-4711"},"position":[0,0]`,
	} {
		v.Happens("EntityCreated", "gm", `{"entity_id":`+e+`}`)
	}
	v.Register("scout", `{"policy":"fog","of":{"policy":"all","of":[{"policy":"distance","limit":10},{"policy":"channel","channels":["public","private"]}]},"latency_model":50}`) // 7
	v.Register("clerk", `{"field_visibility":{"code":false}}`)
	return v
}

// Must fails the test on an error.
func (v *Vault) Must(err error) {
	v.T.Helper()
	if err != nil {
		v.T.Fatal(err)
	}
}

// Register registers an agent with a policy.
func (v *Vault) Register(id, policy string) {
	v.T.Helper()
	_, err := v.World.Register(v.T.Context(), id, Value(v.T, policy))
	v.Must(err)
}

// Happens adds an effect to the world.
func (v *Vault) Happens(kind, source, payload string) {
	v.T.Helper()
	_, err := v.World.Broadcast(v.T.Context(), Draft(kind, source, payload))
	v.Must(err)
}

// Wait moves session time on.
func (v *Vault) Wait(to time.Duration) {
	v.T.Helper()
	v.Must(v.World.Advance(v.T.Context(), to))
}

// Mark notes the last entry.
func (v *Vault) Mark(name string) {
	v.T.Helper()
	v.Must(v.World.Settle(v.T.Context()))
	log, err := v.Eng.Log().Session("vault")
	v.Must(err)
	v.Seqs[name] = log.Head().Seq
}

// Replay returns the history of the recorded session.
func (v *Vault) Replay() *history.History {
	v.T.Helper()
	h, err := v.Eng.AgentHistory("vault")
	v.Must(err)
	return h
}

// Knows returns the view of an agent at a moment.
func (v *Vault) Knows(agent string, m replay.Moment) history.Knowledge {
	v.T.Helper()
	k, err := v.Replay().ViewAt(v.T.Context(), agent, m)
	v.Must(err)
	return k
}

// Shown returns a value as JSON.
func Shown(v signal.Value) string { return string(v.AppendJSON(nil)) }

// oneWord is a generator that says one word.
type oneWord struct{}

// Generate implements [generate.Generator].
func (oneWord) Generate(context.Context, generate.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("ok", nil) }
}

// Given has an agent generate and returns the view that its prompt was made of.
func (v *Vault) Given(agent, req string, more func(agentview.View) string) agentview.View {
	v.T.Helper()
	g, err := v.World.Agent(v.T.Context(), agent)
	v.Must(err)
	defer g.Close()
	var view agentview.View
	_, err = generate.Run(v.T.Context(), g, oneWord{}, generate.Request{ReqID: req, Regenerations: -1, Prompt: func(got agentview.View) generate.Prompt {
		view = got
		text := ""
		if more != nil {
			text = more(got)
		}
		return generate.Prompt{Messages: []generate.ChatMessage{{Role: "user", Content: text}}}
	}})
	v.Must(err)
	return view
}

// Token returns the entry of the newest token of a request.
func (v *Vault) Token(agent, req string) (seq eventlog.Seq, value signal.Value) {
	v.T.Helper()
	log, err := v.Eng.Log().Session("vault")
	v.Must(err)
	for e, err := range log.Entries(v.T.Context(), 1) {
		v.Must(err)
		if r, err := session.WorldRecordOf(&e); err == nil && r.Word == agents.WordToken {
			if id, _ := r.Value.Get("agent_id"); Shown(id) != fmt.Sprintf("%q", agent) {
				continue
			}
			if id, _ := r.Value.Get("req_id"); Shown(id) == fmt.Sprintf("%q", req) {
				seq, value = e.Seq, append(signal.Value(nil), r.Value...)
			}
		}
	}
	if seq == 0 {
		v.T.Fatalf("no token %s of %s", req, agent)
	}
	return seq, value
}

// Leak returns the proof about a query and the places that were found.
func (v *Vault) Leak(agent string, q query.LeakQuery) (history.LeakProof, []query.Leak) {
	v.T.Helper()
	var found []query.Leak
	proof, err := v.Replay().Leak(v.T.Context(), agent, q, func(l query.Leak) error {
		found = append(found, l)
		return nil
	})
	v.Must(err)
	if int(proof.Leaks) != len(found) || errors.Is(proof.Err(), history.ErrLeak) != (len(found) > 0) {
		v.T.Errorf("%+v: %d found, %v", q, len(found), proof.Err())
	}
	return proof, found
}

// Places returns where something was found, as ROUTE PLACE HOW.
func Places(list []query.Leak) (all []string) {
	for _, l := range list {
		all = append(all, fmt.Sprint(l.Route, " ", l.Place, " ", l.How))
	}
	return all
}

// WantLeak says where a text was sent to an agent; "" is nowhere, and proven.
func (v *Vault) WantLeak(agent string, q query.LeakQuery, want string) {
	v.T.Helper()
	proof, found := v.Leak(agent, q)
	got := ""
	if len(found) > 0 {
		got = Places(found)[0]
	}
	if got != want || want == "" && proof.Err() != nil {
		v.T.Errorf("%s %+v: %q, want %q; %v", agent, q, got, want, proof.Err())
	}
}

// Forge opens the store again and appends a record of the agents' world as it is,
// past the writer.
func (v *Vault) Forge(fs vfs.FS, word, text string) {
	v.T.Helper()
	v.Must(v.World.Settle(v.T.Context()))
	v.Must(v.Eng.Close())
	eng, err := sajou.Open("store", sajou.Config{FS: fs})
	v.Must(err)
	v.T.Cleanup(func() { v.Must(eng.Close()) })
	v.Eng, v.World = eng, nil
	log, err := v.Eng.Log().Session("vault")
	v.Must(err)
	data := append([]byte{0x92, 0xa0 | byte(len(word))}, word...)
	_, err = v.Eng.Restore(v.T.Context(), "vault", eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindEffect, At: log.At(), Data: append(data, Value(v.T, text)...)}}})
	v.Must(err)
}

// Received is everything that one agent really got from the engine, as it would put
// it into a prompt of its own.
type Received struct {
	strings.Builder
}

// Add adds texts that were sent.
func (r *Received) Add(texts ...string) {
	for _, s := range texts {
		r.WriteString(s + "\n")
	}
}

// Outcome takes in an answer to a request.
func (r *Received) Outcome(o agents.Outcome, err error) {
	if o.Effect != nil {
		r.Add(Shown(o.Effect.Value()))
	}
	if err == nil {
		return
	}
	r.Add(err.Error())
	if refused, ok := errors.AsType[*agents.Rejection](err); ok {
		text, _ := json.Marshal(refused)
		r.Add(string(text))
	}
}

// HearAll takes in what a chat room passes on to the scout, from the beginning.
func (v *Vault) HearAll(ses *sajou.Session, got *Received) {
	v.T.Helper()
	ctx, cancel := context.WithCancel(v.T.Context())
	defer cancel()
	// The last message of all, to which it hears, ends it.
	v.Happens("Speak", "scout", `{"text":"over"}`)
	v.Wait(v.World.Now() + 2*time.Hour) // for a room waits too
	for m, err := range message.New(ses).Resume(ctx, "scout", 0, message.Filter{}) {
		v.Must(err)
		got.Add(m.From, m.To, m.Text, m.ReqID, Shown(m.Payload))
		if m.Text == "over" {
			return
		}
	}
}
