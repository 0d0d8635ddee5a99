package record

import (
	"log/slog"
	"net/http"
	"strconv"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/signal"
)

// referenceRoutes are the routes of the reference server of Sajou. Its clients know their
// answers.
func (rv *Receiver) referenceRoutes() []route.Endpoint {
	writing := []problem.ErrorCode{problem.ReadOnly, problem.DiskFull, problem.Stopping}
	recording := append([]problem.ErrorCode{problem.BadRequest, problem.MediaUnsupported, problem.Deleted}, writing...)
	events := func(schema string) []route.Content {
		return []route.Content{{Type: "text/event-stream", Schema: schema}}
	}
	which := []route.Parameter{
		{Name: "session", Text: "the session; without it the one that the server records into"},
		{Name: SessionHeader, In: "header", Text: "the same"},
	}
	resume := append([]route.Parameter{{Name: lastEventID, In: "header", Text: "the id of the last event that the client got"}}, which...)
	doc := func(summary string, content []route.Content, errs ...problem.ErrorCode) *route.Doc {
		return &route.Doc{Summary: summary, Reference: true, Success: []route.Success{{Status: http.StatusOK, Content: content}}, Errors: errs}
	}
	with := func(d *route.Doc, body []route.Content, params ...route.Parameter) *route.Doc {
		d.Body, d.Params = body, params
		return d
	}
	tap := func(summary string) *route.Doc {
		d := doc(summary, route.JSON("hooks-answer"))
		d.Success = append(d.Success,
			route.Success{Status: http.StatusForbidden, Text: "the server may not change the settings", Content: route.JSON("hooks-answer")},
			route.Success{Status: http.StatusInternalServerError, Text: "the settings cannot be changed", Content: route.JSON("hooks-answer")})
		return d
	}
	frames := func(refusal problem.ErrorCode) *route.Doc {
		return &route.Doc{
			Summary: "Records signals over WebSocket", Reference: true,
			Text:    "Each text frame has one signal, as POST /api/signal takes it. With ack=true each is answered, in order.",
			Params:  append([]route.Parameter{{Name: "ack", Type: "boolean", Text: "answer each frame"}}, which...),
			Success: []route.Success{{Status: http.StatusSwitchingProtocols}},
			Socket:  &route.SocketMessages{Client: "any", Server: "frame-answer"},
			Errors:  []problem.ErrorCode{problem.BadRequest, refusal},
		}
	}
	looking := []problem.ErrorCode{problem.BadRequest, problem.Deleted, problem.NoSession}
	return []route.Endpoint{
		{Pattern: "POST /api/signal", Scope: access.ScopeRecord, MaxBody: rv.cfg.MaxBody, Handler: rv.postSignal, Doc: with(doc("Records a signal", route.JSON("accepted"), append(recording, problem.NoSession)...), route.JSON("any"), which...)},
		{Pattern: "GET /api/signal", Scope: access.ScopeRecord, Stream: true, Handler: rv.frames, Doc: frames(problem.MethodNotAllowed)},
		{Pattern: "GET /{$}", Scope: access.ScopeRecord, Stream: true, Handler: rv.frames, Doc: frames(problem.NotFound)},
		{Pattern: "GET /ws", Scope: access.ScopeRecord, Stream: true, Handler: rv.frames, Doc: frames(problem.NotFound)},
		{Pattern: "GET /__signals__/stream", Scope: access.ScopeRead, Stream: true, Handler: rv.signals(false), Doc: with(doc("The signals of a session as they are recorded", events("recorded-signal"), looking...), nil, resume...)},
		{Pattern: "GET /__signals__/plain", Scope: access.ScopeRead, Stream: true, Handler: rv.signals(true), Doc: with(doc("The same with nothing but data lines", events("recorded-signal"), looking...), nil, resume...)},
		{Pattern: "GET /__commands__/stream", Scope: access.ScopeRead, Stream: true, Handler: rv.commands, Doc: with(doc("The commands of a session as they are performed", events("command"), looking...), nil, which...)},
		{Pattern: "GET /api/discover/local", Scope: access.ScopeRead, Handler: rv.discover, Doc: doc("The sources of signals on this machine", route.JSON("sources"))},
		{Pattern: "POST /api/tap/connect", Scope: access.ScopeRecord, Handler: rv.tap(true), Doc: tap("Installs the hooks of Claude Code")},
		{Pattern: "POST /api/tap/disconnect", Scope: access.ScopeRecord, Handler: rv.tap(false), Doc: tap("Removes the hooks of Claude Code")},
		{Pattern: "GET /api/state/full", Scope: access.ScopeRead, Handler: rv.fullState, Doc: doc("The state that a scene-builder has pushed", route.JSON("pushed-state"))},
		{Pattern: "POST /api/state/push", Scope: access.ScopeRecord, MaxBody: rv.cfg.MaxBody, Handler: rv.pushState, Doc: with(doc("Keeps the state of a scene-builder for those who ask for it", route.JSON("pushed"), problem.BadRequest, problem.MediaUnsupported), route.JSON("any"))},
		{Pattern: "GET /api/scene/state", Scope: access.ScopeRead, Handler: rv.sceneState, Doc: with(doc("The scene as it is seen now", route.JSON("scene-state"), looking...), nil, which...)},
		{Pattern: "GET /api/choreographies", Scope: access.ScopeRead, Handler: rv.choreographies, Doc: with(doc("The choreographies in force", route.JSON("choreographies"), looking...), nil, which...)},
	}
}

// postSignal records one signal, as the reference server takes it. Its clients do not read
// a refusal, so the log has it.
func (rv *Receiver) postSignal(w http.ResponseWriter, r *http.Request) error {
	err := rv.recordSignal(w, r)
	if err != nil {
		// The server itself logs what is its own fault; too many requests would be too many lines.
		if status := problem.Of(err).Status(); status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
			rv.cfg.Logger.Warn("a signal was not recorded", slog.Any("err", err))
		}
	}
	return err
}

func (rv *Receiver) recordSignal(w http.ResponseWriter, r *http.Request) error {
	if err := rv.admit(); err != nil {
		return err
	}
	defer rv.done()
	body, release, err := readBody(r, rv.cfg.MaxBody)
	if err != nil {
		return err
	}
	defer release()
	sig, err := Envelope(body, rv.cfg.Now(), rv.cfg.NewID)
	if err != nil {
		return err
	}
	name, err := rv.sessionFor(r, sig)
	if err != nil {
		return err
	}
	ses, err := rv.open(r.Context(), access.ScopeRecord, name)
	if err != nil {
		return err
	}
	receipt, err := ses.Record(r.Context(), reference(sig))
	if err != nil {
		return err
	}
	rv.feed.add(name, receipt)
	w.Header()["Content-Type"] = jsonType
	_, _ = w.Write(rv.accepted(make([]byte, 0, 128), sig))
	return nil
}

// jsonType is the header of answers in JSON. It is shared and not changed.
var jsonType = []string{"application/json; charset=utf-8"}

// reference returns the addition of a signal of the reference protocol, which no rule of
// the schema or of time refuses.
func reference(sig *signal.Signal) sajou.Addition {
	return sajou.Addition{Signals: []*signal.Signal{sig}, Lenient: true}
}

// accepted appends the answer of the reference server to a signal.
func (rv *Receiver) accepted(dst []byte, sig *signal.Signal) []byte {
	dst = idJSON(append(dst, `{"ok":true,"id":`...), sig)
	dst = strconv.AppendInt(append(dst, `,"clients":`...), rv.clients.Load(), 10)
	return append(dst, '}')
}
