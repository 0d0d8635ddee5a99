package choreography_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestStories runs the stories in testdata/stories: definitions and a script in,
// the script with its commands out. Lines of a script are
//
//	signal TYPE [id=CORRELATION] PAYLOAD
//	advance DURATION
//	performances     show what is active
//	restore          go on from the state bytes
//	define FILE      bring what stands in a part of the story into force
//	stage E.P VALUE  put something on the stage that conditions ask
//
// On that stage spawn makes an entity visible and destroy hides it.
func TestStories(t *testing.T) {
	golden.Tell(t, "testdata/stories/*.txtar", func(t *testing.T, files map[string]string) string {
		definitions, diagnostics := language.Parse("definitions.json", []byte(files["definitions.json"]))
		require.NoError(t, diagnostics.Err(definition.ErrInvalid))
		s := choreography.NewScheduler()
		for _, d := range definitions {
			define(t, s, d)
		}
		var out strings.Builder
		on := newStage()
		s.Observe(on, on)
		seq := uint64(0)
		for line := range strings.Lines(files["script"]) {
			line = strings.TrimSpace(line)
			if line == "" {
				continue
			}
			fmt.Fprintf(&out, "%s\n", line)
			var sink choreography.RecordingSink
			s.SetSink(&sink)
			verb, rest, _ := strings.Cut(line, " ")
			switch verb {
			case "signal":
				seq++
				s.Signal(seq, scriptSignal(t, rest))
			case "advance":
				d, err := time.ParseDuration(rest)
				require.NoError(t, err)
				s.Advance(s.Now() + d)
			case "performances":
				for _, l := range view(s) {
					fmt.Fprintf(&out, "\t%s\n", l)
				}
			case "restore":
				s = restored(t, s)
				s.Observe(on, on)
			case "define":
				more, diagnostics := language.Parse(rest, []byte(files[rest]))
				require.NoError(t, diagnostics.Err(definition.ErrInvalid))
				for _, d := range more {
					require.NoError(t, s.Define(d))
				}
			case "stage":
				name, text, _ := strings.Cut(rest, " ")
				v, err := signal.ParseValue([]byte(text))
				require.NoError(t, err)
				on.properties[name] = v
			default:
				t.Fatalf("what is %q?", line)
			}
			for _, c := range sink.Commands {
				fmt.Fprintf(&out, "\t%s\n", spell(t, c))
			}
		}
		return out.String()
	})
}

func scriptSignal(t *testing.T, s string) *signal.Signal {
	t.Helper()
	typ, rest, _ := strings.Cut(s, " ")
	sig := &signal.Signal{Type: typ}
	if id, ok := strings.CutPrefix(rest, "id="); ok {
		id, rest, _ = strings.Cut(id, " ")
		sig.CorrelationID = &id
	}
	var err error
	if sig.Payload, err = signal.ParseValue([]byte(rest)); err != nil {
		t.Fatalf("payload %s: %v", rest, err)
	}
	return sig
}

// spell writes one command as a person would note it.
func spell(t *testing.T, c choreography.Command) string {
	t.Helper()
	head := fmt.Sprintf("%-8v %s %s", c.At, c.PerformanceID, c.Kind)
	if c.Kind == choreography.CommandInterrupt {
		return fmt.Sprintf("%s of %q by %s", head, c.CorrelationID, c.InterruptedBy)
	}
	params, err := json.Marshal(c.Params)
	require.NoError(t, err)
	head = fmt.Sprintf("%s %s %q %s", head, c.Action, c.EntityRef, params)
	switch c.Kind {
	case choreography.CommandStart:
		head += fmt.Sprintf(" %gms %s", c.Duration, c.Easing)
	case choreography.CommandUpdate:
		head += fmt.Sprintf(" %.6g after %v", c.Progress, c.Elapsed)
	default:
	}
	return head
}

// TestDiagnostics parses the definitions in testdata/diagnostics and compares
// what an author is told.
func TestDiagnostics(t *testing.T) {
	golden.Tell(t, "testdata/diagnostics/*.txtar", func(t *testing.T, files map[string]string) string {
		definitions, diagnostics := language.Parse("definitions.json", []byte(files["definitions.json"]))
		if refused := diagnostics.Refused(); refused != (definitions == nil) {
			t.Errorf("refused = %v with %d definitions", refused, len(definitions))
		}
		if len(diagnostics) == 0 {
			return "nothing\n"
		}
		return diagnostics.String() + "\n"
	})
}
