// Package otlpexport writes signals as traces of OpenTelemetry: OTLP in JSON, one export
// a line, as the file exporter of the collector does.
//
// # From signals to spans
//
//	task_dispatch … completion       a span invoke_agent, below the open task of the agent that gave it
//	tool_call … tool_result          a span execute_tool, below the open task of its agent
//	text_delta, thinking, token_usage  a span chat: what one agent says in a row, to its token usage
//	error                            a span chat with an exception
//
// The names of attributes are those of the conventions for generative AI from version 1.37
// on. An agent's id stands in gen_ai.agent.id of each of its spans. Other signals have no place
// in a trace and are left out, such as changes of state, which follow from the spans.
//
// An import of the lines gives the same calls with their ids, inputs, results and failures, the same
// texts, tokens, agents and tasks. The ids of tasks are those of the spans then. A span that
// has not ended has no end. A result without its call becomes both. The label of a fork is
// the attribute sajou.fork of the resource.
package otlpexport

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// perLine is the number of spans in one export.
const perLine = 64

// Lines yields the exports of a session's signals, each without its line feed. Fork is the
// label of a session that is a fork, or empty. Signals must be in the order of the session.
// An error of the sequence ends it. It holds no more than the spans that have not ended and
// one line.
func Lines(session, fork string, signals iter.Seq2[*signal.Signal, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		hash := sha256.Sum256([]byte(session))
		w := &writer{
			session: session, fork: fork, trace: hex.EncodeToString(hash[:16]), hash: hex.EncodeToString(hash[16:20]),
			tasks: map[string][]*span{}, byID: map[string]*span{}, calls: map[string][]*span{}, said: map[string]*span{},
		}
		for sig, err := range signals {
			if err != nil {
				yield(nil, err)
				return
			}
			w.add(sig)
			if len(w.ended) >= perLine {
				if !yield(w.line(), nil) {
					return
				}
			}
		}
		w.rest()
		for len(w.ended) > 0 {
			if !yield(w.line(), nil) {
				return
			}
		}
	}
}

// span is a span that is being made.
type span struct {
	id, parent string
	number     int
	name       string
	operation  string
	agent      string
	corr       string
	start, end int64 // nanoseconds; an end of 0 is none
	attributes signal.Object
	exception  signal.Value
	failed     bool
	message    string
	parts      []signal.Value // of what was said
}

type writer struct {
	session string
	fork    string
	trace   string
	hash    string
	number  int
	now     int64
	tasks   map[string][]*span // the open ones of each agent, the newest last
	byID    map[string]*span   // the open ones by task id
	calls   map[string][]*span // the open ones by call id, or by agent and tool
	said    map[string]*span   // what each agent is saying
	ended   []*span
}

// open begins a span at the time of the signal.
func (w *writer) open(operation, name, agent, corr string) *span {
	w.number++
	s := &span{
		id: fmt.Sprintf("%s%08x", w.hash, w.number), number: w.number,
		name: strings.TrimSpace(operation + " " + name), operation: operation, agent: agent, corr: corr, start: w.now,
	}
	return s
}

func (w *writer) close(s *span) {
	s.end = w.now
	w.ended = append(w.ended, s)
}

// task returns the open task that a signal belongs to: that of its correlation, or the newest one of
// its agent.
func (w *writer) task(agent, corr string) *span {
	list := w.tasks[agent]
	for i := len(list) - 1; i >= 0; i-- {
		if corr != "" && list[i].corr == corr {
			return list[i]
		}
	}
	if len(list) > 0 {
		return list[len(list)-1]
	}
	return nil
}

func (w *writer) add(sig *signal.Signal) {
	p, corr := sig.Payload, ""
	if sig.CorrelationID != nil {
		corr = *sig.CorrelationID
	}
	w.now = max(w.now, nanoseconds(sig.Timestamp))
	agent := p.TextOf("agentId")
	switch sig.Type {
	case "text_delta", "thinking", "token_usage":
		w.say(sig, agent, corr)
		return
	case "agent_state_change":
		return
	case "task_dispatch":
		agent = p.TextOf("to")
	}
	// What an agent says ends with whatever it does next.
	w.hush(agent)
	switch sig.Type {
	case "task_dispatch":
		w.dispatch(p, agent, corr)
	case "completion":
		w.complete(p)
	case "tool_call":
		s := w.open("execute_tool", p.TextOf("toolName"), agent, corr)
		s.below(w.task(agent, corr))
		s.text("gen_ai.tool.name", p.TextOf("toolName"))
		s.text("gen_ai.tool.call.id", p.TextOf("callId"))
		s.json("gen_ai.tool.call.arguments", p.Member("input"))
		key := callKey(p, agent)
		w.calls[key] = append(w.calls[key], s)
	case "tool_result":
		w.result(p, agent, corr)
	case "error":
		s := w.open("chat", "", agent, corr)
		s.below(w.task(agent, corr))
		o := signal.NewObject(2).Text("exception.message", p.TextOf("message"))
		if code := p.TextOf("code"); code != "" {
			o.Text("exception.type", code)
		}
		s.exception = o.Value()
		s.failed = p.TextOf("severity") != "warning"
		w.close(s)
	}
}

