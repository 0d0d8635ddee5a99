package sajou_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// declared is a declaration of another program's type.
type declared struct {
	word  string
	value signal.Value
}

func (d declared) Word() string        { return d.word }
func (d declared) Name() string        { return "of no matter" }
func (d declared) Value() signal.Value { return d.value }

func value(t testing.TB, text string) signal.Value {
	t.Helper()
	v, err := signal.ParseValue([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// unjudged compiles declarations that a parser would remark on, each of which
// begins with its word.
func unjudged(t testing.TB, texts ...string) []choreography.Declaration {
	t.Helper()
	var all []choreography.Declaration
	for _, text := range texts {
		word, text, _ := strings.Cut(text, " ")
		d, err := choreography.CompileDeclaration(word, value(t, text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// What cannot be in force is not recorded, and nothing else of its record: the
// session stands where it stood, and goes on.
func TestDeclarationsAreRefusedWhole(t *testing.T) {
	ctx := context.Background()
	eng, ses := begin(t, t.TempDir(), sajou.Config{})
	defer func() { _ = eng.Close() }()
	if _, err := ses.Define(ctx, definitions(t, dispatch, `{"sequence":"greet","steps":[{"action":"wait","duration":5}]}`)...); err != nil {
		t.Fatal(err)
	}
	head := ses.Head()
	deep := append(bytes.Repeat([]byte{0x91}, 1000), 0xc0)
	long := append(value(t, `{"on":"x","steps":[]}`), 0xc0)
	for name, c := range map[string]struct {
		bad  []choreography.Declaration
		want error
		says string
	}{
		"nil":            {[]choreography.Declaration{nil}, eventlog.ErrInvalid, "is nil"},
		"typed nil":      {[]choreography.Declaration{(*choreography.Definition)(nil)}, eventlog.ErrInvalid, "is nil"},
		"nil scene":      {[]choreography.Declaration{(*scene.Scene)(nil)}, eventlog.ErrInvalid, "is nil"},
		"zero":           {[]choreography.Declaration{new(choreography.Definition)}, eventlog.ErrInvalid, ""},
		"a strange word": {[]choreography.Declaration{declared{"chapter", value(t, `{}`)}}, choreography.ErrDefinition, `unknown word "chapter"`},
		"no episode":     {[]choreography.Declaration{declared{"episode", value(t, `{"beats":7}`)}}, director.ErrEpisode, ""},
		"no word":        {[]choreography.Declaration{declared{"", value(t, `{}`)}}, choreography.ErrDefinition, "unknown word"},
		"no value":       {[]choreography.Declaration{declared{"choreography", nil}}, eventlog.ErrInvalid, ""},
		"no JSON":        {[]choreography.Declaration{declared{"scene", signal.Value{0xc7, 0, 1}}}, eventlog.ErrInvalid, ""},
		"two values":     {[]choreography.Declaration{declared{"choreography", long}}, eventlog.ErrInvalid, "more than one value"},
		"no object":      {[]choreography.Declaration{declared{"choreography", value(t, `[1]`)}}, choreography.ErrDefinition, ""},
		"not in form":    {[]choreography.Declaration{declared{"sequence", value(t, `{"sequence":"q"}`)}}, choreography.ErrDefinition, ""},
		"too deep":       {[]choreography.Declaration{declared{"scene", deep}}, eventlog.ErrInvalid, ""},
		"none such":      {unjudged(t, `choreography {"on":"x","steps":[{"action":"include","sequence":"bow"}]}`), choreography.ErrDefinition, "bow"},
		"extends none":   {unjudged(t, `choreography {"on":"x","id":"y","extends":"zz"}`), choreography.ErrDefinition, "zz"},
		"out of order":   {unjudged(t, includes("a", "b"), includes("b")), choreography.ErrDefinition, "b"},
		"without an end": {unjudged(t, includes("b"), includes("a", "b"), includes("b", "a")), choreography.ErrDefinition, "each other"},
	} {
		good := definitions(t, `{"sequence":"z","steps":[]}`, `{"on":"tool_call","steps":[{"action":"wait","duration":1}]}`)
		out, err := ses.Record(ctx, sajou.Record{Declarations: append(good, c.bad...), Signals: []*signal.Signal{taskSignal(1, 0)}})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "of the record") {
			t.Errorf("%s: %+v, %v; want %v that says %q", name, out, err, c.want, c.says)
		}
		if ses.Head() != head {
			t.Fatalf("%s: the session stands at %v", name, ses.Head())
		}
	}
	// What a refused record brought along is not in force either.
	if _, err := ses.Define(ctx, unjudged(t, includes("y", "z"))...); !errors.Is(err, choreography.ErrDefinition) {
		t.Errorf("a reference into a refused record: %v", err)
	}
	if _, err := ses.Signal(ctx, taskSignal(1, 0)); err != nil {
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
	if err != nil {
		t.Fatal(err)
	}
	log, err := eng.Log().Session(ses.Name())
	if err != nil {
		t.Fatal(err)
	}
	again, err := replay.Open(log, eng.Projections(), nil).At(ctx, replay.Moment{Seq: live.Head().Seq})
	if err != nil {
		t.Fatal(err)
	}
	if digests(live) != digests(again) {
		t.Errorf("live %s, replayed %s", digests(live), digests(again))
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
		eng, ses := begin(t, dir, sajou.Config{SnapshotEvery: 2 * (i % 2)})
		if _, err := ses.Define(ctx, unjudged(t, declarations...)...); err != nil {
			t.Fatalf("declaration %d: %v", i+1, err)
		}
		if _, err := ses.Signal(ctx, taskSignal(i, int64(i)*100)); err != nil {
			t.Fatal(err)
		}
		sameReplayed(t, eng, ses)
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A declaration of another program's type is in force as the log says it is,
// whatever that program does with its value afterwards.
func TestForeignDeclaration(t *testing.T) {
	ctx := context.Background()
	eng, ses := begin(t, t.TempDir(), sajou.Config{})
	defer func() { _ = eng.Close() }()
	foreign := declared{"sequence", value(t, `{"sequence":"greet","steps":[]}`)}
	if _, err := ses.Define(ctx, foreign); err != nil {
		t.Fatal(err)
	}
	clear(foreign.value)
	if _, err := ses.Define(ctx, unjudged(t, `choreography {"on":"task_dispatch","steps":[{"action":"include","sequence":"greet"},{"action":"wait","duration":5}]}`)...); err != nil {
		t.Fatal(err)
	}
	if _, err := ses.Signal(ctx, taskSignal(1, 0)); err != nil {
		t.Fatal(err)
	}
	sameReplayed(t, eng, ses)
}
