package read

import (
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/workspace"
)

func (room *Library) stateRoutes() []route.Endpoint {
	missing := []problem.ErrorCode{problem.NoSession, problem.NoMoment}
	path := route.Parameter{Name: "path", Text: "a part of the state, as stage.entities.smith.x or as a JSON Pointer"}
	return []route.Endpoint{
		room.computed("GET /api/v1/sessions/{session}/state", access.ScopeRead, route.Doc{
			Summary: "The state at a moment, or a part of it",
			Text: "A very large state is shown in part; the header Sajou-Left-Out then says what is missing. " +
				"The path workspace lists the files that the agents worked on, and workspace/NAME is one of them.",
			Params:  []route.Parameter{atParam(), path},
			Success: []route.Success{{Status: 200, Content: route.JSON("state")}},
			Errors:  append([]problem.ErrorCode{problem.NotFound}, missing...),
		}, (*request).state),
		room.computed("GET /api/v1/sessions/{session}/digests", access.ScopeRead, route.Doc{
			Summary: "The digest of each projection at a moment",
			Text:    "Machines with equal digests have equal states.",
			Params:  []route.Parameter{atParam()},
			Success: []route.Success{{Status: 200, Content: route.JSON("digests")}},
			Errors:  missing,
		}, (*request).digests),
		room.computed("GET /api/v1/sessions/{session}/diff", access.ScopeRead, route.Doc{
			Summary: "The changes of the state from one moment to another, as a JSON Patch",
			Params: []route.Parameter{
				{Name: "from", Required: true, Text: "the address of the first moment"},
				{Name: "to", Required: true, Text: "the address of the second moment"},
				path,
			},
			Success: []route.Success{{Status: 200, Content: route.JSON("patch")}},
			Errors:  missing,
		}, (*request).diff),
		room.computed("GET /api/v1/sessions/{session}/performances", access.ScopeRead, route.Doc{
			Summary: "The performances that are active at a moment, by their ids",
			Params:  []route.Parameter{atParam()},
			Success: []route.Success{{Status: 200, Content: route.JSON("performances")}},
			Errors:  missing,
		}, (*request).performances),
	}
}

// state answers with the state at a moment, or a part of it.
func (q *request) state() error {
	if file, ok := workspacePath(q.get("path")); ok {
		return q.files(file)
	}
	return q.part(q.get("path"))
}

// performances answers with the performances at a moment.
func (q *request) performances() error { return q.part(session.ProjectionPerformances) }

// part answers with a part of the state at a moment.
func (q *request) part(path string) error {
	return q.atMoment("", func(s *recorded, m replay.Moment) error {
		fold, err := s.travel.At(q.ctx, m)
		if err != nil {
			return err
		}
		view, left, err := answer.State(fold, m, path, answer.ShownLimits())
		if err != nil {
			return err
		}
		if len(left) > 0 {
			q.w.Header().Set("Sajou-Left-Out", termtext.Printable(strings.Join(left, ", ")))
		}
		return q.one(view)
	})
}

// digests answers with the digests at a moment.
func (q *request) digests() error {
	return q.atMoment("", func(s *recorded, m replay.Moment) error {
		fold, err := s.travel.At(q.ctx, m)
		if err != nil {
			return err
		}
		l := &list{q: q}
		for _, d := range fold.Digests() {
			if err := l.add(answer.ViewDigest(d)); err != nil {
				return err
			}
		}
		return l.send()
	})
}

// workspacePath splits the path of a state: the file after workspace/, or "" for all.
func workspacePath(path string) (file string, ok bool) {
	if path == workspace.Name {
		return "", true
	}
	return strings.CutPrefix(path, workspace.Name+"/")
}

// noFile returns the problem of a file that the recording does not have.
func noFile(err error) error {
	return &problem.Details{Code: problem.NotFound, Detail: fmt.Sprintf("%v; the path workspace of state lists the files", err), Err: err}
}

// files answers with a file that the agents worked on, or with all of them.
func (q *request) files(name string) error {
	s, err := q.session()
	if err != nil {
		return err
	}
	m, v, err := q.resolve(s, "at")
	if err != nil {
		return err
	}
	if q.known(v) {
		return nil
	}
	all, err := q.room.engine.Files(q.ctx, s.travel.Name(), m)
	if err != nil {
		return err
	}
	if name != "" {
		f, err := all.File(name)
		if err != nil {
			return noFile(err)
		}
		return q.one(answer.ViewFile(f))
	}
	l := &list{q: q}
	for _, path := range all.Paths() {
		f, err := all.File(path)
		if err != nil {
			return err
		}
		if err := l.add(answer.ViewListedFile(f)); err != nil {
			return err
		}
	}
	return l.send()
}

// diff answers with the changes between two moments.
func (q *request) diff() error {
	s, err := q.session()
	if err != nil {
		return err
	}
	if _, ok := workspacePath(q.get("path")); ok {
		return badRequest("the files of the workspace are not compared; ask for their texts with state")
	}
	var moments [2]replay.Moment
	var versions [2]version
	for i, name := range []string{"from", "to"} {
		if moments[i], versions[i], err = q.resolve(s, name); err != nil {
			return err
		}
	}
	if q.known(version{tag: versions[0].tag + ".." + versions[1].tag, forever: versions[0].forever && versions[1].forever}) {
		return nil
	}
	var views [2]any
	for i, m := range moments {
		fold, err := s.travel.At(q.ctx, m)
		if err != nil {
			return err
		}
		var left []string
		if views[i], left, err = answer.State(fold, m, q.get("path"), answer.ComparedLimits()); err != nil {
			return err
		}
		if len(left) > 0 {
			return problem.New(problem.OverBudget, fmt.Sprintf("the state at %v is too large to compare: %s; name a path", m, strings.Join(left, ", ")))
		}
		if whole, ok := views[i].(map[string]any); ok && q.get("path") == "" {
			delete(whole, "seq")
			delete(whole, "at")
		}
	}
	patch, err := replay.Diff(views[0], views[1])
	if err != nil {
		return err
	}
	return q.send(route.MediaJSON, append(termtext.PrintableJSON(patch), '\n'))
}
