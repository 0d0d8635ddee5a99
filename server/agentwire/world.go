package agentwire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// This file sets up the world of a session: requests of callers with the scope define, not of
// agents.

// body reads the JSON object of a request. An empty body is an empty object.
func body(req *http.Request) (signal.Value, error) {
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		text = []byte("{}")
	}
	v, err := signal.ParseValue(text)
	if err != nil {
		return nil, problem.New(problem.BadRequest, "the body is no JSON text: "+err.Error())
	}
	if v.Kind() != signal.KindObject {
		return nil, problem.New(problem.BadRequest, "the body is no JSON object").At("")
	}
	return v, nil
}

// only returns a problem about the first member of a body that is not among the names.
func only(v signal.Value, names ...string) error {
	for name := range v.Members() {
		known := false
		for _, n := range names {
			known = known || n == name
		}
		if !known {
			return problem.New(problem.Invalid, fmt.Sprintf("/%s: there is no such member; the body takes %s", name, strings.Join(names, ", "))).At("/" + jsonpointer.Escape(name))
		}
	}
	return nil
}

// textIn returns a member of a body that is a text, or "" if it is absent.
func textIn(v signal.Value, name string) (s string, err error) {
	if member, ok := v.Get(name); ok && !text(&s, member) {
		return "", problem.New(problem.Invalid, "/"+name+": want a text").At("/" + name)
	}
	return s, nil
}

// refused turns the error about a value of a body into a problem with its place, if it
// has no code of its own.
func refused(pointer string, err error) error {
	if e, ok := errors.AsType[*view.PolicyError](err); ok {
		return problem.New(problem.Invalid, e.Error()).At(pointer + e.Path)
	}
	if problem.Of(err).Code != problem.Internal || errors.Is(err, context.Canceled) {
		return err
	}
	return problem.New(problem.Invalid, err.Error()).At(pointer)
}

// putWorld begins a session with a world, or changes the configuration of its world.
func (r *AgentDoor) putWorld(w http.ResponseWriter, req *http.Request) error {
	v, err := body(req)
	if err == nil {
		err = only(v, "time", "config", "world")
	}
	if err != nil {
		return err
	}
	clock, err := textIn(v, "time")
	if err != nil {
		return err
	}
	authority := session.TimeAuthority(clock)
	if _, ok := v.Get("time"); !ok {
		authority = session.TimeWall
	} else if !authority.Valid() {
		return problem.New(problem.Invalid, `/time: want "wall", "sim" or "manual"`).At("/time")
	}
	ses, err := r.engine.Begin(req.Context(), route.Session(req), authority)
	if err != nil {
		return err
	}
	if has := ses.TimeAuthority(); has != authority && clock != "" {
		return problem.New(problem.InUse, fmt.Sprintf("/time: the session exists and has the time authority %q; it keeps it", has)).At("/time")
	}
	world := ses.Agents()
	if config, ok := v.Get("config"); ok {
		if err := world.Configure(req.Context(), config); err != nil {
			return refused("/config", err)
		}
	}
	if begin, ok := v.Get("world"); ok {
		err := world.Begin(req.Context(), begin)
		if errors.Is(err, agents.ErrBegun) {
			return problem.New(problem.InUse, "/world: the world has begun; drafts change it").At("/world")
		}
		if err != nil {
			return refused("/world", err)
		}
	}
	if err := world.Settle(req.Context()); err != nil {
		return err
	}
	return answer(w, worldView{string(ses.TimeAuthority()), world.Now().Seconds(), uint64(ses.Head().Seq), unplacedHint(v.Member("world"))})
}

// unplacedHint returns a hint at the entities of a world whose field position gives them
// no place, or "" if there are none. Such a world is valid: the field is data.
func unplacedHint(world signal.Value) string {
	places := world.Member("spatial_index")
	first, n := "", 0
	for id, entity := range world.Member("entities").Members() {
		_, placed := places.Get(id)
		if at, ok := entity.Get(agentworld.FieldPosition); !ok || at.Kind() != signal.KindArray || placed {
			continue
		}
		if n++; n == 1 {
			first = "/world/entities/" + jsonpointer.Escape(id) + "/" + agentworld.FieldPosition
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of the entities have a field position and no place, the first at %.200s: a place is a member of /world/spatial_index", n, first)
}

// worldView is the answer about a world.
type worldView struct {
	Time    string  `json:"time"`
	SimTime float64 `json:"sim_time"`
	Seq     uint64  `json:"seq"`
	Hint    string  `json:"hint,omitempty"` // a frequent mistake in what was sent
}

// putAgent registers an agent.
func (r *AgentDoor) putAgent(w http.ResponseWriter, req *http.Request) error {
	v, err := body(req)
	if err == nil {
		err = only(v, "policy", "permissions", "class")
	}
	if err != nil {
		return err
	}
	ses, err := r.defined(req.Context(), route.Session(req))
	if err != nil {
		return err
	}
	class, err := textIn(v, "class")
	if err != nil {
		return err
	}
	entry := agents.Registration{AgentID: req.PathValue("agent"), Policy: v.Member("policy"), Class: class}
	if list, ok := v.Get("permissions"); ok {
		entry.Permissions = []string{}
		if !texts(&entry.Permissions, list) {
			return problem.New(problem.Invalid, "/permissions: want an array of texts").At("/permissions")
		}
	}
	g, err := ses.Agents().RegisterAs(req.Context(), entry)
	if err != nil {
		return refused("/policy", err)
	}
	g.Close()
	return answer(w, agentView{ses.Name(), entry.AgentID})
}

// agentView is the answer about an agent.
type agentView struct {
	Session string `json:"session"`
	Agent   string `json:"agent"`
}

// deleteAgent lets an agent leave.
func (r *AgentDoor) deleteAgent(w http.ResponseWriter, req *http.Request) error {
	ses, err := r.defined(req.Context(), route.Session(req))
	if err != nil {
		return err
	}
	g, err := ses.Agents().Agent(req.Context(), req.PathValue("agent"))
	if err != nil {
		return absent(err)
	}
	defer g.Close()
	if err := g.Leave(req.Context()); err != nil {
		return absent(err)
	}
	return answer(w, agentView{ses.Name(), g.ID()})
}

// answer writes an answer as JSON.
func answer(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", route.MediaJSON)
	w.Header().Set("Cache-Control", "no-store")
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // the caller may be gone
	return nil
}
