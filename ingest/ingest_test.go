package ingest_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/session"
)

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, `{"id":"s%d","type":"note","timestamp":%d,"source":"t","payload":{}}`+"\n", i, 1000+i)
	}
	return b.String()
}

func open(t *testing.T) (*sajou.Session, *eventlog.SessionReader) {
	t.Helper()
	engine, err := sajou.Open(filepath.Join(t.TempDir(), "store"), sajou.Config{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, engine.Close())
	})
	session, err := engine.Session(t.Context(), "a")
	require.NoError(t, err)
	log, err := engine.Log().Session("a")
	require.NoError(t, err)
	return session, log
}

func record(t *testing.T, session *sajou.Session, cfg ingest.Config, text string) (ingest.Tally, error) {
	t.Helper()
	r, err := ingest.NewRecorder(t.Context(), session, cfg)
	if err != nil {
		return ingest.Tally{}, err
	}
	defer r.Close()
	err = r.All(t.Context(), ingest.JSONL(strings.NewReader(text), "f", cfg.Lenient))
	return r.Tally(), err
}

// An ingestion that ended early and was resumed gives the head of one that ran
// through; progress counts what is durable.
func TestResume(t *testing.T) {
	const all = 2500 // three batches
	whole, _ := open(t)
	var progress []int
	want, err := record(t, whole, ingest.Config{Progress: func(n int) { progress = append(progress, n) }}, lines(0, all))
	if err != nil || want.Signals != all || fmt.Sprint(progress) != "[1000 2000 2500]" {
		t.Fatalf("%+v, progress %v, %v", want, progress, err)
	}
	session, log := open(t)
	if got, err := record(t, session, ingest.Config{}, lines(0, 1300)+"{\n"); !isPlace(err, 1301) || got.Signals != 1300 {
		t.Fatalf("with a bad line 1301: %+v, %v", got, err)
	}
	got, err := record(t, session, ingest.Config{Resume: log}, lines(0, all))
	if err != nil || got.Head != want.Head || got.Skipped != 1300 || got.Signals != all-1300 {
		t.Errorf("resumed: %+v, %v, want the head %v", got, err, want.Head)
	}
	if after, err := ingest.TallyOf(t.Context(), log, eventlog.Head{}); err != nil || after.Signals != all || after.Head != want.Head {
		t.Errorf("the log has %+v, %v", after, err)
	}
}

func isPlace(err error, line int) bool {
	at, ok := errors.AsType[*recording.PlaceError](err)
	return ok && at.File == "f" && at.Line == line
}

// A session that has other signals, or more, is refused and stays as it is.
func TestMismatch(t *testing.T) {
	session, log := open(t)
	before, err := record(t, session, ingest.Config{}, lines(0, 10))
	require.NoError(t, err)
	for name, text := range map[string]string{"other signals": lines(0, 5) + lines(6, 20), "fewer signals": lines(0, 9)} {
		got, err := record(t, session, ingest.Config{Resume: log}, text)
		if _, ok := errors.AsType[*ingest.MismatchError](err); !ok || got.Head != before.Head {
			t.Errorf("%s: head %v, %v, want a MismatchError and the head %v", name, got.Head, err, before.Head)
		}
	}
}

// A signal that the session's time cannot take is refused with its place; the
// signals before it are recorded.
func TestRefusedSignal(t *testing.T) {
	ses, _ := open(t)
	got, err := record(t, ses, ingest.Config{}, lines(5, 8)+`{"id":"late","type":"note","timestamp":99999999999999999,"source":"t","payload":{}}`+"\n"+lines(9, 12))
	if !isPlace(err, 4) || !errors.Is(err, session.ErrTime) || got.Signals != 3 {
		t.Errorf("%+v, %v, want 3 signals and an error in line 4", got, err)
	}
}

// A recording may have any time, and a jump ahead shows in the count of the signals
// behind it, also where the counts are read back.
func TestOutOfOrder(t *testing.T) {
	ses, log := open(t)
	jump := fmt.Sprintf(`{"id":"far","type":"note","timestamp":%d,"source":"t","payload":{}}`+"\n", int64(5_000_000_000_000))
	got, err := record(t, ses, ingest.Config{}, lines(0, 2)+lines(1, 2)+lines(0, 1)+jump+lines(4, 1010))
	if err != nil || got.OutOfOrder != 1+1006 || got.Signals != 1011 {
		t.Errorf("%+v, %v", got, err)
	}
	if after, err := ingest.TallyOf(t.Context(), log, eventlog.Head{}); err != nil || after.OutOfOrder != got.OutOfOrder {
		t.Errorf("the log has %+v, %v", after, err)
	}
	if after, err := ingest.TallyOf(t.Context(), log, eventlog.Head{Seq: 1 + 5}); err != nil || after.OutOfOrder != 1006 {
		t.Errorf("behind the jump: %+v, %v", after, err)
	}
}
