package sajou_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
)

// repeated is a choreography of so many steps, in few bytes.
func repeated(id string, times int) string {
	return fmt.Sprintf(`choreography {"id":%q,"on":"task_dispatch","steps":[{"action":"repeat","times":%d,"steps":[{"action":"wait","duration":1000}]}]}`, id, times)
}

func refusedBy(t *testing.T, f *projection.Fold) uint64 {
	t.Helper()
	p, ok := f.State(session.ProjectionPerformances).(interface {
		Scheduler() *choreography.Scheduler
	})
	if !ok {
		t.Fatal("the performances have no scheduler")
	}
	n, _ := p.Scheduler().Refused()
	return n
}

// One budget holds across all records of a session. What exceeds it is no entry,
// also if it would only replace what is performed still.
func TestSessionBudget(t *testing.T) {
	ctx := context.Background()
	eng, ses := enginetest.Begin(t, t.TempDir(), sajou.Config{})
	defer func() { _ = eng.Close() }()
	define := func(texts ...string) error {
		_, err := ses.Define(ctx, enginetest.Unjudged(t, texts...)...)
		return err
	}
	refused := func(what string, texts ...string) {
		t.Helper()
		before := ses.Head()
		if err := define(texts...); !errors.Is(err, definition.ErrBudget) {
			t.Fatalf("%s: %v, want ErrBudget", what, err)
		}
		if ses.Head() != before {
			t.Fatalf("%s: the head is %v, want %v", what, ses.Head(), before)
		}
	}
	require.NoError(t, define(repeated("a", 50_000)))
	refused("the second", repeated("b", 60_000))
	refused("two in one record", repeated("b", 30_000), repeated("c", 30_000))
	require.NoError(t, define(repeated("a", 60_000)), "in the place of the first")
	if _, err := ses.Signal(ctx, enginetest.TaskSignal(1, 0)); err != nil {
		t.Fatal(err)
	}
	refused("in the place of what is performed", repeated("a", 59_000))
	require.NoError(t, define(repeated("a", 40_000)), "beside what is performed")
	refused("the third beside it", repeated("d", 1))
	sameReplayed(t, eng, ses)
}

// A log of another program that exceeds the budget opens, folds the same way each
// time, and says so.
func TestLogOverBudget(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	log, err := eventlog.Open(dir, eventlog.Config{})
	require.NoError(t, err)
	raw, err := log.Session("a")
	require.NoError(t, err)
	entry := func(kind eventlog.Kind, word, text string) eventlog.Draft {
		data := msgp.AppendString(msgp.AppendArrayHeader(nil, 2), word)
		return eventlog.Draft{Kind: kind, Data: append(data, enginetest.Value(t, text)...)}
	}
	batch := eventlog.Batch{Drafts: []eventlog.Draft{entry(eventlog.KindSession, "opened", `{"time":"wall"}`)}}
	for i := range 10 {
		_, text, _ := strings.Cut(repeated(fmt.Sprint("c", i), 60_000), " ")
		batch.Drafts = append(batch.Drafts, entry(eventlog.KindDefine, "choreography", text))
	}
	// What has too many steps as it is written counts as well.
	batch.Drafts = append(batch.Drafts, entry(eventlog.KindDefine, "choreography",
		`{"on":"x","steps":[`+strings.Repeat(`{"action":"a"},`, definition.MaxSteps)+`{"action":"a"}]}`))
	for _, d := range batch.Drafts {
		if _, err := raw.Append(ctx, eventlog.Batch{Drafts: []eventlog.Draft{d}}); err != nil && len(d.Data) < 1<<20 {
			t.Fatal(err)
		}
	}
	head := raw.Head()
	require.NoError(t, log.Close())
	kept := uint64(head.Seq) - 2 // all definitions but the first
	for _, every := range []int{1, -1} {
		var notes bytes.Buffer
		eng, ses := enginetest.Begin(t, dir, sajou.Config{SnapshotEvery: every, Logger: slog.New(slog.NewTextHandler(&notes, nil))})
		if ses.Head() != head && every == 1 {
			t.Errorf("head %v, want %v", ses.Head(), head)
		}
		f, err := ses.State(ctx)
		require.NoError(t, err)
		if n := refusedBy(t, f); n != kept {
			t.Errorf("%d definitions refused, want %d", n, kept)
		}
		if want := fmt.Sprintf("declarations_not_in_force=%d", kept); !strings.Contains(notes.String(), want) {
			t.Errorf("logged %q, want %q", notes.String(), want)
		}
		if _, err := ses.Signal(ctx, enginetest.TaskSignal(1, 0)); err != nil {
			t.Fatal(err)
		}
		sameReplayed(t, eng, ses)
		require.NoError(t, eng.Close())
	}
}
