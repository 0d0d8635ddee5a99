package live_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// A landing beat begins a performance, an effect of an agent sets a flag that becomes a
// signal, and an external signal sets a flag. The log holds all of them in order, and a
// replay folds them to the same states.
func TestDirectorIsJoined(t *testing.T) {
	ctx := t.Context()
	ses := enginetest.BeginWorld(t, session.TimeManual)
	if _, err := ses.Define(ctx, enginetest.Definitions(t, `{"on":"play.knock","steps":[{"action":"move","entity":"door","to":{"x":1,"y":2},"duration":500}]}`)...); err != nil {
		t.Fatal(err)
	}
	d, world := ses.Director(), ses.Agents()
	require.NoError(t, world.Begin(ctx, enginetest.Value(t, `{"entities":{"ada":{},"lock":{}}}`)))
	ada, err := world.Register(ctx, "ada", nil)
	require.NoError(t, err)
	require.NoError(t, d.Start(ctx, enginetest.Authored(t, enginetest.Joined), director.Opening{}))
	if _, err := d.Guide(ctx, director.TurnInput{Turn: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Respond(ctx, director.Response{Turn: 1, Text: "There is a knock."}); err != nil {
		t.Fatal(err)
	}
	begun, err := ses.State(ctx)
	require.NoError(t, err)
	if performances := begun.View()["performances"].(map[string]any); len(performances) != 1 {
		t.Errorf("the landing beat began %v", performances)
	}
	if _, err := ada.Submit(ctx, enginetest.Interact("lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := ses.Record(ctx, sajou.Addition{Signals: enginetest.Step{Typ: "error"}.Record(t, 1, 10).Signals}); err != nil {
		t.Fatal(err)
	}

	var story []string
	for e, err := range ses.Entries(ctx, 1) {
		require.NoError(t, err)
		switch e.Kind {
		case eventlog.KindSignal:
			sig, err := session.SignalOf(&e)
			require.NoError(t, err)
			story = append(story, "signal "+sig.Type)
		case eventlog.KindEffect:
			if r, err := session.WorldRecordOf(&e); err == nil && r.Word == "effect" {
				story = append(story, "effect")
			}
		case eventlog.KindBeat:
			r, err := session.BeatOf(&e)
			require.NoError(t, err)
			if r.Word == episode.BeatLanded || r.Word == episode.FlagSet {
				cause, _ := r.Value.Get("cause")
				text, _ := cause.Text()
				kind, _, _ := strings.Cut(text, ":")
				story = append(story, strings.TrimSpace(r.Word+" "+kind))
			}
		default:
		}
	}
	const want = "beatLanded, signal play.knock, effect, flagSet effect, signal play.unlocked, signal error, flagSet signal"
	if got := strings.Join(story, ", "); got != want {
		t.Errorf("told:\n%s\nwant:\n%s", got, want)
	}
	f, err := ses.State(ctx)
	require.NoError(t, err)
	replayed, err := replay.Open(logSource{ses}, session.Projections(session.ProjectionConfig{}), nil).At(ctx, replay.Moment{Seq: f.Head().Seq})
	if err != nil || enginetest.Digests(replayed) != enginetest.Digests(f) {
		t.Errorf("replayed %s, live %s, %v", enginetest.Digests(replayed), enginetest.Digests(f), err)
	}
}
