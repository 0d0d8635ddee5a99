package agentwire

import (
	"net/http"

	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// Routes returns the routes of the room.
func (r *AgentDoor) Routes() []route.Endpoint {
	const (
		session = "/api/v1/sessions/{session}"
		agent   = session + "/agents/{agent}"
	)
	most := r.cfg.MaxMessage
	content := func(media, schema string) []route.Content { return []route.Content{{Type: media, Schema: schema}} }
	ok := func(c []route.Content) []route.Success { return []route.Success{{Status: http.StatusOK, Content: c}} }
	upgraded := []route.Success{{Status: http.StatusSwitchingProtocols, Text: "the connection is a WebSocket"}}
	messages := func(subprotocol, name string) *route.SocketMessages {
		return &route.SocketMessages{Subprotocol: subprotocol, Client: "protocol#/$defs/" + name + "_to_server", Server: "protocol#/$defs/server_to_" + name}
	}
	errs := func(codes ...problem.ErrorCode) []problem.ErrorCode { return codes }
	// acting are the problems of callers who may act as no agent, or not as this one.
	acting := func(codes ...problem.ErrorCode) []problem.ErrorCode {
		return append(codes, problem.Unauthenticated, problem.Forbidden, problem.NoSession, problem.NoAgent)
	}
	writing := func(codes ...problem.ErrorCode) []problem.ErrorCode {
		return append(codes, problem.ReadOnly, problem.DiskFull, problem.Stopping)
	}
	return []route.Endpoint{
		// The caller of a socket may be known only after the first message. The others of an
		// agent ask as which agent the caller may act, which no scope of a route says.
		{Pattern: "GET " + agent + "/ws", Scope: access.ScopePublic, Stream: true, Handler: r.agentSocket, Doc: &route.Doc{
			Summary: "The WebSocket of an agent", Text: "The subprotocol is sajou.agent.v1; docs/protocol.md describes it.",
			Success: upgraded, Socket: messages(SubprotocolAgent, "agent"), Errors: errs(problem.BadRequest),
		}},
		{Pattern: "GET " + agent + "/events", Scope: access.ScopePublic, Stream: true, Handler: r.agentEvents, Doc: &route.Doc{
			Summary: "The messages for an agent as a stream of events",
			Params:  []route.Parameter{{Name: "Last-Event-ID", In: "header", Type: "integer", Text: "the view_seq of the last observation"}},
			Success: ok(content("text/event-stream", "agent-event")), Errors: acting(problem.BadRequest),
		}},
		{Pattern: "POST " + agent + "/intents", Scope: access.ScopePublic, MaxBody: most, Handler: r.postIntent, Doc: &route.Doc{
			Summary: "Submit an intent, and wait for its outcome", Body: route.JSON("protocol#/$defs/intent"), Success: ok(route.JSON("intent-reply")), Errors: writing(acting(problem.BadRequest)...),
		}},
		{Pattern: "POST " + agent + "/cancel", Scope: access.ScopePublic, MaxBody: most, Handler: r.postCancel, Doc: &route.Doc{
			Summary: "Cancel a request of an agent", Body: route.JSON("protocol#/$defs/cancel"), Success: ok(route.JSON("cancel-reply")), Errors: acting(problem.BadRequest),
		}},
		{Pattern: "POST " + agent + "/tokens", Scope: access.ScopePublic, MaxBody: most, Handler: r.postTokens, Doc: &route.Doc{
			Summary: "Begin, stream and end generations", Body: content(route.MediaNDJSON, "agent-submission"), Success: ok(content(route.MediaNDJSON, "agent-reply")), Errors: errs(problem.InUse, problem.Unauthenticated, problem.Forbidden, problem.NoSession),
		}},
		{Pattern: "GET " + session + "/sim/ws", Scope: access.ScopePublic, Stream: true, Handler: r.simSocket, Doc: &route.Doc{
			Summary: "The WebSocket of the holder of the authority over time", Text: "The subprotocol is sajou.sim.v1; docs/protocol.md describes it.",
			Success: upgraded, Socket: messages(SubprotocolSim, "sim"), Errors: errs(problem.BadRequest),
		}},
		{Pattern: "PUT " + session + "/world", Scope: access.ScopeDefine, MaxBody: most, Handler: r.putWorld, Doc: &route.Doc{
			Summary: "Begin a session with a world of agents, or configure its world", Body: route.JSON("world-request"), Success: ok(route.JSON("world-answer")),
			Errors: writing(problem.BadRequest, problem.InUse),
		}},
		{Pattern: "PUT " + agent, Scope: access.ScopeDefine, MaxBody: most, Handler: r.putAgent, Doc: &route.Doc{
			Summary: "Register an agent", Body: route.JSON("agent-request"), Success: ok(route.JSON("agent-answer")), Errors: writing(problem.BadRequest, problem.NoAgent),
		}},
		{Pattern: "DELETE " + agent, Scope: access.ScopeDefine, Handler: r.deleteAgent, Doc: &route.Doc{
			Summary: "Let an agent leave", Success: ok(route.JSON("agent-answer")), Errors: writing(problem.NoAgent),
		}},
		{Pattern: "POST " + session + "/director/start", Scope: access.ScopeDefine, MaxBody: most, Handler: r.startEpisode, Doc: &route.Doc{
			Summary: "Begin an episode", Body: route.JSON("start-request"), Success: ok(route.JSON("started")), Errors: writing(problem.BadRequest, problem.InUse),
		}},
		{Pattern: "POST " + session + "/director/guide", Scope: access.ScopeDefine, MaxBody: most, Handler: r.guide, Doc: &route.Doc{
			Summary: "Open a turn, and get the guidance for the character", Body: route.JSON("guide-request"), Success: ok(route.JSON("guidance")),
			Errors: writing(problem.BadRequest, problem.InUse),
		}},
		{Pattern: "POST " + session + "/director/respond", Scope: access.ScopeDefine, MaxBody: most, Handler: r.respond, Doc: &route.Doc{
			Summary: "Record a response of the character, and get what came of it", Body: route.JSON("respond-request"), Success: ok(route.JSON("response")),
			Errors: writing(problem.BadRequest, problem.InUse),
		}},
		{Pattern: "POST " + session + "/director/choose", Scope: access.ScopeDefine, MaxBody: most, Handler: r.choose, Doc: &route.Doc{
			Summary: "Make the user's choice, which becomes the user's message", Body: route.JSON("choose-request"), Success: ok(route.JSON("chosen")),
			Errors: writing(problem.BadRequest, problem.NotFound, problem.InUse),
		}},
	}
}
