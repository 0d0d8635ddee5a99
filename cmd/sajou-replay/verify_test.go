package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/msgptest"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// beneath changes the store without the log.
func beneath(t *testing.T, store string, change func(b *pebble.Batch) error) {
	t.Helper()
	db, err := pebble.Open(store, &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}})
	require.NoError(t, err)
	b := db.NewBatch()
	require.NoError(t, change(b))
	require.NoError(t, b.Commit(pebble.Sync))
	require.NoError(t, db.Close())
}

// recordKeys records a signal in session "a" with each key.
func recordKeys(t *testing.T, store string, keys ...string) {
	t.Helper()
	eng, err := sajou.Open(store, sajou.Config{})
	require.NoError(t, err)
	ses, err := eng.Session(t.Context(), "a")
	require.NoError(t, err)
	for _, key := range keys {
		sig, err := signal.Parse([]byte(strings.TrimSpace(signalLines(1))))
		require.NoError(t, err)
		if _, err := ses.Record(t.Context(), sajou.Addition{Signals: []*signal.Signal{sig}, Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, eng.Close())
}

// Verify names a missing and an invented record of an idempotency key, with entry and
// key, and rebuilds them on request.
func TestVerifyKeys(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	recordKeys(t, store, "one", "two")
	ask := func(args ...string) result {
		return sajouReplay(t.Context(), t, strings.NewReader(""), append([]string{"-C", store}, args...)...)
	}
	if r := ask("verify"); r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.stdout)
	}
	key := func(k string) []byte { return append([]byte{'k', 0, 0, 0, 1}, k...) }
	beneath(t, store, func(b *pebble.Batch) error {
		if err := b.Delete(key("two"), nil); err != nil {
			return err
		}
		return b.Set(key("new\x1b"), make([]byte, 48), nil)
	})
	for _, args := range [][]string{{"verify"}, {"verify", "a"}, {"verify", "--all"}} {
		r := ask(args...)
		if r.code != 1 || !strings.Contains(r.stdout, `BROKEN at entry 3, key "two": missing record`) ||
			!strings.Contains(r.stdout, `key "new\x1b": invented record`) || !strings.Contains(r.stdout, "verify -s a --rebuild-keys") {
			t.Errorf("%v: exit %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	r := ask("verify", "-o", "json")
	var views []answer.VerifiedView
	if err := json.Unmarshal([]byte(r.stdout), &views); err != nil || r.code != 1 || len(views) != 1 || views[0].Verified || views[0].Fault != nil || views[0].KeyFaults != 2 || views[0].Keys[0].Seq != 3 {
		t.Errorf("verify -o json: exit %d, %v\n%s", r.code, err, r.stdout)
	}
	if r := ask("verify", "--rebuild-keys"); r.code != 0 || !strings.Contains(r.stdout, "rebuilt 2 idempotency records") {
		t.Errorf("rebuild: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := ask("verify", "--all"); r.code != 0 {
		t.Errorf("rebuilt: exit %d\n%s", r.code, r.stdout)
	}
	recordKeys(t, store, "two", "new\x1b") // the first is a repeat
	if r := ask("verify"); r.code != 0 || !strings.Contains(r.stdout, "verified, 4 entries") {
		t.Errorf("recorded again: exit %d\n%s", r.code, r.stdout)
	}
	missing := filepath.Join(t.TempDir(), "none")
	if r := sajouReplay(t.Context(), t, strings.NewReader(""), "-C", missing, "verify", "--rebuild-keys"); r.code != 4 {
		t.Errorf("no store: exit %d, %s", r.code, r.stderr)
	}
}

// A head of entry 0, which every session contains, is refused.
func TestVerifyHeadZero(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 2)
	for _, hash := range []string{strings.Repeat("0", 64), eventlog.Genesis("a").String(), eventlog.Genesis("b").String()} {
		r := sajouReplay(t.Context(), t, strings.NewReader(""), "-C", store, "verify", "a", "--head", "0:"+hash)
		if r.code != 2 || r.stdout != "" || !strings.Contains(r.stderr, "entry 0") {
			t.Errorf("0:%s: exit %d\n%s%s", hash, r.code, r.stdout, r.stderr)
		}
	}
	for _, head := range []string{"4:" + strings.Repeat("0", 64), "3:" + eventlog.Genesis("a").String(), "18446744073709551615:" + strings.Repeat("f", 64)} {
		if r := sajouReplay(t.Context(), t, strings.NewReader(""), "-C", store, "verify", "a", "--head", head); r.code != 1 || !strings.Contains(r.stdout, "BROKEN") {
			t.Errorf("%s: exit %d\n%s%s", head, r.code, r.stdout, r.stderr)
		}
	}
}

// A bad session record does not hide the other sessions: ls lists them and names the
// bad one, and commands about them still work.
func TestBadSessionRecords(t *testing.T) {
	for name, change := range map[string]func(b *pebble.Batch) error{
		"bad session record":    func(b *pebble.Batch) error { return b.Set([]byte("sbad"), []byte("x"), nil) },
		`\xff\x1b`:              func(b *pebble.Batch) error { return b.Set([]byte("s\xff\x1b"), []byte{0, 0, 0, 9}, nil) },
		"session without":       func(b *pebble.Batch) error { return b.Set([]byte("sbad"), []byte{0, 0, 0, 9}, nil) },
		"shared session number": func(b *pebble.Batch) error { return b.Set([]byte("sbad"), []byte{0, 0, 0, 1}, nil) },
		"orphaned entries": func(b *pebble.Batch) error {
			return b.Set(binary.BigEndian.AppendUint64([]byte{'e', 0, 0, 0, 7}, 1), []byte("x"), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := filepath.Join(t.TempDir(), "store")
			importLines(t, store, 2)
			beneath(t, store, change)
			ask := func(args ...string) result {
				return sajouReplay(t.Context(), t, strings.NewReader(""), append([]string{"-C", store}, args...)...)
			}
			if r := ask("ls"); r.code != 3 || !strings.Contains(r.stdout, "a               3 entries") || !strings.Contains(r.stdout, name) || strings.Contains(r.stdout, "\x1b") || strings.Contains(r.stdout, "bad  ") {
				t.Errorf("ls: exit %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if r := ask("ls", "-o", "json"); !json.Valid([]byte(r.stdout)) {
				t.Errorf("ls -o json: no JSON:\n%s", r.stdout)
			}
			if r := ask("verify", "--all"); r.code != 1 || !strings.Contains(r.stdout, "a: verified, 3 entries") || !strings.Contains(r.stdout, "BROKEN") {
				t.Errorf("verify --all: exit %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if r := ask("verify", "a"); (r.code != 0) != (name == "shared session number") {
				t.Errorf("verify a: exit %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if r := ask("cat", "-s", "a"); r.code != 0 {
				t.Errorf("cat: exit %d\n%s", r.code, r.stderr)
			}
			r := sajouReplay(t.Context(), t, strings.NewReader(signalLines(2)), "-C", store, "import", "-", "-s", "new")
			if r.code != 0 {
				t.Errorf("import: exit %d\n%s", r.code, r.stderr)
			}
			if r := ask("verify", "new"); r.code != 0 {
				t.Errorf("verify new: exit %d\n%s", r.code, r.stdout)
			}
		})
	}
}

// forgeSnapshots replaces every snapshot of session "a" with a valid one of a state
// that the session never had. It returns their number.
func forgeSnapshots(t *testing.T, store string) int {
	t.Helper()
	s, err := snapshot.Open(filepath.Join(store, sajou.SnapshotFile), snapshot.Config{})
	require.NoError(t, err)
	list, err := s.List("a")
	require.NoError(t, err)
	for _, info := range list {
		img, err := s.Get("a", info.Seq)
		require.NoError(t, err)
		if img.Parts[0].Name != session.ProjectionSession {
			t.Fatal(img.Parts[0].Name)
		}
		img.Parts[0].Data = msgptest.Set(img.Parts[0].Data, msgp.AppendUint64(nil, 123_456), 5) // the number of signals
		require.NoError(t, s.Put("a", img))
	}
	require.NoError(t, s.Close())
	return len(list)
}

// With --no-snapshots no command shows the state of a forged snapshot, and snapshot
// verify names it.
func TestNoSnapshots(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 1100)
	ask := func(args ...string) result {
		return sajouReplay(t.Context(), t, strings.NewReader(""), append([]string{"-C", store}, args...)...)
	}
	if r := ask("snapshot", "build"); r.code != 0 {
		t.Fatalf("build: exit %d, %s", r.code, r.stderr)
	}
	if r := ask("snapshot", "verify"); r.code != 0 || !strings.Contains(r.stdout, " verified\n") {
		t.Errorf("verify: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	commands := [][]string{
		{"state", "end"},
		{"state", "1050"},
		{"info", "-o", "json"},
		{"diff", "5", "end"},
		{"state", "end", "-o", "json"},
		{"bisect", "--where", "state.session.entries.signal > 100000"},
		{"scan", "--where", "state.session.entries.signal > 100000", "1060.."},
		{"render", "end", "-o", "json"},
		{"show", "1090"},
		{"cat", "1090..", "--where", "state.session.entries.signal > 100000"},
		{"state", "t:1.05s"},
		{"play", "1090..1095", "--rate", "0"},
		{"report", "-o", "json"},
	}
	before := map[string]result{}
	for _, args := range commands {
		before[fmt.Sprint(args)] = ask(args...)
	}
	snapshots := forgeSnapshots(t, store)
	forged := 0
	for _, args := range commands {
		want := before[fmt.Sprint(args)]
		if r := ask(args...); r != want {
			forged++
		}
		r := ask(append(args, "--no-snapshots")...)
		if args[0] == "info" { // tells of the snapshots themselves
			r.stdout = strings.ReplaceAll(r.stdout, `"snapshots": 0`, fmt.Sprintf(`"snapshots": %d`, snapshots))
		}
		if r != want {
			t.Errorf("%v --no-snapshots: exit %d, want %d\n%s\nwant\n%s%s", args, r.code, want.code, r.stdout, want.stdout, r.stderr)
		}
	}
	if forged < 4 {
		t.Errorf("the forged snapshot shows in %d commands: is it used at all?", forged)
	}
	if r := ask("snapshot", "verify"); r.code != 1 || !strings.Contains(r.stdout, `snapshot at entry 1000 BROKEN: its projection "session"`) {
		t.Errorf("verify: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, args := range [][]string{{"snapshot", "ls"}, {"snapshot", "verify"}, {"snapshot", "build"}, {"snapshot", "drop"}} {
		if r := ask(append(args, "--no-snapshots")...); r.code != 2 {
			t.Errorf("%v --no-snapshots: exit %d", args, r.code)
		}
	}
	if r := ask("snapshot", "drop"); r.code != 0 {
		t.Errorf("drop: exit %d, %s", r.code, r.stderr)
	}
	if r := ask("snapshot", "verify"); r.code != 0 || !strings.Contains(r.stdout, "0 snapshots verified") {
		t.Errorf("verify: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
