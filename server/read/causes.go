package read

import (
	"fmt"
	"math"

	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

func (room *Library) causeRoutes() []route.Endpoint {
	missing := []problem.ErrorCode{problem.NoSession, problem.NoMoment, problem.NotFound, problem.NotAcceptable}
	return []route.Endpoint{
		room.computed("GET /api/v1/sessions/{session}/blame", access.ScopeRead, route.Doc{
			Summary: "What last set a value of the state, up to a moment",
			Params: []route.Parameter{
				{Name: "path", Required: true, Text: "the value, such as stage.entities.smith.strength"},
				atParam(),
			},
			Success: []route.Success{{Status: 200, Content: route.JSON("blamed")}},
			Errors:  missing[:3],
		}, (*request).blame),
		room.computed("GET /api/v1/sessions/{session}/blame/history", access.ScopeRead, route.Doc{
			Summary: "All settings of a value of the state, up to a moment",
			Params: []route.Parameter{
				{Name: "path", Required: true, Text: "the value, such as stage.entities.smith.strength"},
				atParam(), formatParam(),
			},
			Success: []route.Success{{Status: 200, Content: listed("settings", "setting")}},
			Errors:  []problem.ErrorCode{problem.NoSession, problem.NoMoment, problem.NotAcceptable},
		}, (*request).blameHistory),
		room.computed("GET /api/v1/sessions/{session}/blame/file", access.ScopeRead, route.Doc{
			Summary: "The tool call that wrote each line of a file, at a moment",
			Params: []route.Parameter{
				{Name: "file", Required: true, Text: "the file as the recording has it, or the end of its path if one file alone has it"},
				{Name: "line", Text: "the number of a line, from 1; all lines if absent"},
				atParam(), formatParam(),
			},
			Success: []route.Success{{Status: 200, Content: listed("lines", "line")}},
			Errors:  missing,
		}, (*request).blameFile),
		room.computed("GET /api/v1/sessions/{session}/why", access.ScopeRead, route.Doc{
			Summary: "The causal slice of a value of the stage, the world or the director at a moment",
			Params: []route.Parameter{
				{Name: "path", Text: "the value, such as stage.entities.smith.x; the whole stage if absent"},
				atParam(),
				{Name: "format", Enum: []string{"json", "dot", "svg"}, Text: "the graph as JSON, in the language of Graphviz, or as a drawing; instead of the header Accept"},
			},
			Success: []route.Success{{Status: 200, Content: []route.Content{{Type: route.MediaJSON, Schema: "slice"}, {Type: mediaDOT}, {Type: mediaSVG}}}},
			Errors:  missing,
		}, (*request).slice),
	}
}

// mediaDOT is the media type of a graph in the language of Graphviz.
const mediaDOT = "text/vnd.graphviz"

// blame answers what set a value.
func (q *request) blame() error {
	path, err := provenance.ParsePath(q.get("path"))
	if err != nil {
		return err
	}
	return q.atMoment("", func(s *recorded, m replay.Moment) error {
		b, err := provenance.Blame(q.ctx, s.travel, path, m)
		if err != nil {
			return err
		}
		return q.one(answer.ViewBlamed(&b))
	})
}

// blameHistory lists what set a value.
func (q *request) blameHistory() error {
	path, err := provenance.ParsePath(q.get("path"))
	if err != nil {
		return err
	}
	return q.listAtMoment(func(s *recorded, m replay.Moment, l *list) error {
		for setting, err := range provenance.History(q.ctx, s.travel, path, m) {
			if err != nil {
				return err
			}
			if err := l.add(answer.ViewSetting(&setting)); err != nil {
				return err
			}
		}
		return nil
	})
}

// blameFile lists the lines of a file with the calls that wrote them.
func (q *request) blameFile() error {
	line, err := q.whole("line", 0, 1, math.MaxInt32)
	if err != nil {
		return err
	}
	return q.listAtMoment(func(s *recorded, m replay.Moment, l *list) error {
		all, err := q.room.engine.Files(q.ctx, s.travel.Name(), m)
		if err != nil {
			return err
		}
		f, err := all.File(q.get("file"))
		if err != nil {
			return noFile(err)
		}
		for b, err := range answer.BlameLines(q.ctx, s.travel, f, line) {
			if err == nil {
				err = l.add(b.View)
			}
			if err != nil {
				return err
			}
		}
		if line > 0 && l.n == 0 {
			return &problem.Details{Code: problem.NotFound, Detail: fmt.Sprintf("%s has no line %d at entry %d", f.Path(), line, m.Seq)}
		}
		return nil
	})
}

// slice answers what a value depends on.
func (q *request) slice() error {
	text := "stage.entities"
	if q.has("path") {
		text = q.get("path")
	}
	path, err := provenance.ParsePath(text)
	if err != nil {
		return err
	}
	format, err := q.format([2]string{"json", route.MediaJSON}, [2]string{"dot", mediaDOT}, [2]string{"svg", mediaSVG})
	if err != nil {
		return err
	}
	return q.atMoment(format, func(s *recorded, m replay.Moment) error {
		found, err := provenance.Why(q.ctx, s.travel, path, m)
		if err != nil {
			return err
		}
		switch format {
		case "dot":
			return q.send(mediaDOT, []byte(found.DOT()))
		case "svg":
			return q.send(mediaSVG, []byte(found.SVG()))
		}
		return q.one(answer.ViewSlice(found))
	})
}
