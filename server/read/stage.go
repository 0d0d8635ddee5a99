package read

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// The media types of pictures.
const (
	mediaSVG = "image/svg+xml"
	mediaPNG = "image/png"
)

func (room *Library) stageRoutes() []route.Endpoint {
	missing := []problem.ErrorCode{problem.NoSession, problem.NoMoment}
	return []route.Endpoint{
		room.computed("GET /api/v1/sessions/{session}/frame", access.ScopeRead, route.Doc{
			Summary: "What is to be drawn at a moment: the display list of the stage",
			Params:  []route.Parameter{atParam()},
			Success: []route.Success{{Status: 200, Content: route.JSON("frame")}},
			Errors:  missing,
		}, (*request).frame),
		room.computed("GET /api/v1/sessions/{session}/picture", access.ScopeRead, route.Doc{
			Summary: "The picture of the stage at a moment",
			Params: []route.Parameter{
				atParam(),
				{Name: "format", Enum: []string{"svg", "png"}, Text: "the form, instead of the header Accept"},
				{Name: "width", Type: "integer", Text: "the width in pixels, 16 to 8192; 960 if absent"},
				{Name: "theme", Enum: []string{"light", "dark"}, Text: "replace a background of the other kind"},
				{Name: "caption", Type: "boolean", Text: "add a line with the session, the moment and its time"},
				{Name: "places", Type: "boolean", Text: "mark the slots, waypoints and routes of the scene"},
			},
			Success: []route.Success{{Status: 200, Content: []route.Content{{Type: mediaSVG}, {Type: mediaPNG}}}},
			Errors:  append([]problem.ErrorCode{problem.NotAcceptable}, missing...),
		}, (*request).picture),
		room.computed("GET /api/v1/sessions/{session}/board", access.ScopeRead, route.Doc{
			Summary: "How far the episode of the director has come at a moment",
			Text:    "The list has the episode, its beats, its choices that belong to no beat, and its turns.",
			Params:  []route.Parameter{atParam(), {Name: "verdicts", Type: "boolean", Text: "also list the verdicts of judges"}, formatParam()},
			Success: []route.Success{{Status: 200, Content: listed("board", "board-item")}},
			Errors:  append([]problem.ErrorCode{problem.NotFound, problem.NotAcceptable}, missing...),
		}, (*request).board),
	}
}

// frame answers with the display list at a moment.
func (q *request) frame() error {
	return q.atMoment("", func(s *recorded, m replay.Moment) error {
		shot, err := film.Open(s.travel, s.travel).Shot(q.ctx, m)
		if err != nil {
			return err
		}
		return q.one(answer.ViewFrame(shot.Frame, m, shot.At))
	})
}

// style reads the parameters of the look of a picture.
func (q *request) style() (film.Style, error) {
	width, err := q.whole("width", 0, film.MinWidth, film.MaxWidth)
	if err != nil {
		return film.Style{}, err
	}
	style := film.Style{Width: width, Theme: picture.Theme(q.get("theme"))}
	if style.Caption, err = q.flag("caption"); err != nil {
		return style, err
	}
	style.Places, err = q.flag("places")
	return style, err
}

// picture answers with the picture of a moment.
func (q *request) picture() error {
	s, err := q.session()
	if err != nil {
		return err
	}
	style, err := q.style()
	if err != nil {
		return err
	}
	format, err := q.format([2]string{"svg", mediaSVG}, [2]string{"png", mediaPNG})
	if err != nil {
		return err
	}
	m, v, err := q.resolve(s, "at")
	if err != nil {
		return err
	}
	if q.known(v.in(format)) {
		return nil
	}
	reel := film.Open(s.travel, s.travel)
	shot, err := reel.Shot(q.ctx, m)
	if err != nil {
		return err
	}
	d := reel.Draw(shot, style)
	if format == "svg" {
		return q.send(mediaSVG, d.AppendSVG(nil))
	}
	if err := film.CheckPNG(d); err != nil {
		return fmt.Errorf("%w; ask for a smaller width, or for SVG", err)
	}
	var out bytes.Buffer
	if err := picture.EncodePNG(&out, d.Image(0)); err != nil {
		return err
	}
	return q.send(mediaPNG, out.Bytes())
}

// board answers with the progress of an episode.
func (q *request) board() error {
	verdicts, err := q.flag("verdicts")
	if err != nil {
		return err
	}
	return q.listAtMoment(func(s *recorded, m replay.Moment, l *list) error {
		err := answer.Board(q.ctx, s.travel, m.Seq, verdicts, l.add)
		if errors.Is(err, history.ErrNoEpisode) {
			return &problem.Details{Code: problem.NotFound, Detail: err.Error(), Err: err}
		}
		return err
	})
}
