package film_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/play"
	"github.com/sajou-dev/sajou-go/director/script"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// silent is a display that shows nothing.
type silent struct{}

func (silent) JSON() bool             { return false }
func (silent) WriteEvent(any) error   { return errors.ErrUnsupported }
func (silent) WriteLine(string) error { return nil }
func (silent) Flush() error           { return nil }

// played returns the reel of a session that plays two turns of an episode, in a scene unless it
// is "", and the number of its entries.
func played(t *testing.T, sceneText string) (*film.Reel, eventlog.Seq) {
	t.Helper()
	ctx := t.Context()
	authored, written, _ := script.Bundled("interview")
	e, diagnostics := episode.Parse("interview.json", authored)
	require.NoError(t, diagnostics.Err(episode.ErrEpisode))
	lines, err := script.Parse(written)
	require.NoError(t, err)
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	ses, err := eng.Session(ctx, "a")
	require.NoError(t, err)
	if sceneText != "" {
		sc, diagnostics := scene.Parse("scene.json", []byte(sceneText))
		require.NotNil(t, sc, diagnostics)
		_, err = ses.Define(ctx, sc)
		require.NoError(t, err)
	}
	sitting, err := play.Begin(ctx, ses, e)
	require.NoError(t, err)
	actor := play.ScriptedActor{Script: lines}
	sitting.Cast(actor, actor.JudgeOf)
	require.NoError(t, sitting.PlayLines(ctx, strings.NewReader("Good morning.\nWho are you?\n"), &play.Page{Out: silent{}}))

	log, err := eng.Log().Session("a")
	require.NoError(t, err)
	travel, err := eng.Replay("a")
	require.NoError(t, err)
	return film.Open(log, travel), ses.Head().Seq
}

// TestEpisode plays two turns of an episode: its pictures show the user and the character,
// with the opening line, then the line of the user while the character thinks, then both.
func TestEpisode(t *testing.T) {
	reel, head := played(t, "")
	seen := map[string]bool{}
	for seq := head; seq > 1; seq-- {
		shot, err := reel.Shot(t.Context(), replay.Moment{Seq: seq})
		require.NoError(t, err)
		user, character := figure(shot.Frame, "user"), figure(shot.Frame, "character")
		if user.ID == "" {
			assert.Empty(t, shot.Frame.Figures, "before the episode begins")
			continue
		}
		require.Len(t, shot.Frame.Figures, 2)
		short, _, _ := strings.Cut(character.Text, " ")
		seen[user.Text+" / "+short+" / "+character.State] = true

		// All but the text and the state is always the same.
		w, h := shot.Frame.Scene.Width, shot.Frame.Scene.Height
		opacity := map[bool]float64{true: 1}
		assert.Equal(t, stage.Figure{
			ID: "user", Actor: "user", Label: "user", Look: scene.Look{Figure: "person", Color: "#e8e3d8", Size: 96}, X: math.Round(.27 * w), Y: math.Round(.72 * h),
			State: "idle", Visible: true, Opacity: 1, Scale: 1, Text: user.Text, TextOpacity: opacity[user.Text != ""],
		}, user)
		assert.Equal(t, stage.Figure{
			ID: "character", Actor: "character", Label: "character", Look: scene.Look{Figure: "person", Color: "#f2b84b", Size: 96}, X: math.Round(.73 * w), Y: math.Round(.72 * h),
			State: character.State, Visible: true, Opacity: 1, Scale: 1, Text: character.Text, TextOpacity: opacity[character.Text != ""],
		}, character)
	}
	assert.Equal(t, map[string]bool{
		" / Thank / idle":               true,
		"Good morning. /  / thinking":   true,
		"Good morning. / (pours / idle": true,
		"Who are you? /  / thinking":    true,
		"Who are you? / (a / idle":      true,
	}, seen)
}

// TestEpisodeInAScene: in a scene of an author the figures with the names of the roles speak,
// those in another state keep it, and no figure is added or removed.
func TestEpisodeInAScene(t *testing.T) {
	const sceneOf = `{"sajou": "scene", "version": 1, "size": {"width": 400, "height": 300}, "looks": {"body": {"figure": "person", "size": 48}}, "impressions": false, "entities": [%s]}`
	for _, tt := range []struct {
		entities string
		want     []string // the figures in the last pictures, from the last one back
	}{
		{`{"id": "character", "look": "body", "at": {"x": 10, "y": 20}}, {"id": "director", "look": "body", "at": {"x": 50, "y": 20}}`, []string{
			"[character (a 10,20 idle] [director - 50,20 idle]", "[character - 10,20 thinking] [director - 50,20 idle]",
			"[character (pours 10,20 idle] [director - 50,20 idle]", "[character - 10,20 thinking] [director - 50,20 idle]", "[character Thank 10,20 idle] [director - 50,20 idle]",
		}},
		{`{"id": "left", "actor": "user", "look": "body", "at": {"x": 10, "y": 20}, "state": "reading"}, {"id": "right", "actor": "character", "look": "body", "at": {"x": 50, "y": 20}, "state": "pouring"}`, []string{
			"[left Who 10,20 reading] [right (a 50,20 pouring]", "[left Who 10,20 reading] [right - 50,20 pouring]",
			"[left Good 10,20 reading] [right (pours 50,20 pouring]", "[left Good 10,20 reading] [right - 50,20 pouring]", "[left - 10,20 reading] [right Thank 50,20 pouring]",
		}},
		{`{"id": "table", "look": "body", "at": {"x": 10, "y": 20}}`, []string{"[table - 10,20 idle]"}},
	} {
		reel, head := played(t, fmt.Sprintf(sceneOf, tt.entities))
		var seen []string
		for seq := head; seq > 1; seq-- {
			shot, err := reel.Shot(t.Context(), replay.Moment{Seq: seq})
			require.NoError(t, err)
			var figures []string
			for _, f := range shot.Frame.Figures {
				text, _, _ := strings.Cut(f.Text, " ")
				require.Equal(t, 1.0, f.TextOpacity)
				figures = append(figures, fmt.Sprintf("[%s %s %v,%v %s]", f.ID, cmp.Or(text, "-"), f.X, f.Y, f.State))
			}
			if all := strings.Join(figures, " "); len(seen) == 0 || seen[len(seen)-1] != all {
				seen = append(seen, all)
			}
		}
		require.GreaterOrEqual(t, len(seen), len(tt.want))
		require.Equal(t, tt.want, seen[:len(tt.want)], tt.entities)
	}
}
