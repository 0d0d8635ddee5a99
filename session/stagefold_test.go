package session_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

func compiledScene(t testing.TB, text string) *scene.Scene {
	t.Helper()
	sc, err := scene.Compile(enginetest.Value(t, text))
	require.NoError(t, err)
	return sc
}

// tell records a story in a session with a scene of its own, with a snapshot at
// nearly every entry.
func tell(t *testing.T, dir string, cfg sajou.Config) {
	t.Helper()
	cfg.SnapshotEvery = 2
	eng, ses := enginetest.Begin(t, dir, cfg)
	for i, typ := range []string{"thinking", "scene", "choreographies", "task_dispatch", "user.wave", "tool_call", "user.wave"} {
		if _, err := ses.Record(context.Background(), enginetest.Step{Typ: typ, Task: i}.Record(t, i, int64(i)*100)); err != nil {
			t.Fatal(err)
		}
		if _, err := ses.State(context.Background()); err != nil { // so that the snapshot is offered now
			t.Fatal(err)
		}
	}
	require.NoError(t, eng.Close())
}

// states are the digests at each entry of session "a", folded with a set from
// the first entry on, or from the snapshots if there are any that fit.
func states(t *testing.T, eng *sajou.Engine, set projection.Set, snapshots bool) []string {
	t.Helper()
	log, err := eng.Log().Session("a")
	require.NoError(t, err)
	travel := replay.Open(log, set, nil)
	if snapshots {
		if travel, err = eng.ReplayWith("a", set); err != nil {
			t.Fatal(err)
		}
	}
	var all []string
	for seq := range log.Head().Seq + 1 {
		f, err := travel.At(context.Background(), replay.Moment{Seq: seq})
		require.NoError(t, err)
		all = append(all, enginetest.Digests(f))
	}
	return all
}

// anySnapshot reports whether a store has an image that a set takes for its own.
func anySnapshot(t *testing.T, eng *sajou.Engine, set projection.Set) bool {
	t.Helper()
	_, ok, err := eng.Snapshots().Nearest("a", 1<<40, set, func(eventlog.Head) bool { return true })
	require.NoError(t, err)
	return ok
}

// A recorded session can be seen in another scene: from its beginning, whatever
// scene the log brings into force, and whatever snapshots are there.
func TestAnotherScene(t *testing.T) {
	dir := t.TempDir()
	tell(t, dir, sajou.Config{})
	eng, ses := enginetest.Begin(t, dir, sajou.Config{ReadOnly: true})
	defer func() { _ = eng.Close() }()
	hall := compiledScene(t, `{"sajou":"scene","version":1,"name":"hall","waypoints":{"forge":{"x":7,"y":9}}}`)
	cave := compiledScene(t, `{"sajou":"scene","version":1,"name":"cave"}`)
	if !anySnapshot(t, eng, eng.Projections()) {
		t.Fatal("there are no snapshots")
	}
	versions := map[uint32]bool{}
	for _, sc := range []*scene.Scene{nil, hall, cave} {
		set := session.Projections(session.ProjectionConfig{Scene: sc})
		want := states(t, eng, set, false)
		if got := states(t, eng, set, true); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("with the snapshots %s, without %s", got, want)
		}
		travel, err := eng.ReplayWith("a", set)
		require.NoError(t, err)
		for _, seq := range []eventlog.Seq{0, ses.Head().Seq} {
			f, err := travel.At(t.Context(), replay.Moment{Seq: seq})
			require.NoError(t, err)
			name, want := session.StageOf(f).Frame().Scene.Name(), map[bool]string{true: "yard"}[seq > 0]
			if sc != nil {
				want = sc.Name()
			} else if seq == 0 {
				want = scene.Default().Name()
			}
			if name != want {
				t.Errorf("at %d the scene is %q, want %q", seq, name, want)
			}
		}
		if sc != nil && anySnapshot(t, eng, set) {
			t.Error("a snapshot of the session's own scene was taken for one of another")
		}
		for _, p := range set {
			if p.Name == session.ProjectionStage {
				versions[p.Version] = true
			}
		}
	}
	if len(versions) != 3 {
		t.Errorf("three scenes have versions %v", versions)
	}
}

