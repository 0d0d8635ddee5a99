package sajou_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/replay"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// digestStory is a fixed session: what happens, and how long after what came
// before.
var digestStory = []step{
	{"thinking", 0, 0},
	{"tool_call", 200, 0},
	{"scene", 0, 0},
	{"choreographies", 0, 0},
	{"task_dispatch", 333, 0},
	{"tool_call", 40, 1},
	{"user.wave", 0, 0},
	{"thinking", 0, 0},
	{"task_dispatch", 333, 2},
	{"error", 150, 0},
	{"tool_call", 700, 1},
	{"error", 1, 1},
	{"user.wave", 5000, 1},
	{"task_dispatch", 40, 1},
	{"thinking", 40, 2},
}

// Every machine has these digests: of each state at each entry and between
// two, of the frames there, and of the commands with their updates. The file is
// compared as it is on whatever the test is run on; .ci/arch runs it for arm64
// too. It changes with each change of a state's bytes or rules, which is to
// come with a new version of the projection.
func TestDigestsAreEverywhereTheSame(t *testing.T) {
	ctx := t.Context()
	eng, ses := begin(t, "store", sajou.Config{FS: vfs.NewMem()})
	defer func() { _ = eng.Close() }()
	ms := int64(0)
	for i, s := range digestStory {
		ms += s.wait
		if _, err := ses.Record(ctx, s.record(t, i, ms)); err != nil {
			t.Fatal(err)
		}
	}
	travel, err := eng.Replay("a").Open()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	last := travel.Head().Seq
	for seq := range last + 1 {
		for _, offset := range []time.Duration{0, 77 * time.Millisecond, 234567 * time.Microsecond} {
			m := replay.Moment{Seq: seq, Offset: offset}
			f, err := travel.At(ctx, m)
			if err != nil {
				continue // the next entry comes before
			}
			frame, err := json.Marshal(sajou.FrameOf(f))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%v %v frame %016x\n", m, f.Digests(), xxhash.Sum64(frame))
		}
	}
	var sink choreography.RecordingSink
	end := replay.Moment{Seq: last, Offset: 10 * time.Second}
	if err := travel.Commands(ctx, replay.Moment{}, end, 7*time.Millisecond, &sink); err != nil {
		t.Fatal(err)
	}
	commands, err := json.Marshal(sink.Commands)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "%d commands %016x\n", len(sink.Commands), xxhash.Sum64(commands))

	golden := filepath.Join("testdata", "digests.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("digests (-want +got):\n%s", diff)
	}
}
