package schema

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// Common returns the problems that the middleware returns at a route, whatever its
// handler does.
func Common(e *route.Endpoint) []problem.ErrorCode {
	codes := []problem.ErrorCode{problem.OriginRefused, problem.TooMany, problem.Internal}
	session := strings.Contains(e.Pattern, "{"+route.SessionWildcard+"}")
	if session {
		codes = append(codes, problem.Invalid, problem.Damaged) // the name, and the session
	}
	if e.Scope != access.ScopePublic {
		codes = append(codes, problem.Unauthenticated, problem.Forbidden)
		if session {
			codes = append(codes, problem.NoSession, problem.Deleted) // also for callers without any grant for it
		}
	}
	if e.MaxBody != 0 {
		codes = append(codes, problem.TooLarge, problem.Timeout)
	}
	return codes
}

// Errors returns all problems of a route, in the order of their status.
func Errors(e *route.Endpoint) []problem.ErrorCode {
	codes := Common(e)
	if e.Doc != nil {
		codes = append(codes, e.Doc.Errors...)
	}
	var all []problem.ErrorCode
	for _, class := range problem.Classes() {
		if slices.Contains(codes, class.Code) {
			all = append(all, class.Code)
		}
	}
	return all
}

// object is a JSON object.
type object = map[string]any

// Document returns the OpenAPI 3.1 document of routes.
func Document(routes []route.Endpoint) map[string]any {
	paths := object{}
	for i := range routes {
		e := &routes[i]
		method, path := split(e.Pattern)
		item, ok := paths[path].(object)
		if !ok {
			item = object{}
			paths[path] = item
		}
		item[strings.ToLower(method)] = operation(e, method, path)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Sajou", "version": "1",
			"description": "Sessions of agents: record, read, follow, search. Moments and ranges are written as on the command line. " +
				"Every error is a problem document (RFC 9457), unless the operation describes another one. " +
				"x-sajou-reference marks the operations of Sajou's reference server and of other protocols, " +
				"x-sajou-socket the messages of a WebSocket.",
		},
		"jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
		"paths":             paths,
		"components": object{
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
		},
	}
}

// split returns the method and the path of a pattern. A wildcard for the rest of a path
// becomes one for a segment, and the end mark of a pattern disappears.
func split(pattern string) (method, path string) {
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		method, path = "GET", pattern
	}
	return method, strings.ReplaceAll(strings.ReplaceAll(path, "...}", "}"), "{$}", "")
}

var wildcard = regexp.MustCompile(`\{([^}]+)\}`)

func operation(e *route.Endpoint, method, path string) object {
	op := object{"operationId": identifier(method, path), "responses": responses(e)}
	if e.Scope != access.ScopePublic {
		op["security"] = []object{{"token": []string{}}}
		op["x-sajou-scope"] = string(e.Scope)
	}
	var params []object
	listed := map[string]bool{}
	if d := e.Doc; d != nil {
		op["summary"] = d.Summary
		if d.Text != "" {
			op["description"] = d.Text
		}
		if d.Reference {
			op["x-sajou-reference"] = true
		}
		for i := range d.Params {
			p := parameter(&d.Params[i])
			params = append(params, p)
			if p["in"] == "path" {
				listed[d.Params[i].Name] = true
			}
		}
		if d.Socket != nil {
			op["x-sajou-socket"] = socket(d.Socket)
		}
		if d.Body != nil {
			op["requestBody"] = object{"required": true, "content": contents(d.Body)}
		}
	}
	for _, m := range wildcard.FindAllStringSubmatch(path, -1) {
		if !listed[m[1]] {
			params = append(params, parameter(&route.Parameter{Name: m[1], In: "path", Text: map[string]string{route.SessionWildcard: "the name of the session"}[m[1]]}))
		}
	}
	if params != nil {
		op["parameters"] = params
	}
	return op
}

// identifier names an operation by its method and its path.
func identifier(method, path string) string {
	var b strings.Builder
	b.WriteString(strings.ToLower(method))
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func parameter(p *route.Parameter) object {
	in, kind := p.In, p.Type
	if in == "" {
		in = "query"
	}
	if kind == "" {
		kind = "string"
	}
	schema := object{"type": kind}
	if p.Enum != nil {
		schema["enum"] = p.Enum
	}
	if p.Repeated {
		schema = object{"type": "array", "items": schema}
	}
	o := object{"name": p.Name, "in": in, "schema": schema, "required": p.Required || in == "path"}
	if p.Text != "" {
		o["description"] = p.Text
	}
	return o
}

func contents(list []route.Content) object {
	o := object{}
	for _, c := range list {
		media := object{}
		if c.Schema != "" {
			media["schema"] = reference(c.Schema)
		}
		o[c.Type] = media
	}
	return o
}

// socket describes the messages of a WebSocket, for which OpenAPI has no words.
func socket(m *route.SocketMessages) object {
	o := object{"server": reference(m.Server)}
	if m.Client != "" {
		o["client"] = reference(m.Client)
	}
	if m.Subprotocol != "" {
		o["subprotocol"] = m.Subprotocol
	}
	return o
}

// StatusOf returns the status of a problem at a route. A foreign origin is refused before the
// route is known, so its form does not count.
func StatusOf(e *route.Endpoint, code problem.ErrorCode) int {
	if e.ErrorForm == nil || code == problem.OriginRefused {
		return problem.ClassOf(code).Status
	}
	status, _, _ := e.ErrorForm(&http.Request{Header: http.Header{}}, problem.New(code, ""))
	return status
}

// ownForm returns the content of the errors of a route that has a form of its own for them,
// in each media type that it takes.
func ownForm(e *route.Endpoint) object {
	o := object{}
	for _, body := range e.Doc.Body {
		_, media, _ := e.ErrorForm(&http.Request{Header: http.Header{"Content-Type": {body.Type}}}, problem.New(problem.Internal, ""))
		content := object{}
		if media == route.MediaJSON {
			content["schema"] = reference(e.Doc.ErrorSchema)
		}
		o[media] = content
	}
	return o
}

func reference(schema string) object { return object{"$ref": "schemas/" + schema} }

func responses(e *route.Endpoint) object {
	o := object{}
	if e.Doc != nil {
		for _, s := range e.Doc.Success {
			text := s.Text
			if text == "" {
				text = "The answer"
			}
			r := object{"description": text}
			if s.Content != nil {
				r["content"] = contents(s.Content)
			}
			o[strconv.Itoa(s.Status)] = r
		}
	}
	byStatus := map[int][]problem.ErrorClass{}
	for _, code := range Errors(e) {
		status := StatusOf(e, code)
		byStatus[status] = append(byStatus[status], problem.ClassOf(code))
	}
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		var texts, codes []string
		for _, class := range byStatus[status] {
			texts, codes = append(texts, class.Title), append(codes, string(class.Code))
		}
		content := object{}
		if e.ErrorForm == nil || slices.Contains(codes, string(problem.OriginRefused)) {
			content[problem.MediaType] = object{"schema": reference("problem")}
		}
		if e.ErrorForm != nil {
			maps.Copy(content, ownForm(e))
		}
		// The reference server has answers of its own for some errors.
		if own, ok := o[strconv.Itoa(status)].(object); ok {
			texts = append(texts, own["description"].(string))
			maps.Copy(content, own["content"].(object))
		}
		o[strconv.Itoa(status)] = object{"description": strings.Join(texts, "; "), "x-sajou-codes": codes, "content": content}
	}
	return o
}
