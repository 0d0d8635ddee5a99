package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server/problem"
)

type counter = atomic.Uint64

// need is what the caller of a tool needs.
type need int

const (
	needsRead need = iota
	needsRecord
	needsDefine
)

// tool is one tool. It is immutable.
type tool struct {
	name, title, text string
	needs             need
	paged             bool // it takes a cursor
	schema            *jsonschema.Schema
	resolved          *jsonschema.Resolved
	run               func(ctx context.Context, c *call, arguments json.RawMessage) (*reply, error)
}

// newTool returns a tool whose arguments are the members of A.
func newTool[A any](name, title, text string, run func(ctx context.Context, c *call, args A) (*reply, error)) *tool {
	schema, err := jsonschema.For[A](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[authoredArg]():     {Types: []string{"object", "array", "string"}},
	}})
	if err != nil {
		panic(err) // the types are those of this package
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic(err)
	}
	_, paged := schema.Properties["cursor"]
	return &tool{
		name: name, title: title, text: text, paged: paged, schema: schema, resolved: resolved,
		run: func(ctx context.Context, c *call, arguments json.RawMessage) (*reply, error) {
			var args A
			if err := json.Unmarshal(arguments, &args); err != nil {
				return nil, badArgument(err)
			}
			return run(ctx, c, args)
		},
	}
}

// recording returns the tool as one that records.
func (t *tool) recording(needs need) *tool {
	t.needs = needs
	return t
}

// allowed reports whether the caller may use the tool at all; on which session, the call
// decides.
func (t *tool) allowed(rights Rights) bool {
	switch t.needs {
	case needsRecord:
		return rights.MayRecord("")
	case needsDefine:
		return rights.MayDefine("")
	case needsRead:
	}
	return true
}

// described returns the tool as the client lists it. A session that the configuration names
// is the default of the arguments that may leave it out.
func (t *tool) described(cfg *Config) *sdk.Tool {
	no := false
	text := t.text
	if t.paged {
		text += fmt.Sprintf(" An answer has at most %d bytes of data; for the rest call again with the cursor that is in next.", cfg.MaxBytes)
	}
	schema, session := t.schema, ""
	switch {
	case cfg.Session != "":
		session = strconv.Quote(cfg.Session)
	case t.name == emitTool && cfg.EmitSession != nil:
		session = "the one that the server records into"
	}
	if p := schema.Properties["session"]; p != nil && session != "" && !slices.Contains(schema.Required, "session") {
		schema = schema.CloneSchemas()
		before, _, _ := strings.Cut(p.Description, "; default ")
		schema.Properties["session"].Description = before + "; default " + session
	}
	return &sdk.Tool{
		Name: t.name, Title: t.title, Description: text, InputSchema: schema, OutputSchema: resultSchema,
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.needs == needsRead, IdempotentHint: t.needs == needsRead, DestructiveHint: &no, OpenWorldHint: &no},
	}
}

// arguments checks the arguments of a call, which may be absent.
func (t *tool) arguments(raw json.RawMessage) (json.RawMessage, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	var given map[string]any
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, badArgument(err)
	}
	if err := t.resolved.Validate(given); err != nil {
		return nil, badArgument(err)
	}
	return raw, nil
}

// call is one call of a tool.
type call struct {
	box    *Toolbox
	tool   *tool
	rights Rights
	engine *sajou.Engine
	key    string          // of the arguments, for cursors
	soft   context.Context // ends before the call's own, so that a part of an answer is sent
}

// handler returns the function that answers the calls of a tool. It never
// returns a protocol error: the result of a call tells the model about its errors.
func (b *Toolbox) handler(base context.Context, t *tool, rights Rights) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, b.cfg.Timeout, errTimeout)
		defer cancel()
		defer context.AfterFunc(base, cancel)()
		r, err := b.answer(ctx, t, rights, req.Params.Arguments)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				err = cause
			}
			return b.failed(t, err), nil
		}
		return r.result(), nil
	}
}

// answer runs a call on a goroutine of its own. If the context ends first, it returns, and
// the slot of the call stays taken until the work has ended: a step of a computation that
// does not watch the context cannot pile up.
func (b *Toolbox) answer(ctx context.Context, t *tool, rights Rights, raw json.RawMessage) (*reply, error) {
	arguments, err := t.arguments(raw)
	if err != nil {
		return nil, err
	}
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type outcome struct {
		reply *reply
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-b.slots }()
		r, err := b.work(ctx, t, rights, arguments)
		done <- outcome{r, err}
	}()
	select {
	case o := <-done:
		return o.reply, o.err
	case <-ctx.Done():
		select {
		case o := <-done: // both at once: the answer counts
			return o.reply, o.err
		default:
			return nil, ctx.Err()
		}
	}
}

// work runs a call with an engine.
func (b *Toolbox) work(ctx context.Context, t *tool, rights Rights, arguments json.RawMessage) (r *reply, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			b.cfg.Logger.Error("a tool panicked", slog.String("tool", t.name), slog.Any("reason", reason), slog.String("stack", string(debug.Stack())))
			r, err = nil, errPanic
		}
	}()
	soft, cancel := context.WithTimeout(ctx, b.cfg.Timeout*3/4)
	defer cancel()
	c := &call{box: b, tool: t, rights: rights, key: keyOf(t.name, arguments), soft: soft}
	if t.storeless() {
		return t.run(ctx, c, arguments)
	}
	engine, done, err := b.cfg.Lend(ctx, t.needs != needsRead)
	if err != nil {
		return nil, err
	}
	c.engine = engine
	r, err = t.run(ctx, c, arguments)
	if r != nil && engine.Log().Loss() != nil {
		r.notes = append(r.notes, "The store lost entries at its end, so the answer covers only those that are left.")
	}
	if e := done(); err == nil && e != nil && t.needs != needsRead {
		err = e
	}
	return r, err
}

// storeless reports whether the tool reads its arguments alone.
func (t *tool) storeless() bool { return t.name == "lint" || t.name == "rehearse" }

// onlyKnownMethods refuses the requests of the protocol that the server does not offer,
// such as subscriptions, which would hold a connection without an end.
func onlyKnownMethods(next sdk.MethodHandler) sdk.MethodHandler {
	known := []string{"initialize", "server/discover", "ping", "tools/list", "tools/call", "prompts/list", "prompts/get", "notifications/initialized", "notifications/cancelled", "notifications/progress"}
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if !slices.Contains(known, method) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}
		}
		return next(ctx, method, req)
	}
}

// allTools returns all tools, those that record last.
func allTools() []*tool {
	return slices.Concat(logTools(), stateTools(), searchTools(), causeTools(), pictureTools(), sceneTools(), agentTools(), authorTools(), recordTools())
}

// badArgument is the refusal of the arguments themselves.
func badArgument(err error) error {
	return &refusal{problem.BadRequest, "Correct the arguments: the input schema of the tool lists them with their types. Nothing was done.", err}
}