func (w *writer) dispatch(p signal.Value, agent, corr string) {
	s := w.open("invoke_agent", agent, agent, corr)
	s.below(w.task(p.TextOf("from"), ""))
	if about := p.TextOf("description"); about != "" {
		s.text("gen_ai.input.messages", messages("user", []signal.Value{part("text", about)}))
	}
	w.tasks[agent] = append(w.tasks[agent], s)
	w.byID[p.TextOf("taskId")] = s
}

func (w *writer) complete(p signal.Value) {
	id := p.TextOf("taskId")
	s := w.byID[id]
	if s == nil {
		return
	}
	delete(w.byID, id)
	w.hush(s.agent)
	w.tasks[s.agent] = slices.DeleteFunc(w.tasks[s.agent], func(t *span) bool { return t == s })
	if success, _ := p.Member("success").Bool(); !success {
		s.failed, s.message = true, p.TextOf("result")
	}
	s.text("output.value", p.TextOf("result"))
	w.close(s)
}

func (w *writer) result(p signal.Value, agent, corr string) {
	key := callKey(p, agent)
	var s *span
	if open := w.calls[key]; len(open) > 0 {
		s = open[0]
		if w.calls[key] = open[1:]; len(open) == 1 {
			delete(w.calls, key)
		}
	} else {
		s = w.open("execute_tool", p.TextOf("toolName"), agent, corr)
		s.below(w.task(agent, corr))
		s.text("gen_ai.tool.name", p.TextOf("toolName"))
		s.text("gen_ai.tool.call.id", p.TextOf("callId"))
	}
	s.json("gen_ai.tool.call.result", p.Member("output"))
	if success, _ := p.Member("success").Bool(); !success {
		s.failed = true
	}
	w.close(s)
}

// callKey is what a result and its call have in common.
func callKey(p signal.Value, agent string) string {
	if id := p.TextOf("callId"); id != "" {
		return "id " + id
	}
	return "tool " + strconv.Quote(agent) + p.TextOf("toolName")
}

// say adds to what an agent is saying. A span has one token usage, so that ends it.
func (w *writer) say(sig *signal.Signal, agent, corr string) {
	s := w.said[agent]
	if s != nil && s.corr != corr {
		w.hush(agent)
		s = nil
	}
	if s == nil {
		s = w.open("chat", "", agent, corr)
		s.below(w.task(agent, corr))
		w.said[agent] = s
	}
	s.end = w.now
	p := sig.Payload
	switch sig.Type {
	case "text_delta":
		s.parts = append(s.parts, part("text", p.TextOf("content")))
	case "thinking":
		s.parts = append(s.parts, part("reasoning", p.TextOf("content")))
	case "token_usage":
		if model := p.TextOf("model"); model != "" {
			s.name = "chat " + model
			s.text("gen_ai.response.model", model)
		}
		s.number64("gen_ai.usage.input_tokens", p.Member("promptTokens"))
		s.number64("gen_ai.usage.output_tokens", p.Member("completionTokens"))
		s.number64("gen_ai.usage.cache_read.input_tokens", sig.Metadata.Member("cacheReadTokens"))
		s.number64("gen_ai.usage.cache_creation.input_tokens", sig.Metadata.Member("cacheWriteTokens"))
		s.number64("gen_ai.usage.reasoning.output_tokens", sig.Metadata.Member("reasoningTokens"))
		if cost := p.Member("cost"); cost.Kind() != signal.KindAbsent {
			s.attributes.Add("llm.cost.total", signal.NewObject(1).Add("doubleValue", cost).Value())
		}
		w.hush(agent)
	}
}

// hush ends what an agent is saying.
func (w *writer) hush(agent string) {
	s := w.said[agent]
	if s == nil {
		return
	}
	delete(w.said, agent)
	if len(s.parts) > 0 {
		s.text("gen_ai.output.messages", messages("assistant", s.parts))
	}
	w.ended = append(w.ended, s)
}

// rest adds the spans that have not ended, in the order of their starts.
func (w *writer) rest() {
	for _, agent := range keys(w.said) {
		w.hush(agent)
	}
	var open []*span
	for _, list := range w.tasks {
		open = append(open, list...)
	}
	for _, list := range w.calls {
		open = append(open, list...)
	}
	slices.SortFunc(open, func(a, b *span) int { return a.number - b.number })
	w.ended = append(w.ended, open...)
}

