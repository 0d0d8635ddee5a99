package film_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/play"
	"github.com/sajou-dev/sajou-go/director/script"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage/film"
)

// silent is a display that shows nothing.
type silent struct{}

func (silent) JSON() bool             { return false }
func (silent) WriteEvent(any) error   { return errors.ErrUnsupported }
func (silent) WriteLine(string) error { return nil }
func (silent) Flush() error           { return nil }

// TestEpisode plays two turns of an episode: its pictures show the user and the character,
// with the opening line, then the line of the user while the character thinks, then both.
func TestEpisode(t *testing.T) {
	ctx := t.Context()
	authored, written, _ := script.Bundled("interview")
	e, diagnostics := episode.Parse("interview.json", authored)
	require.NoError(t, diagnostics.Err(episode.ErrEpisode))
	lines, err := script.Parse(written)
	require.NoError(t, err)
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer eng.Close()
	ses, err := eng.Session(ctx, "a")
	require.NoError(t, err)
	sitting, err := play.Begin(ctx, ses, e)
	require.NoError(t, err)
	actor := play.ScriptedActor{Script: lines}
	sitting.Cast(actor, actor.JudgeOf)
	require.NoError(t, sitting.PlayLines(ctx, strings.NewReader("Good morning.\nWho are you?\n"), &play.Page{Out: silent{}}))

	log, err := eng.Log().Session("a")
	require.NoError(t, err)
	travel, err := eng.Replay("a")
	require.NoError(t, err)
	reel := film.Open(log, travel)
	seen := map[string]bool{}
	for seq := ses.Head().Seq; seq > 1; seq-- {
		shot, err := reel.Shot(ctx, replay.Moment{Seq: seq})
		require.NoError(t, err)
		user, character := figure(shot.Frame, "user"), figure(shot.Frame, "character")
		if user.ID == "" {
			assert.Empty(t, shot.Frame.Figures, "before the episode begins")
			continue
		}
		require.Len(t, shot.Frame.Figures, 2)
		short, _, _ := strings.Cut(character.Text, " ")
		seen[user.Text+" / "+short+" / "+character.State] = true
	}
	assert.Equal(t, map[string]bool{
		" / Thank / idle":               true,
		"Good morning. /  / thinking":   true,
		"Good morning. / (pours / idle": true,
		"Who are you? /  / thinking":    true,
		"Who are you? / (a / idle":      true,
	}, seen)
}
