package sajou_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// The end-to-end test of the document: A generates an answer, B says something
// meanwhile, A's generation is cancelled, and C hears of both in order.
func TestConversationWithInterruption(t *testing.T) {
	ctx := t.Context()
	world := beginWorld(t, sajou.TimeManual).Agents()
	conversation := value(t, `{"policy":"conversation"}`)
	a, _, c := register(t, world, "A", conversation), register(t, world, "B", conversation), register(t, world, "C", conversation)
	for _, ends := range []string{`"from":"A","to":"B"`, `"from":"A","to":"C"`, `"from":"B","to":"C"`} {
		if _, err := world.Broadcast(ctx, draft("RelationshipAdded", "world", `{`+ends+`,"mutual":true}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := world.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	told := drain(t, c)
	first := draft("MessageEmitted", "A", `{"text":"Let me think about this."}`)
	if _, err := world.Broadcast(ctx, first); err != nil {
		t.Fatal(err)
	}
	token, err := a.Begin(ctx, agents.TokenRequest{ReqID: "req_1", Current: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := world.Broadcast(ctx, draft("MessageEmitted", "B", `{"text":"Wait, I have something important!"}`)); err != nil {
		t.Fatal(err)
	}
	<-token.Context().Done()
	var interrupted *sajou.Interrupted
	if cause := context.Cause(token.Context()); !errors.As(cause, &interrupted) || !strings.HasPrefix(interrupted.Reason, "stale_due_to") {
		t.Fatalf("the generation ended by %v, want stale_due_to…", cause)
	}
	heard := drain(t, c)
	if len(told) == 0 || len(heard) != 2 || heard[0].ViewSeq >= heard[1].ViewSeq {
		t.Errorf("C was told %v and then %v, want two messages in order", told, heard)
	}
}

// drain returns what a reader has been told and has not fetched.
func drain(t *testing.T, g *sajou.Agent) (list []sajou.Observation) {
	t.Helper()
	for at, ok := g.NextAt(); ok; at, ok = g.NextAt() {
		o, err := g.NextObservation(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if o.At < at {
			t.Errorf("told at %v what was due at %v", o.At, at)
		}
		list = append(list, o)
	}
	return list
}

func beginWorld(t *testing.T, authority sajou.TimeAuthority) *sajou.Session {
	t.Helper()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	ses, err := eng.Begin(t.Context(), "world", authority)
	if err != nil {
		t.Fatal(err)
	}
	return ses
}

func register(t *testing.T, w *sajou.Agents, id string, policy signal.Value) *sajou.Agent {
	t.Helper()
	if _, err := w.Broadcast(t.Context(), draft("EntityCreated", "world", `{"entity_id":"`+id+`","entity_data":{"type":"agent"}}`)); err != nil {
		t.Fatal(err)
	}
	g, err := w.Register(t.Context(), id, policy)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func draft(kind, source, payload string) agents.Draft {
	v, err := signal.ParseValue([]byte(payload))
	if err != nil {
		panic(err)
	}
	return agents.Draft{Kind: kind, SourceID: source, Payload: v}
}

// interact is a request to use something.
func interact(target string) agents.Intent {
	in := draft("Interact", "", `{"target_id":"`+target+`","type":"use"}`)
	return agents.Intent{Kind: in.Kind, Payload: in.Payload, ReqID: "use-" + target}
}
