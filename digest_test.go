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
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// Every machine has these digests: of each state at each entry and between
// two, of the frames there, and of the commands with their updates. The file is
// compared as it is on whatever the test is run on; .ci/arch runs it for arm64
// too. It changes with each change of a state's bytes or rules, which is to
// come with a new version of the projection.
func TestDigestsAreEverywhereTheSame(t *testing.T) {
	ctx := t.Context()
	eng, ses := enginetest.Begin(t, "store", sajou.Config{FS: vfs.NewMem()})
	defer func() { _ = eng.Close() }()
	ms := int64(0)
	for i, s := range enginetest.DigestStory {
		ms += s.Wait
		if _, err := ses.Record(ctx, s.Record(t, i, ms)); err != nil {
			t.Fatal(err)
		}
	}
	travel, err := eng.Replay("a")
	require.NoError(t, err)
	var b strings.Builder
	last := travel.Head().Seq
	for seq := range last + 1 {
		for _, offset := range []time.Duration{0, 77 * time.Millisecond, 234567 * time.Microsecond} {
			m := replay.Moment{Seq: seq, Offset: offset}
			f, err := travel.At(ctx, m)
			if err != nil {
				continue // the next entry comes before
			}
			frame, err := json.Marshal(session.StageOf(f).Frame())
			require.NoError(t, err)
			fmt.Fprintf(&b, "%v %v frame %016x\n", m, f.Digests(), xxhash.Sum64(frame))
		}
	}
	var sink choreography.RecordingSink
	end := replay.Moment{Seq: last, Offset: 10 * time.Second}
	require.NoError(t, travel.Commands(ctx, replay.Moment{}, end, 7*time.Millisecond, &sink))
	commands, err := json.Marshal(sink.Commands)
	require.NoError(t, err)
	fmt.Fprintf(&b, "%d commands %016x\n", len(sink.Commands), xxhash.Sum64(commands))

	golden := filepath.Join("testdata", "digests.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("digests (-want +got):\n%s", diff)
	}
}
