package sajou_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
)

func plainHandler(w *strings.Builder) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}})
}

// What the engine logs about an agent's request stays readable: its ids, its
// numbers and the rejection, but not what the agent should not have said.
func TestRedact(t *testing.T) {
	rejection := &agents.Rejection{
		Code: agents.ErrInvalid, AgentID: "scout", ReqID: "1srOrx2ZWZBpBUvZwXKQmoEYga2",
		Problems: []agents.Problem{{Path: "/payload/to", Reason: "bob@example.com is no target"}},
	}
	uuid := agents.Intent{AgentID: "scout", ReqID: "r"}.UUID("dungeon")
	log := func(l *slog.Logger) {
		l.LogAttrs(t.Context(), slog.LevelInfo, "intent refused",
			slog.String("world_id", "dungeon"), slog.Uint64("global_seq", 812), slog.Uint64("view_seq", 811),
			slog.String("agent_id", "scout"), slog.String("req_id", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY12"),
			slog.String("uuid", uuid), slog.Float64("latency_ms", 1.5),
			slog.Any("err", rejection), slog.String("code_name", "x"))
	}
	whole := `msg="intent refused" world_id=dungeon global_seq=812 view_seq=811 agent_id=scout ` +
		`req_id=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY12 uuid=` + uuid + ` latency_ms=1.5 ` +
		`err="agents: \"1srOrx2ZWZBpBUvZwXKQmoEYga2\" of \"scout\": INTENT_VALIDATION_FAILED; /payload/to: bob@example.com is no target" code_name=x` + "\n"
	for name, c := range map[string]struct {
		redact func(slog.Handler) slog.Handler
		want   string
	}{
		"default": {sajou.Redact, strings.Replace(whole, "bob@example.com", "[EMAIL]", 1)},
		"more":    {sajou.RedactAlso("codeName"), strings.NewReplacer("bob@example.com", "[EMAIL]", "code_name=x", "code_name=[REDACTED]").Replace(whole)},
		"none":    {sajou.Unredacted, whole},
	} {
		var got strings.Builder
		log(slog.New(c.redact(plainHandler(&got))))
		if got.String() != c.want {
			t.Errorf("%s\n got %swant %s", name, got.String(), c.want)
		}
	}
}

func ExampleRedact() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	logger := slog.New(sajou.Redact(handler))
	logger.Info("asked bob@example.com", slog.String("api_key", "k-1"), slog.String("req_id", "r-7"), slog.Uint64("global_seq", 812))
	// Output:
	// level=INFO msg="asked [EMAIL]" api_key=[REDACTED] req_id=r-7 global_seq=812
}
