package simulate_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/simulate"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// examples returns the text of each example there is, by its file.
func examples(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../docs/examples/agents/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	texts := map[string]string{"examples/conversation.json": string(simulate.Example())}
	for _, file := range files {
		texts[file] = read(t, file)
	}
	return texts
}

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

func parse(t testing.TB, file, text string) *simulate.Simulation {
	t.Helper()
	s, diagnostics := simulate.Parse(file, []byte(text))
	if s == nil {
		t.Fatalf("%v\n%s", diagnostics, text)
	}
	return s
}

func ignore(*simulate.Event) error { return nil }

// play plays a scenario, which must come to an end, and returns its account too.
func play(t testing.TB, s *simulate.Simulation) (*simulate.Recording, string) {
	t.Helper()
	var account strings.Builder
	take, err := s.Play(t.Context(), "", func(e *simulate.Event) error {
		account.WriteString(e.At.String() + " " + e.Who() + " " + e.String() + "\n")
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, account.String())
	}
	t.Cleanup(func() {
		if err := take.Close(); err != nil {
			t.Error(err)
		}
	})
	return take, account.String()
}

// Every example comes out as it expects, twice to the same head with the same
// account, and is the same session when it is recorded.
func TestExamples(t *testing.T) {
	for file, text := range examples(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := parse(t, file, text)
			if s.Expectations() == 0 {
				t.Error("nothing is expected")
			}
			take, account := play(t, s)
			again, sameAccount := play(t, s)
			for _, failure := range take.Failures {
				t.Errorf("%s:%v", file, failure)
			}
			if take.Head != again.Head || account != sameAccount {
				t.Errorf("played again it stands at %v, not %v:\n%s\n%s", again.Head, take.Head, account, sameAccount)
			}
			record(t, take)
		})
	}
}

// record puts a take into a store twice, and reads it back.
func record(t *testing.T, take *simulate.Recording) {
	t.Helper()
	engine := open(t, "store", sajou.Config{FS: vfs.NewMem()})
	for _, want := range []bool{true, false} {
		if recorded, err := take.Record(t.Context(), engine); err != nil || recorded != want {
			t.Fatalf("recorded: %t, %v, want %t", recorded, err, want)
		}
	}
	report, err := engine.Log().Verify(t.Context(), take.Name, verify.Options{})
	if err != nil || report.Fault != nil || report.Head != take.Head {
		t.Errorf("recorded as %v, fault %v, %v, played as %v", report.Head, report.Fault, err, take.Head)
	}
}

func open(t testing.TB, dir string, cfg sajou.Config) *sajou.Engine {
	t.Helper()
	engine, err := sajou.Open(dir, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// The state of each example is the same during the play, folded from the first
// entry, and folded from its snapshots.
func TestReplays(t *testing.T) {
	for file, text := range examples(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := parse(t, file, text)
			dir := t.TempDir()
			// Played in a session of its own, as a program would.
			engine, err := sajou.Open(dir, sajou.Config{SnapshotEvery: 3})
			require.NoError(t, err)
			ses, err := engine.Begin(t.Context(), s.Name, session.TimeManual)
			require.NoError(t, err)
			require.NoError(t, simulate.PlayIn(t.Context(), s, ses, ignore))
			live, err := ses.State(t.Context())
			require.NoError(t, err)
			require.NoError(t, engine.Close())
			take, _ := play(t, s)
			if take.Head != live.Head() {
				t.Errorf("on a disk it stands at %v, in memory at %v", live.Head(), take.Head)
			}
			for _, from := range []string{"snapshots", "the first entry"} {
				if from != "snapshots" {
					require.NoError(t, os.Remove(filepath.Join(dir, sajou.SnapshotFile)))
				}
				reopened, err := sajou.Open(dir, sajou.Config{ReadOnly: true})
				require.NoError(t, err)
				if has := reopened.Snapshots() != nil; has != (from == "snapshots") {
					t.Fatalf("snapshots: %t", has)
				}
				travel, err := reopened.Replay(s.Name)
				require.NoError(t, err)
				f, err := travel.At(t.Context(), replay.Moment{Seq: live.Head().Seq})
				require.NoError(t, err)
				if diff := cmp.Diff(live.Digests(), f.Digests()); diff != "" {
					t.Errorf("from %s (-live +replayed):\n%s", from, diff)
				}
				require.NoError(t, reopened.Close())
			}
		})
	}
}