func keys(m map[string]*span) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

func (s *span) below(task *span) {
	if task != nil {
		s.parent = task.id
	}
}

func (s *span) text(name, text string) {
	if text != "" {
		s.attributes.Add(name, signal.NewObject(1).Text("stringValue", text).Value())
	}
}

// json adds a value as its text, as the conventions have the arguments and results of tools.
func (s *span) json(name string, v signal.Value) {
	if v.Kind() != signal.KindAbsent {
		s.text(name, string(v.AppendJSON(nil)))
	}
}

func (s *span) number64(name string, v signal.Value) {
	n, ok := v.Int64()
	if f, isFloat := v.Float64(); !ok && isFloat && f == math.Trunc(f) {
		n, ok = int64(f), true
	}
	if ok {
		s.attributes.Add(name, signal.NewObject(1).Text("intValue", strconv.FormatInt(n, 10)).Value())
	}
}

func part(kind, content string) signal.Value {
	return signal.NewObject(2).Text("type", kind).Text("content", content).Value()
}

// messages returns the JSON of one message.
func messages(role string, parts []signal.Value) string {
	one := signal.NewObject(2).Text("role", role).Add("parts", signal.Array(parts...)).Value()
	return string(signal.Array(one).AppendJSON(nil))
}

// nanoseconds returns a timestamp in nanoseconds, at least 1: zero is no time in OTLP.
func nanoseconds(ms signal.Number) int64 {
	const perMS, most = 1_000_000, math.MaxInt64 / 1_000_000
	v := ms.Value()
	if n, ok := v.Int64(); ok {
		return max(1, min(n, most)*perMS)
	}
	f, _ := v.Float64()
	if !(f > 0) {
		return 1
	}
	whole, fraction := math.Modf(min(f, most))
	return max(1, int64(whole)*perMS+int64(math.Round(fraction*perMS)))
}

// line returns an export of the next spans that have ended.
func (w *writer) line() []byte {
	n := min(len(w.ended), perLine)
	var list []signal.Value
	for _, s := range w.ended[:n] {
		list = append(list, w.value(s))
	}
	w.ended = slices.Clone(w.ended[n:])
	attribute := func(name, text string) signal.Value {
		return signal.NewObject(2).Text("key", name).Add("value", signal.NewObject(1).Text("stringValue", text).Value()).Value()
	}
	about := []signal.Value{attribute("service.name", "sajou")}
	if w.fork != "" {
		about = append(about, attribute("sajou.fork", w.fork))
	}
	resource := signal.NewObject(1).Add("attributes", signal.Array(about...)).Value()
	scope := signal.NewObject(2).Add("scope", signal.NewObject(1).Text("name", "github.com/sajou-dev/sajou-go").Value()).Add("spans", signal.Array(list...)).Value()
	one := signal.NewObject(2).Add("resource", resource).Add("scopeSpans", signal.Array(scope)).Value()
	return signal.NewObject(1).Add("resourceSpans", signal.Array(one)).Value().AppendJSON(nil)
}

// value returns a span as OTLP in JSON has it.
func (w *writer) value(s *span) signal.Value {
	const internal, failed = 1, 2 // SPAN_KIND_INTERNAL, STATUS_CODE_ERROR
	s.text("gen_ai.operation.name", s.operation)
	s.text("gen_ai.agent.id", s.agent)
	s.text("gen_ai.conversation.id", w.session)
	s.attributes.Sort()
	o := signal.NewObject(11).Text("traceId", w.trace).Text("spanId", s.id).Text("parentSpanId", s.parent).Text("name", s.name).Int("kind", internal)
	o.Text("startTimeUnixNano", strconv.FormatInt(s.start, 10)).Text("endTimeUnixNano", strconv.FormatInt(s.end, 10))
	o.Add("attributes", keyValues(s.attributes.Value()))
	if s.exception != nil {
		attributes := signal.NewObject(2)
		for name, v := range s.exception.Members() {
			attributes.Add(name, signal.NewObject(1).Add("stringValue", v).Value())
		}
		event := signal.NewObject(3).Text("timeUnixNano", strconv.FormatInt(s.start, 10)).Text("name", "exception").Add("attributes", keyValues(attributes.Value())).Value()
		o.Add("events", signal.Array(event))
	}
	status := signal.NewObject(2)
	if s.failed {
		status.Int("code", failed)
		if s.message != "" {
			status.Text("message", s.message)
		}
	}
	return o.Add("status", status.Value()).Value()
}

func keyValues(o signal.Value) signal.Value {
	var list []signal.Value
	for name, v := range o.Members() {
		list = append(list, signal.NewObject(2).Text("key", name).Add("value", v).Value())
	}
	return signal.Array(list...)
}
