// Package schema describes the interface of the server: an OpenAPI 3.1 document of all
// routes, and the JSON Schemas (draft 2020-12) of what they take and answer.
//
// A route describes itself, see [route.Doc]; this package assembles the descriptions. A
// schema is one that a package of the engine exports, or a file documents/NAME.schema.json
// here. Those of views are generated from their types by tests: of package internal/answer
// by the tests of this package, of a room by those of the room.
//
// docs/server.md describes the requests, docs/glossary.md has the nouns of all packages.
package schema

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/agentwire"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

//go:embed documents/*.schema.json
var documents embed.FS

// exported are the schemas that packages of the engine export.
var exported = map[string]func() []byte{
	"signal":  signal.Schema,
	"scene":   scene.Schema,
	"episode": episode.Schema,
	"config":  agents.ConfigSchema,
	"policy":  agents.PolicySchema,
	"intent":  agents.IntentSchema,
	"outcome": agents.OutcomeSchema,
	"effect":  world.EffectSchema,
	"view":    view.ViewSchema,
	"delta":   view.DeltaSchema,

	"protocol": agentwire.ProtocolSchema,
}

// suffix ends the names of the files of schemas.
const suffix = ".schema.json"

// Names returns the names of all schemas, sorted.
func Names() []string {
	var names []string
	for name := range exported {
		names = append(names, name)
	}
	files, err := fs.Glob(documents, "documents/*"+suffix)
	if err != nil {
		panic(err) // the pattern is constant
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(file, "documents/"), suffix))
	}
	slices.Sort(names)
	return names
}

// Get returns a schema, or false if there is none of that name.
func Get(name string) ([]byte, bool) {
	if f, ok := exported[name]; ok {
		return f(), true
	}
	text, err := documents.ReadFile("documents/" + name + suffix)
	return text, err == nil
}

// Description serves the description of an interface. Its methods may be called from many
// goroutines.
type Description struct {
	routes func() []route.Endpoint
}

// New returns the description of the routes that a function returns. It is called with the
// first request, when all routes are known.
func New(routes func() []route.Endpoint) *Description { return &Description{routes} }

// Media types of the description.
const (
	mediaOpenAPI = "application/openapi+json"
	mediaSchema  = "application/schema+json"
)

// Routes returns the routes of the description.
func (d *Description) Routes() []route.Endpoint {
	return []route.Endpoint{
		{Pattern: "GET /api/v1/openapi.json", Scope: access.ScopePublic, Handler: d.openAPI, Doc: &route.Doc{
			Summary: "This document",
			Success: []route.Success{{Status: http.StatusOK, Content: []route.Content{{Type: mediaOpenAPI, Schema: "openapi"}}}},
		}},
		{Pattern: "GET /api/v1/schemas", Scope: access.ScopePublic, Handler: d.list, Doc: &route.Doc{
			Summary: "The names of the JSON Schemas",
			Success: []route.Success{{Status: http.StatusOK, Content: route.JSON("names")}},
		}},
		{Pattern: "GET /api/v1/schemas/{name}", Scope: access.ScopePublic, Handler: d.schema, Doc: &route.Doc{
			Summary: "A JSON Schema, draft 2020-12",
			Success: []route.Success{{Status: http.StatusOK, Content: []route.Content{{Type: mediaSchema, Schema: "schema"}}}},
			Errors:  []problem.ErrorCode{problem.NotFound},
		}},
	}
}

func (d *Description) openAPI(w http.ResponseWriter, _ *http.Request) error {
	text, err := json.MarshalIndent(Document(d.routes()), "", " ")
	if err != nil {
		return err
	}
	return send(w, mediaOpenAPI, append(text, '\n'))
}

func (*Description) list(w http.ResponseWriter, _ *http.Request) error {
	text, err := json.Marshal(Names())
	if err != nil {
		return err
	}
	return send(w, route.MediaJSON, append(text, '\n'))
}

func (*Description) schema(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	text, ok := Get(name)
	if !ok {
		return problem.New(problem.NotFound, fmt.Sprintf("there is no schema %.80q; GET /api/v1/schemas lists them", name))
	}
	return send(w, mediaSchema, text)
}

func send(w http.ResponseWriter, media string, text []byte) error {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(text) // the caller may be gone
	return nil
}
