package film

import (
	"context"
	"math"
	"slices"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// mostLooked bounds the entries that are read for the last messages of an episode. A turn
// has a few dozen.
const mostLooked = 256

// players are the roles of the messages of an episode with their looks and places, as
// shares of the scene.
var players = [...]struct {
	role string
	look scene.Look
	x    float64
}{
	{"user", scene.Look{Figure: "person", Color: "#e8e3d8", Size: 96}, .27},
	{"character", scene.Look{Figure: "person", Color: "#f2b84b", Size: 96}, .73},
}

// castEpisode shows the characters of an episode in a frame: the user and the character with
// their last messages. The stage knows the signals of the director alone, which it shows as
// an agent; a scene that an author has declared is left as it is, but for figures with
// the names of the roles, which speak.
func (r *Reel) castEpisode(ctx context.Context, fold *projection.Fold, f *stage.Frame) error {
	d := session.DirectorOf(fold)
	if d == nil || d.Episode() == nil {
		return nil
	}
	said, last, err := r.lastMessages(ctx, fold.Head().Seq)
	if err != nil {
		return err
	}
	if opening := d.Episode().OpeningLine; len(said) == 0 && opening != "" {
		said, last = map[string]string{"character": opening}, "character"
	}
	if last == "user" { // the character has not answered yet
		delete(said, "character")
	}
	authored := len(f.Scene.Value()) > 0
	if !authored {
		f.Figures = slices.DeleteFunc(f.Figures, func(g stage.Figure) bool { return g.ID == "director" })
	}
	for _, p := range players {
		i := slices.IndexFunc(f.Figures, func(g stage.Figure) bool { return g.ID == p.role || g.Actor == p.role })
		if i < 0 && authored {
			continue
		}
		if i < 0 {
			i = len(f.Figures)
			f.Figures = append(f.Figures, stage.Figure{
				ID: p.role, Actor: p.role, Label: p.role, Look: p.look, State: "idle", Visible: true, Opacity: 1, Scale: 1,
				X: math.Round(f.Scene.Width * p.x), Y: math.Round(f.Scene.Height * .72),
			})
		}
		g := &f.Figures[i]
		if g.Text == "" && said[p.role] != "" {
			g.Text, g.TextOpacity = said[p.role], 1
		}
		if p.role == "character" && last == "user" && g.State == "idle" {
			g.State = "thinking"
		}
	}
	return nil
}

// lastMessages returns the last message of each role up to an entry, and the role of the last
// of them.
func (r *Reel) lastMessages(ctx context.Context, to eventlog.Seq) (said map[string]string, last string, err error) {
	said = map[string]string{}
	for n := eventlog.Seq(0); n < mostLooked && n < to && len(said) < len(players); n++ {
		e, err := r.log.Entry(ctx, to-n)
		if err != nil {
			return nil, "", err
		}
		if e.Kind != eventlog.KindBeat {
			continue
		}
		record, err := session.BeatOf(&e)
		if err != nil {
			continue // the fold ignores it too
		}
		u, ok := session.UtteranceOf(record)
		if !ok || said[u.Role] != "" {
			continue
		}
		said[u.Role] = u.Text
		if last == "" {
			last = u.Role
		}
	}
	return said, last, nil
}
