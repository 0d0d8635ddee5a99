package read

import (
	"encoding/json"
	"fmt"
	"io"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// maxDefinitions bounds a body of declarations, in bytes.
const maxDefinitions = 8 << 20

func (room *Library) definitionRoutes() []route.Endpoint {
	define := room.computed("POST /api/v1/sessions/{session}/definitions", access.ScopeDefine, route.Doc{
		Summary: "Bring declarations into force",
		Text: "The body is one declaration or an array of them: choreographies, sequences, easings, bindings, a scene. All come into force, or none. " +
			"One that is in force already is not recorded again. The session is begun if it does not exist.",
		Params: []route.Parameter{
			{Name: "Idempotency-Key", In: "header", Text: "a repeat with the same key returns the first outcome"},
			{Name: "If-Match", In: "header", Text: "the head that the session must have, as its ETag"},
		},
		Body:    []route.Content{{Type: route.MediaJSON, Schema: "declarations"}},
		Success: []route.Success{{Status: 200, Content: route.JSON("defined")}},
		Errors:  []problem.ErrorCode{problem.Invalid, problem.TooLarge, problem.Conflict, problem.ReadOnly, problem.DiskFull},
	}, (*request).define)
	define.MaxBody = maxDefinitions
	return []route.Endpoint{
		room.computed("GET /api/v1/sessions/{session}/definitions", access.ScopeRead, route.Doc{
			Summary: "The declarations that are in force at a moment, as they were written",
			Params:  []route.Parameter{atParam(), formatParam()},
			Success: []route.Success{{Status: 200, Content: listed("declarations-in-force", "declaration")}},
			Errors:  []problem.ErrorCode{problem.NoSession, problem.NoMoment, problem.NotAcceptable},
		}, (*request).definitions),
		define,
	}
}

// definitions lists what is in force.
func (q *request) definitions() error {
	return q.listAtMoment(func(s *recorded, m replay.Moment, l *list) error {
		fold, err := s.travel.At(q.ctx, m)
		if err != nil {
			return err
		}
		if st := session.StageOf(fold); st != nil && st.Scene() != nil && st.Scene() != scene.Default() {
			sc := st.Scene()
			if err := l.add(answer.ViewDeclaration(sc.Word(), sc.Name(), sc.Value())); err != nil {
				return err
			}
		}
		if p, ok := fold.State(session.ProjectionPerformances).(replay.Choreographer); ok {
			for d := range p.Scheduler().Catalog().All() {
				if err := l.add(answer.ViewDeclaration(d.Word(), d.Name(), d.Value())); err != nil {
					return err
				}
			}
		}
		if d := session.DirectorOf(fold); d != nil && d.Declared() != nil {
			e := d.Declared()
			return l.add(answer.ViewDeclaration(e.Word(), e.ID, e.Value()))
		}
		return nil
	})
}

// define brings the declarations of the body into force.
func (q *request) define() error {
	text, err := io.ReadAll(q.r.Body)
	if err != nil {
		return err
	}
	name := route.Session(q.r)
	ses, err := q.room.engine.Session(q.ctx, name)
	if err != nil {
		return err
	}
	addition := sajou.Addition{Key: q.r.Header.Get("Idempotency-Key")}
	if expect := q.r.Header.Get("If-Match"); expect != "" {
		if addition.Expect, err = parseTag(expect); err != nil {
			return err
		}
	}
	inForce, err := q.inForce(ses)
	if err != nil {
		return err
	}
	declared, err := readDeclarations(inForce.Catalog(), text)
	if err != nil {
		return err
	}
	head := ses.Head()
	if addition.Declarations = lint.Changed(inForce.Unchanged(declared), inForce.scene, declared); len(addition.Declarations) > 0 || !addition.Expect.IsZero() && addition.Expect != head {
		if len(addition.Declarations) == 0 {
			return &eventlog.ConflictError{Head: head}
		}
		receipt, err := ses.Record(q.ctx, addition)
		if err != nil {
			return err
		}
		head = receipt.Head
	}
	q.w.Header().Set("Cache-Control", "no-store")
	return q.one(answer.DefinedView{
		Session: name, Definitions: len(addition.Declarations), Unchanged: len(declared) - len(addition.Declarations), Head: session.ViewHead(head),
	})
}

// parseTag reads a head from an ETag.
func parseTag(text string) (eventlog.Head, error) {
	var tag string
	if err := json.Unmarshal([]byte(text), &tag); err != nil {
		return eventlog.Head{}, badRequest("If-Match: %.80s is not a quoted head, such as \"54:e374…\"", text)
	}
	head, err := eventlog.ParseHead(tag)
	if err != nil {
		return head, badRequest("If-Match: %v", err)
	}
	return head, nil
}

// inForce is what is in force at the end of a session.
type inForce struct {
	*choreography.Scheduler
	scene *scene.Scene
}

func (q *request) inForce(ses *sajou.Session) (inForce, error) {
	none := inForce{Scheduler: choreography.NewScheduler()}
	head := ses.Head()
	if head.Seq == 0 {
		return none, nil
	}
	fold, err := ses.At(q.ctx, replay.Moment{Seq: head.Seq})
	if err != nil {
		return none, err
	}
	p, ok := fold.State(session.ProjectionPerformances).(replay.Choreographer)
	if !ok {
		return none, nil
	}
	return inForce{p.Scheduler(), session.StageOf(fold).Scene()}, nil
}

// readDeclarations reads the declarations of a body, which may refer to the catalog.
func readDeclarations(c *language.Catalog, text []byte) ([]language.Declaration, error) {
	declared, _, diagnostics := lint.Read(c, "body.json", text)
	if diagnostics.Refused() {
		return nil, diagnostics.Err(definition.ErrInvalid)
	}
	if len(declared) == 0 {
		return nil, fmt.Errorf("%w: the body has no declaration", definition.ErrInvalid)
	}
	all := make([]language.Declaration, len(declared))
	for i := range declared {
		all[i] = declared[i].Declaration
	}
	return all, nil
}
