package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/internal/simulate"
)

// scenario returns the text of a scenario of two agents that see each other.
func scenario(members string) string {
	return `{"sajou":"simulation","version":1,"name":"a",
		"config":{"cooldowns":"off","quota_intents_per_minute":-1,"quota_tokens_per_minute":-1},
		"world":{"entities":{"A":{"type":"agent"},"B":{"type":"agent"}},"relationships":{"A":["B"],"B":["A"]}},` + members + `}`
}

// echo is an agent that answers each word of another, for as long as it may.
func echo(id, other, text string, after int) string {
	return fmt.Sprintf(`{"id":%q,"policy":{"policy":"conversation"},"on":[
		{"path":"/visible_entities/%s/message_count","changed":true,"after":%d,"times":10000,
		 "do":{"submit":{"kind":"Speak","payload":{"text":%q}}}}]}`, id, other, after, text)
}

// A play that would never end ends with an error that names the limit.
func TestLimits(t *testing.T) {
	start := `"events":[{"at":0,"draft":{"kind":"Speak","source_id":"A","payload":{"text":"0"}}}]`
	for _, c := range []struct{ name, text, limit string }{
		{"reactions to reactions", scenario(start + `,"agents":[` + echo("A", "B", "no", 1) + `,` + echo("B", "A", "yes", 1) + `]`), "reactions"},
		{"at one time", scenario(start + `,"agents":[` + echo("A", "B", "no", 0) + `,` + echo("B", "A", "yes", 0) + `]`), "reactions"},
		{"effects", scenario(start + `,"limits":{"reactions":5000,"effects":100},"agents":[` + echo("A", "B", "no", 1) + `,` + echo("B", "A", "yes", 1) + `]`), "effects"},
		{"steps", scenario(start + `,"limits":{"reactions":5000,"steps":100},"agents":[` + echo("A", "B", "no", 1) + `,` + echo("B", "A", "yes", 1) + `]`), "steps"},
		{"texts that double", scenario(start + `,"limits":{"reactions":5000,"steps":4000},"agents":[` +
			echo("A", "B", "{{/visible_entities/B/last_message}}{{/visible_entities/B/last_message}}", 1) + `,` +
			echo("B", "A", "{{/visible_entities/A/last_message}}{{/visible_entities/A/last_message}}", 1) + `]`), ""},
		{"a day", scenario(start + `,"limits":{"reactions":5000},"agents":[` + echo("A", "B", "no", 80_000_000) + `,` + echo("B", "A", "yes", 80_000_000) + `]`), "milliseconds"},
		{"generations that are always stale", scenario(`"agents":[
			{"id":"A","policy":{"policy":"conversation","debounce_ms":0},"script":[{"at":0,"generate":{"words":"a b","interrupted":{"regenerate":1000}}}]},
			{"id":"B","policy":{"policy":"conversation"},"script":[` + strings.TrimSuffix(strings.Repeat(`{"at":1,"submit":{"kind":"Speak","payload":{"text":"x"},"context_seq":1000000}},`, 300), ",") + `]}]`), ""},
		{"ticks", `{"sajou":"simulation","version":1,"name":"a","config":{"authority":"sim"},"ticks":{"every":1},"until":86400000}`, "steps"},
		{"too large a world", tooLarge(200), "work"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parse(t, c.name, c.text)
			take, err := s.Play(t.Context(), "", ignore)
			if err == nil {
				err = errors.Join(nil, take.Close())
			}
			limit, ok := errors.AsType[*simulate.LimitError](err)
			switch {
			case c.limit == "" && err != nil:
				t.Errorf("it ends with %v", err)
			case c.limit != "" && (!ok || limit.Limit != c.limit || !errors.Is(err, simulate.ErrLimit)):
				t.Errorf("it ends with %v, want the limit of %s", err, c.limit)
			}
		})
	}
}

// tooLarge is a world of many who do much in it; each entity takes so many
// bytes.
func tooLarge(each int) string {
	var entities, agents []string
	for i := range 250 {
		entities = append(entities, fmt.Sprintf(`"e%d":{"text":%q}`, i, strings.Repeat("x", each)))
		agents = append(agents, fmt.Sprintf(`{"id":"e%d","policy":{"policy":"self"},"script":[{"at":0,"submit":{"kind":"Custom"}},{"at":5000,"submit":{"kind":"Custom"}}]}`, i))
	}
	return `{"sajou":"simulation","version":1,"name":"a","world":{"entities":{` + strings.Join(entities, ",") + `}},"agents":[` +
		strings.Join(agents, ",") + `]}`
}

// A world that is too large for as many as are in it is not even begun.
func TestCrowded(t *testing.T) {
	s, diagnostics := simulate.Parse("crowded", []byte(tooLarge(3000)))
	if s != nil || len(diagnostics) != 1 || !strings.Contains(diagnostics.String(), "use fewer of them") {
		t.Errorf("%v", diagnostics)
	}
}

// The end of the context, and an error of the callback, end a play.
func TestStopped(t *testing.T) {
	s := parse(t, "example", string(simulate.Example()))
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Play(ctx, "", func(e *simulate.Event) error {
		if e.What == simulate.Began {
			cancel()
		}
		return nil
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	full := errors.New("full")
	if _, err := s.Play(t.Context(), "", func(*simulate.Event) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v, want %v", err, full)
	}
}

// Another session of the name is not touched.
func TestRecordOther(t *testing.T) {
	engine := open(t, "store", sajou.Config{FS: vfs.NewMem()})
	first, _ := play(t, parse(t, "example", string(simulate.Example())))
	if _, err := first.Record(t.Context(), engine); err != nil {
		t.Fatal(err)
	}
	second, _ := play(t, parse(t, "other", strings.Replace(string(simulate.Example()), "Wait,", "Stop,", 1)))
	if second.Head == first.Head {
		t.Fatal("two scenarios are one session")
	}
	if recorded, err := second.Record(t.Context(), engine); recorded || !errors.Is(err, simulate.ErrSessionDiffers) {
		t.Errorf("recorded: %t, %v, want %v", recorded, err, simulate.ErrSessionDiffers)
	}
}

// A request that was answered in a session that was recorded is answered the same
// there, by the keys in the log.
func TestRecordedAnswers(t *testing.T) {
	engine := open(t, "store", sajou.Config{FS: vfs.NewMem()})
	take, _ := play(t, parse(t, "example", string(simulate.Example())))
	if _, err := take.Record(t.Context(), engine); err != nil {
		t.Fatal(err)
	}
	ses, err := engine.Session(t.Context(), take.Name)
	require.NoError(t, err)
	o, err := ses.Agents().Submit(t.Context(), intent("A", "story"))
	if err != nil || o.Status.String() != "duplicate" || !o.OK() {
		t.Errorf("%v, %v, want that it is answered", o, err)
	}
	if seq, ok, err := ses.Agents().GlobalSeq(t.Context(), "A", "story"); seq != 4 || !ok || err != nil {
		t.Errorf("effect %d, %v, %v answered it, want 4", seq, ok, err)
	}
}
