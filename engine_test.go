package sajou_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// begin opens an engine and its session "a", for tests and for rapid's.
func begin(t interface {
	Helper()
	Fatal(args ...any)
}, dir string, cfg sajou.Config,
) (*sajou.Engine, *sajou.Session) {
	t.Helper()
	eng, err := sajou.Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ses, err := eng.Session(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return eng, ses
}

const dispatch = `{"on":"task_dispatch","steps":[
	{"action":"move","entity":"signal.to","to":"desk","duration":800,"easing":"easeInOut"},
	{"action":"onInterrupt","steps":[{"action":"destroy","entity":"signal.to"}]}]}`

func definitions(t testing.TB, texts ...string) []choreography.Declaration {
	t.Helper()
	var all []choreography.Declaration
	for _, text := range texts {
		ds, diags := choreography.Parse("test.json", []byte(text))
		if err := diags.Err(); err != nil {
			t.Fatal(err)
		}
		all = append(all, ds...)
	}
	return all
}

func taskSignal(n int, ms int64) *signal.Signal {
	payload, err := signal.ParseValue(fmt.Appendf(nil, `{"taskId":"t-%d","from":"boss","to":"agent-%d"}`, n, n%7))
	if err != nil {
		panic(err)
	}
	corr := fmt.Sprintf("task-%d", n)
	return &signal.Signal{
		ID: fmt.Sprintf("sig-%04d", n), Type: "task_dispatch", Source: "test", Timestamp: signal.Int(1_700_000_000_000 + ms),
		CorrelationID: &corr, Payload: payload,
	}
}

// What is recorded is there after the engine was closed and opened again, in
// the same state, whether or not there are snapshots.
func TestStateSurvives(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	eng, err := sajou.Open(dir, sajou.Config{SnapshotEvery: 10})
	if err != nil {
		t.Fatal(err)
	}
	ses, err := eng.Session(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ses.Define(ctx, definitions(t, dispatch)...); err != nil {
		t.Fatal(err)
	}
	for i := range 95 {
		if _, err := ses.Signal(ctx, taskSignal(i, int64(i)*100)); err != nil {
			t.Fatal(err)
		}
	}
	live, err := ses.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(live.Head(), live.Digests())
	for _, drop := range []bool{false, true} {
		if drop {
			if err := os.Remove(dir + "/" + sajou.SnapshotFile); err != nil {
				t.Fatal(err)
			}
		}
		eng, err := sajou.Open(dir, sajou.Config{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		ses, err := eng.Session(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		again, err := ses.State(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(again.Head(), again.Digests()); got != want {
			t.Errorf("snapshots dropped %v: state %s, want %s", drop, got, want)
		}
		travelled, err := eng.Replay("a").At(ctx, ses.Head().Seq)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(travelled.Head(), travelled.Digests()); got != want {
			t.Errorf("snapshots dropped %v: replayed state %s, want %s", drop, got, want)
		}
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// An invalid signal is refused with the field's name and leaves no trace;
// leniently it is recorded as it came and flagged.
func TestLenience(t *testing.T) {
	ctx := context.Background()
	eng, ses := begin(t, t.TempDir(), sajou.Config{})
	defer func() { _ = eng.Close() }()
	line := []byte(`{"id":"1","type":"completion","timestamp":5,"source":"x","payload":{"success":true}}`)
	sig, err := signal.ParseLenient(line)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ses.Signal(ctx, sig); !errors.Is(err, signal.ErrSchema) || !bytes.Contains([]byte(err.Error()), []byte("/payload/taskId")) {
		t.Errorf("err = %v, want one that names /payload/taskId", err)
	}
	if ses.Head().Seq != 0 {
		t.Errorf("a refused signal left entry %d", ses.Head().Seq)
	}
	out, err := ses.Record(ctx, sajou.Record{Signals: []*signal.Signal{sig}, Lenient: true})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range ses.Entries(ctx, out.Head.Seq) {
		if err != nil {
			t.Fatal(err)
		}
		got, err := sajou.SignalOf(&e)
		if err != nil {
			t.Fatal(err)
		}
		if got.Problem != "/payload/taskId: is required" || string(got.AppendJSON(nil)) != string(line) {
			t.Errorf("recorded %s with problem %q", got.AppendJSON(nil), got.Problem)
		}
	}
	if sig.Problem == "" {
		t.Error("ParseLenient set no problem")
	}
}

// The same records under the same name give the same head hash everywhere.
func TestHeadHashIsAFunctionOfTheRecords(t *testing.T) {
	ctx := context.Background()
	var heads []eventlog.Head
	for range 2 {
		eng, err := sajou.Open(t.TempDir(), sajou.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ses, err := eng.Session(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			if _, err := ses.Signal(ctx, taskSignal(i, int64(i)*100)); err != nil {
				t.Fatal(err)
			}
		}
		heads = append(heads, ses.Head())
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if heads[0] != heads[1] {
		t.Errorf("heads differ: %v and %v", heads[0], heads[1])
	}
}
