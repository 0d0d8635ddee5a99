package sajou_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// declared is a declaration of another program's type.
type declared struct {
	word  string
	value signal.Value
}

func (d declared) Word() string { return d.word }

func (d declared) Name() string { return "of no matter" }

func (d declared) Value() signal.Value { return d.value }

// What cannot be in force is not recorded, and nothing else of its record: the
// session stands where it stood, and goes on.
func TestDeclarationsAreRefusedWhole(t *testing.T) {
	ctx := context.Background()
	eng, ses := enginetest.Begin(t, t.TempDir(), sajou.Config{})
	defer func() { _ = eng.Close() }()
	if _, err := ses.Define(ctx, enginetest.Definitions(t, enginetest.Dispatch, `{"sequence":"greet","steps":[{"action":"wait","duration":5}]}`)...); err != nil {
		t.Fatal(err)
	}
	head := ses.Head()
	deep := append(bytes.Repeat([]byte{0x91}, 1000), 0xc0)
	long := append(enginetest.Value(t, `{"on":"x","steps":[]}`), 0xc0)
	for name, c := range map[string]struct {
		bad  []language.Declaration
		want error
		says string
	}{
		"nil":            {[]language.Declaration{nil}, eventlog.ErrInvalid, "is nil"},
		"typed nil":      {[]language.Declaration{(*definition.Definition)(nil)}, eventlog.ErrInvalid, "is nil"},
		"nil scene":      {[]language.Declaration{(*scene.Scene)(nil)}, eventlog.ErrInvalid, "is nil"},
		"zero":           {[]language.Declaration{new(definition.Definition)}, eventlog.ErrInvalid, ""},
		"a strange word": {[]language.Declaration{declared{"chapter", enginetest.Value(t, `{}`)}}, definition.ErrInvalid, `unknown word "chapter"`},
		"no episode":     {[]language.Declaration{declared{"episode", enginetest.Value(t, `{"beats":7}`)}}, episode.ErrEpisode, ""},
		"no word":        {[]language.Declaration{declared{"", enginetest.Value(t, `{}`)}}, definition.ErrInvalid, "unknown word"},
		"no value":       {[]language.Declaration{declared{"choreography", nil}}, eventlog.ErrInvalid, ""},
		"no JSON":        {[]language.Declaration{declared{"scene", signal.Value{0xc7, 0, 1}}}, eventlog.ErrInvalid, ""},
		"two values":     {[]language.Declaration{declared{"choreography", long}}, eventlog.ErrInvalid, "more than one value"},
		"no object":      {[]language.Declaration{declared{"choreography", enginetest.Value(t, `[1]`)}}, definition.ErrInvalid, ""},
		"not in form":    {[]language.Declaration{declared{"sequence", enginetest.Value(t, `{"sequence":"q"}`)}}, definition.ErrInvalid, ""},
		"too deep":       {[]language.Declaration{declared{"scene", deep}}, eventlog.ErrInvalid, ""},
		"none such":      {enginetest.Unjudged(t, `choreography {"on":"x","steps":[{"action":"include","sequence":"bow"}]}`), definition.ErrInvalid, "bow"},
		"extends none":   {enginetest.Unjudged(t, `choreography {"on":"x","id":"y","extends":"zz"}`), definition.ErrInvalid, "zz"},
		"out of order":   {enginetest.Unjudged(t, includes("a", "b"), includes("b")), definition.ErrInvalid, "b"},
		"without an end": {enginetest.Unjudged(t, includes("b"), includes("a", "b"), includes("b", "a")), definition.ErrInvalid, "each other"},
	} {
		good := enginetest.Definitions(t, `{"sequence":"z","steps":[]}`, `{"on":"tool_call","steps":[{"action":"wait","duration":1}]}`)
		out, err := ses.Record(ctx, sajou.Addition{Declarations: append(good, c.bad...), Signals: []*signal.Signal{enginetest.TaskSignal(1, 0)}})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "of the record") {
			t.Errorf("%s: %+v, %v; want %v that says %q", name, out, err, c.want, c.says)
		}
		if ses.Head() != head {
			t.Fatalf("%s: the session stands at %v", name, ses.Head())
		}
	}
	// What a refused record brought along is not in force either.
	if _, err := ses.Define(ctx, enginetest.Unjudged(t, includes("y", "z"))...); !errors.Is(err, definition.ErrInvalid) {
		t.Errorf("a reference into a refused record: %v", err)
	}
	if _, err := ses.Signal(ctx, enginetest.TaskSignal(1, 0)); err != nil {
		t.Fatal(err)
	}
	sameReplayed(t, eng, ses)
}

// includes is a sequence that includes others.
func includes(name string, others ...string) string {
	var steps []string
	for _, other := range others {
		steps = append(steps, fmt.Sprintf(`{"action":"include","sequence":%q}`, other))
	}
	return fmt.Sprintf(`sequence {"sequence":%q,"steps":[%s]}`, name, strings.Join(steps, ","))
}

