package route

import "github.com/sajou-dev/sajou-go/server/problem"

// Doc describes an endpoint for its callers. Package server/schema assembles the OpenAPI
// document of the server from the Docs of all routes, and a test of package server
// provokes each error and compares each answer with its schema.
//
// An endpoint of the path /api/v1/sessions/{session}/head is described beside its
// handler:
//
//	route.Endpoint{
//		Pattern: "GET /api/v1/sessions/{session}/head",
//		Scope:   access.ScopeRead,
//		Handler: r.head,
//		Doc: &route.Doc{
//			Summary: "The head of a session",
//			Params:  []route.Parameter{{Name: "wait", Type: "integer", Text: "milliseconds to wait for another head"}},
//			Success: []route.Success{{Status: 200, Content: route.JSON("head")}},
//			Errors:  []problem.ErrorCode{problem.NoSession},
//		},
//	}
//
// The name of a schema is that of a document of server/schema: a file
// server/schema/documents/NAME.schema.json, or a schema that a package of the engine
// exports, such as "signal".
type Doc struct {
	// Summary says in one phrase what the request does or returns.
	Summary string

	// Text adds what a caller has to know beside it, in sentences. It may be empty.
	Text string

	// Params are the parameters of the query, the header and the path. A wildcard of
	// the pattern that is not listed is a string.
	Params []Parameter

	// Body are the bodies that the request may have, one for each media type; nil if it
	// takes none.
	Body []Content

	// Success are the answers that are not problem documents.
	Success []Success

	// Socket describes the messages of a WebSocket; nil if the route is none.
	Socket *SocketMessages

	// Errors are the problems that the handler returns. Those that the middleware
	// returns at a route are not repeated; see server/schema.Common.
	Errors []problem.ErrorCode

	// ErrorSchema is the schema of the errors in JSON of an endpoint with an ErrorForm.
	ErrorSchema string

	// Reference marks a route of the reference server or of another protocol, whose
	// clients know its answers.
	Reference bool
}

// Parameter is one parameter of a request.
type Parameter struct {
	Name     string
	In       string   // "query", "header" or "path"; empty means query
	Type     string   // "string", "integer", "number" or "boolean"; empty means string
	Enum     []string // the values that it can have; nil for any
	Repeated bool     // it may be given more than once
	Required bool     // parameters of the path always are
	Text     string   // what it means
}

// Content is one form of a body.
type Content struct {
	Type string // the media type

	// Schema is the name of the schema of the JSON document; of each line for
	// application/x-ndjson, and of the data of each event for text/event-stream. Empty
	// means that no schema describes the body.
	Schema string
}

// SocketMessages describes the messages of a WebSocket, each one text frame with a JSON
// document.
type SocketMessages struct {
	Subprotocol string // empty if there is none
	Client      string // the schema of the messages of the client; empty if it sends none
	Server      string // the schema of the messages of the server
}

// Success is one answer that is not a problem document.
type Success struct {
	Status  int
	Text    string    // when it comes; empty for the usual answer
	Content []Content // one for each media type; nil for an answer without a body
}

// The media types of JSON.
const (
	MediaJSON   = "application/json"
	MediaNDJSON = "application/x-ndjson"
)

// JSON returns the content of a JSON document with a schema.
func JSON(schema string) []Content { return []Content{{MediaJSON, schema}} }