// What a program adds to the stage is seen live, replayed and from snapshots;
// snapshots made with other actions are passed over, and the session is folded
// again.
func TestActionsOfTheProgram(t *testing.T) {
	dir := t.TempDir()
	with := map[string]stage.Action{"glow": enginetest.Glow}
	other := map[string]stage.Action{"glow": {Version: 2, Start: enginetest.Glow.Start}}
	func() {
		eng, ses := enginetest.Begin(t, dir, sajou.Config{SnapshotEvery: 2, Actions: with})
		defer func() { _ = eng.Close() }()
		defs := enginetest.Definitions(t, `{"on":"tool_call","steps":[{"action":"glow","entity":"signal.agentId","duration":100}]}`)
		if _, err := ses.Define(t.Context(), defs...); err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			if _, err := ses.Signal(t.Context(), enginetest.Step{Typ: "tool_call"}.Signal(i, int64(i)*60)); err != nil {
				t.Fatal(err)
			}
			if _, err := ses.State(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		f, err := ses.At(t.Context(), replay.Moment{Seq: ses.Head().Seq, Offset: time.Second})
		require.NoError(t, err)
		if figures := session.StageOf(f).Frame().Figures; len(figures) == 0 || figures[len(figures)-1].Scale != 3 {
			t.Errorf("the action shows nothing: %+v", figures)
		}
	}()
	for _, c := range []struct {
		name    string
		actions map[string]stage.Action
	}{
		{"without it", nil}, {"with it", with}, {"with another version", other}, {"with it again", with},
	} {
		eng, ses := enginetest.Begin(t, dir, sajou.Config{SnapshotEvery: 2, Actions: c.actions})
		set := eng.Projections()
		want := states(t, eng, set, false)
		if got := states(t, eng, set, true); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("opened %s: with the snapshots %s, without %s", c.name, got, want)
		}
		f, err := ses.State(t.Context())
		require.NoError(t, err)
		if got := enginetest.Digests(f); got != want[len(want)-1] {
			t.Errorf("opened %s: live %s, replayed %s", c.name, got, want[len(want)-1])
		}
		if _, err := ses.Signal(t.Context(), enginetest.Step{Typ: "tool_call"}.Signal(100+len(want), int64(len(want))*100)); err != nil {
			t.Fatal(err)
		}
		require.NoError(t, eng.Close())
	}
}

// While the stage moves a viewer gets frames at the rate, also of what moves
// without a choreography, and then no more.
func TestFramesWhileTheStageMoves(t *testing.T) {
	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		var sink enginetest.Frames
		th.Ses.Show(th.Context(), &sink, 0)
		th.Signal("task_dispatch")
		sink.Seen = nil
		for range 200 {
			th.Pass(10 * time.Millisecond)
		}
		enginetest.WantLines(t, "a walk, a rest and a flash", sink.Times(), "100ms", "200ms", "300ms", "400ms", "1.35s")
		if now, _ := th.Running(); now != 0 {
			t.Errorf("%d timers run when all is over", now)
		}
		th.Close()
	}, enginetest.StrollDefinition)

	enginetest.Play(t, session.TimeWall, func(th *enginetest.Theatre) {
		var sink enginetest.Frames
		var commands choreography.RecordingSink
		th.Ses.Show(th.Context(), &sink, 0)
		th.Ses.Attach(th.Context(), &commands, 0)
		th.Signal("thinking") // an impression: speech that fades
		for range 1000 {
			th.Pass(10 * time.Millisecond)
		}
		last := sink.Seen[len(sink.Seen)-1]
		if len(sink.Seen) < 40 || last.At < 4*time.Second || last.At > 6*time.Second || last.Figures[0].Text != "" {
			t.Errorf("%d frames, the last at %v is %+v", len(sink.Seen), last.At, last.Figures)
		}
		if now, _ := th.Running(); now != 0 || len(commands.Commands) > 0 {
			t.Errorf("when all is over %d timers run; there were commands %v", now, commands.Commands)
		}
		th.Close()
	})
}

// A choreography that refers to what is not there, as the log of another program
// may have it, is not in force, and signals go on to make impressions.
func TestImpressionsUntilSomethingIsInForce(t *testing.T) {
	eng, ses := enginetest.Begin(t, t.TempDir(), sajou.Config{})
	defer func() { _ = eng.Close() }()
	if _, err := ses.Define(t.Context(), enginetest.Unjudged(t, `sequence {"sequence":"greet","steps":[]}`,
		`choreography {"on":"task_dispatch","steps":[{"action":"include","sequence":"greet"}]}`)...); err != nil {
		t.Fatal(err)
	}
	if _, err := ses.Signal(t.Context(), enginetest.TaskSignal(1, 0)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		without int // which define entry is left out
		beams   int
	}{"with all": {0, 0}, "without the sequence": {1, 1}, "without the choreography": {2, 1}} {
		fold := projection.NewFold(session.Projections(session.ProjectionConfig{}), eventlog.Genesis("a"))
		defined := 0
		for e, err := range ses.Entries(t.Context(), 1) {
			require.NoError(t, err)
			if e.Kind == eventlog.KindDefine {
				if defined++; defined == c.without {
					continue
				}
			}
			e.Seq = fold.Head().Seq + 1
			require.NoError(t, fold.Apply(&e))
		}
		if beams := session.StageOf(fold).Frame().Beams; len(beams) != c.beams {
			t.Errorf("%s: %d beams, want %d", name, len(beams), c.beams)
		}
	}
}