// sameReplayed compares the live state with that of a replay.
func sameReplayed(t *testing.T, eng *sajou.Engine, ses *sajou.Session) {
	t.Helper()
	ctx := context.Background()
	live, err := ses.State(ctx)
	require.NoError(t, err)
	log, err := eng.Log().Session(ses.Name())
	require.NoError(t, err)
	again, err := replay.Open(log, eng.Projections(), nil).At(ctx, replay.Moment{Seq: live.Head().Seq})
	require.NoError(t, err)
	if enginetest.Digests(live) != enginetest.Digests(again) {
		t.Errorf("live %s, replayed %s", enginetest.Digests(live), enginetest.Digests(again))
	}
}

// What is in force can be referred to, from the same record on, and after the
// session was opened again, with snapshots and without.
func TestDeclarationsReferToWhatIsInForce(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	for i, declarations := range [][]string{
		{
			`easing {"easing":"soft","curve":"cubic-bezier(0.2, 0, 0, 1)"}`,
			`sequence {"sequence":"greet","params":["who"],"steps":[{"action":"flash","entity":"param.who","duration":200,"easing":"soft"}]}`,
			`choreography {"on":"task_dispatch","id":"dispatch","steps":[{"action":"include","sequence":"greet","with":{"who":"signal.to"}}]}`,
		},
		{`choreography {"on":"tool_call","id":"call","extends":"dispatch"}`},
		{`sequence {"sequence":"twice","steps":[{"action":"include","sequence":"greet","with":{"who":"a"}}]}`},
		{`choreography {"on":"error","extends":"call","before":[{"action":"include","sequence":"twice"}]}`},
	} {
		eng, ses := enginetest.Begin(t, dir, sajou.Config{SnapshotEvery: 2 * (i % 2)})
		if _, err := ses.Define(ctx, enginetest.Unjudged(t, declarations...)...); err != nil {
			t.Fatalf("declaration %d: %v", i+1, err)
		}
		if _, err := ses.Signal(ctx, enginetest.TaskSignal(i, int64(i)*100)); err != nil {
			t.Fatal(err)
		}
		sameReplayed(t, eng, ses)
		require.NoError(t, eng.Close())
	}
}

// A declaration of another program's type is in force as the log says it is,
// whatever that program does with its value afterwards.
func TestForeignDeclaration(t *testing.T) {
	ctx := context.Background()
	eng, ses := enginetest.Begin(t, t.TempDir(), sajou.Config{})
	defer func() { _ = eng.Close() }()
	foreign := declared{"sequence", enginetest.Value(t, `{"sequence":"greet","steps":[]}`)}
	if _, err := ses.Define(ctx, foreign); err != nil {
		t.Fatal(err)
	}
	clear(foreign.value)
	if _, err := ses.Define(ctx, enginetest.Unjudged(t, `choreography {"on":"task_dispatch","steps":[{"action":"include","sequence":"greet"},{"action":"wait","duration":5}]}`)...); err != nil {
		t.Fatal(err)
	}
	if _, err := ses.Signal(ctx, enginetest.TaskSignal(1, 0)); err != nil {
		t.Fatal(err)
	}
	sameReplayed(t, eng, ses)
}

// Each addition of one call is recorded or refused by itself, in order, and a repeat of one
// that was recorded before has its first receipt.
func TestRecordEach(t *testing.T) {
	ctx := context.Background()
	eng, ses := enginetest.Begin(t, t.TempDir(), sajou.Config{})
	defer func() { _ = eng.Close() }()
	sig := func(id string) []*signal.Signal {
		s, err := signal.Parse(fmt.Appendf(nil, `{"id":%q,"type":"x","timestamp":5,"source":"s","payload":{}}`, id))
		require.NoError(t, err)
		return []*signal.Signal{s}
	}
	first, err := ses.Record(ctx, sajou.Addition{Signals: sig("first"), Key: "k"})
	require.NoError(t, err)
	got := ses.RecordEach(ctx, []sajou.Addition{
		{Signals: sig("a")},
		{},
		{Signals: sig("again"), Key: "k"},
		{Signals: sig("b"), Expect: first.Head},
		{Signals: sig("c"), Key: "c"},
		{Signals: sig("c again"), Key: "c"},
	})
	require.Len(t, got, 6)
	require.NoError(t, got[0].Err)
	require.Equal(t, first.Head.Seq+1, got[0].Receipt.First)
	require.ErrorIs(t, got[1].Err, eventlog.ErrInvalid)
	require.NoError(t, got[2].Err)
	require.True(t, got[2].Receipt.Repeat)
	require.Equal(t, first.Head, got[2].Receipt.Head)
	require.ErrorIs(t, got[3].Err, eventlog.ErrConflict)
	require.NoError(t, got[4].Err)
	require.Equal(t, got[0].Receipt.Head.Seq+1, got[4].Receipt.First)
	require.Equal(t, got[4].Receipt.Head, ses.Head(), "all of them are durable")
	require.NoError(t, got[5].Err)
	require.Equal(t, got[4].Receipt.Head, got[5].Receipt.Head)
	require.Empty(t, ses.RecordEach(ctx, nil))

	over, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, ses.RecordEach(over, []sajou.Addition{{Signals: sig("d")}})[0].Err, context.Canceled)
	require.Equal(t, got[4].Receipt.Head, ses.Head())
}
