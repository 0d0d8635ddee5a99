package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cutBatch cuts the batch of a session that holds an entry in half, beneath the log.
func cutBatch(t *testing.T, store, session string, at uint64) {
	t.Helper()
	db, err := pebble.Open(store, &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}})
	require.NoError(t, err)
	value, closer, err := db.Get([]byte("s" + session))
	require.NoError(t, err)
	number := binary.BigEndian.Uint32(value)
	require.NoError(t, closer.Close())
	bound := func(seq uint64) []byte {
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32([]byte("e"), number), seq)
	}
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: bound(0), UpperBound: bound(at + 1)})
	require.NoError(t, err)
	require.True(t, it.Last())
	key, batch := bytes.Clone(it.Key()), bytes.Clone(it.Value())
	require.NoError(t, it.Close())
	require.NoError(t, db.Set(key, batch[:len(batch)/2], pebble.Sync))
	require.NoError(t, db.Close())
}

// Searches of a recording that is damaged in the middle go on in front of the damage and
// behind it, as far as its entries, and for states its snapshots, can be read. They say what
// they did not see, with exit code 3, unless that does not matter for the answer.
func TestGap(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	define := filepath.Join(dir, "yard.json")
	require.NoError(t, os.WriteFile(define, []byte(`[
		{"on": "begin", "steps": [{"action": "spawn", "entity": "peon", "at": {"x": 1, "y": 1}}]},
		{"on": "broken", "steps": [{"action": "setAnimation", "entity": "peon", "state": "error"}]},
		{"on": "mended", "steps": [{"action": "setAnimation", "entity": "peon", "state": "idle"}]}]`), 0o600))
	versions := filepath.Join(dir, "versions")
	require.NoError(t, os.Mkdir(versions, 0o700))
	for i, x := range []int{1, 7} {
		text := fmt.Sprintf(`[{"on": "begin", "steps": [{"action": "spawn", "entity": "peon", "at": {"x": %d, "y": 1}}]}]`, x)
		require.NoError(t, os.WriteFile(filepath.Join(versions, fmt.Sprintf("v%d.json", i+1)), []byte(text), 0o600))
	}
	// Two batches, of which each event has one: entry 5 is the first signal.
	types := map[int]string{0: "begin", 100: "broken", 110: "mended", 500: "broken", 510: "mended", 1800: "broken", 2590: "broken"}
	for first := 0; first < 2600; first += 650 {
		var lines strings.Builder
		for n := first; n < first+650; n++ {
			kind := types[n]
			if kind == "" {
				kind = "work"
			}
			fmt.Fprintf(&lines, `{"id":"%d","type":"%s","timestamp":%d,"source":"t","payload":{}}`+"\n", n, kind, 10*(n+1))
		}
		args := []string{"-C", store, "import", "-", "-s", "torn", "--define", define}
		if first > 0 {
			args = append(args[:6], "--append")
		}
		r := sajouReplay(t.Context(), t, strings.NewReader(lines.String()), args...)
		require.Zero(t, r.code, r.stderr)
	}
	require.Zero(t, sajouReplay(t.Context(), t, nil, "-C", store, "snapshot", "build").code)
	cutBatch(t, store, "torn", 400)

	const broken, wrong = `entry.type == "broken"`, `state.stage.entities.peon.state == "error"`
	for _, c := range []struct {
		args   string
		code   int
		stdout []string // the beginnings of its lines, nil for any
		stderr string   // what it contains
	}{
		{"scan|--where|" + broken, 3, []string{"105", "1805", "2595"}, "were not searched"},
		{"scan|--count|--where|" + broken, 3, []string{"3"}, "were not searched"},
		{"scan|--where|false", 3, []string{}, "were not searched"},
		{"scan|--first|--where|" + broken, 0, []string{"105"}, ""},
		{"scan|--last|--where|" + broken, 0, []string{"2595"}, ""},
		{"scan|--last|--where|" + broken + ` && seq < uint(1000)`, 3, []string{"105"}, "were not searched"},
		{"scan|1..200|--where|" + broken, 0, []string{"105"}, ""},
		{"scan|2000..end|--where|" + broken, 0, []string{"2595"}, ""},
		{"scan|--first|--where|" + wrong, 0, []string{"105"}, ""},
		{"scan|--last|--where|" + wrong, 0, []string{"2604"}, ""},
		{"scan|--changes|--where|" + wrong, 3, nil, "were not searched"},
		{"scan|--moments|--where|" + wrong, 3, []string{"from 105 until 115", "from 1805 on, still at 2604"}, "were not searched"},
		{"scan|--moments|--first|--where|" + wrong, 0, []string{"from 105 until 115"}, ""},
		{"scan|--moments|--last|--where|" + wrong, 0, []string{"from 1805 on, still at 2604"}, ""},
		{"bisect|--where|" + wrong, 3, []string{}, "; search in front of the gap with --bad "},
		{"bisect|--where|" + wrong, 3, []string{}, ", or behind it with --good 1001; "},
		{"bisect|--bad|107|--where|" + wrong, 0, nil, ""},
		{"bisect|--good|1001|--find|all|--where|" + wrong, 0, nil, ""},
		{"bisect|--|true", 3, []string{}, "were not searched"},
		{"bisect|start|--where|" + wrong, 1, []string{}, "sajou-replay verify -s torn"},
		{"bisect|start|--good|1001|--where|" + wrong, 1, []string{}, "sajou-replay verify -s torn"},
		{"bisect|start|--good|101|--bad|107|--where|" + wrong, 0, nil, ""},
		{"bisect|run", 0, nil, "105  "},
		{"bisect|next", 0, []string{"105 is the first bad entry", "the entry itself makes the state bad", "conclusive: all"}, ""},
		{"bisect|reset", 0, nil, ""},
		{"bisect|--over|defs|" + versions + "|--changed|stage.entities.peon.x|--at|200", 1, []string{}, "sajou-replay verify -s torn"},
		{"bisect|--over|defs|" + versions + "|--changed|stage.entities.peon.x|--at|700", 1, []string{}, "sajou-replay verify -s torn"},
		{"bisect|--over|defs|" + versions + "|--changed|stage.entities.peon.x|--at|end", 1, []string{}, "sajou-replay verify -s torn"},
		{"state|2100|stage.entities.peon.state", 0, []string{"error"}, ""},
		{"state|700|stage", 3, []string{}, "it is known up to "},
		{"state|700|stage", 3, []string{}, ", and from 1000 on, where a snapshot has it: "},
		{"state|1000|stage.entities.peon.state", 0, []string{"idle"}, ""},
		{"state|2100|workspace", 3, []string{}, "so the state at 2100 is not known; it is known up to "},
		{"state|100|workspace", 0, []string{}, ""},
		{"cat|--type|broken", 3, []string{"105", "1805", "2595"}, "were not listed"},
		{"cat|1..107|--kind|signal|--type|broken", 0, []string{"105"}, ""},
		{"cat|2000..end|--type|broken", 0, []string{"2595"}, ""},
		{"cat|--where|" + wrong + " && " + broken, 3, nil, "were not listed"},
		{"check|2100|--where|" + wrong, 1, nil, ""},
		{"check|700|--where|" + wrong, 128, []string{}, "sajou-replay verify -s torn"},
	} {
		t.Run(c.args, func(t *testing.T) {
			r := sajouReplay(t.Context(), t, nil, append([]string{"-C", store}, strings.Split(c.args, "|")...)...)
			require.Equal(t, c.code, r.code, "%s%s", r.stdout, r.stderr)
			assert.Contains(t, r.stderr, c.stderr)
			if c.code == 3 && !strings.HasPrefix(c.args, "state|") {
				assert.Contains(t, r.stderr, "the recording is damaged; the entries ")
				assert.Contains(t, r.stderr, "locate the damage with: sajou-replay verify -s torn\n")
			}
			if c.stdout == nil {
				return
			}
			lines := strings.Split(strings.TrimRight(r.stdout, "\n"), "\n")
			if r.stdout == "" {
				lines = nil
			}
			require.Len(t, lines, len(c.stdout), "%s", r.stdout)
			for i := range lines {
				assert.True(t, strings.HasPrefix(strings.TrimSpace(lines[i]), c.stdout[i]), "%s", lines[i])
			}
		})
	}
}
