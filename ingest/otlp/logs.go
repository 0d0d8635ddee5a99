package otlp

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/spans"
	"github.com/sajou-dev/sajou-go/signal"
)

// logRecord is a log record that tells of an agent.
type logRecord struct {
	rec     recording.NativeRecord
	id      string
	at      recording.Instant
	timed   bool
	name    string // of the event
	about   signal.Value
	body    signal.Value
	trace   string
	span    string
	service string
}

// logs holds the log records of a file until all are known. They become spans: a prompt is the task
// of an agent, and an event that tells the end of a call is a span that ends then.
type logs struct {
	c    *spans.Collection
	list []logRecord
	held int
	id   string // of the next record; empty: its number
}

// programs are the prefixes of the events of programs, and their agents.
var programs = []struct{ prefix, agent string }{{"claude_code.", "claude"}, {"codex.", "codex"}}

// event returns the name of the event that a record tells of.
func (r *logRecord) event() string {
	name := r.name
	if t := r.about.TextOf("event.name"); t != "" && name == "" {
		name = t
	}
	if t, isText := r.body.Text(); isText && name == "" {
		name = t
	}
	// Some programs leave the prefix to the scope or the body.
	if t, isText := r.body.Text(); isText && strings.HasSuffix(t, "."+name) {
		name = t
	}
	return name
}

// session returns the native id of the session that a record belongs to, or "".
func (r *logRecord) session() string {
	return first(r.about, "session.id", "conversation.id", "gen_ai.conversation.id")
}

// add adds a log record, or skips one that tells of something else.
func (l *logs) add(r logRecord) error {
	if r.name = r.event(); !relevant(r.name) {
		l.c.Skip(r.rec, "other event")
		return nil
	}
	if len(l.list) >= spans.MaxSpans || l.held > spans.MaxBytes {
		return &recording.PlaceError{Place: r.rec.Place, Err: spans.ErrTooMany}
	}
	r.name, r.trace, r.span, r.service = strings.Clone(r.name), strings.Clone(r.trace), strings.Clone(r.span), strings.Clone(r.service)
	r.about, r.body, r.rec.Value = bytes.Clone(r.about), bytes.Clone(r.body), bytes.Clone(r.rec.Value)
	if r.id = l.id; r.id == "" {
		r.id = "log-" + strconv.Itoa(len(l.list)+1)
	}
	l.held += len(r.about) + len(r.body) + len(r.rec.Value)
	l.list = append(l.list, r)
	return nil
}

func relevant(name string) bool {
	if strings.HasPrefix(name, "gen_ai.") {
		return true
	}
	return slices.ContainsFunc(programs, func(p struct{ prefix, agent string }) bool { return strings.HasPrefix(name, p.prefix) })
}

// addSpans adds the records as spans, in the order of their times.
func (l *logs) addSpans() error {
	slices.SortStableFunc(l.list, func(a, b logRecord) int { return cmp.Compare(a.at, b.at) })
	turns := map[string]string{} // the last prompt of each session
	for i := range l.list {
		r := &l.list[i]
		s, rule := l.span(r, turns)
		if rule != "" {
			l.c.Skip(r.rec, rule)
			continue
		}
		if err := l.c.Add(s); err != nil {
			return err
		}
	}
	l.list = nil
	return nil
}

// span returns the span that a log record stands for, or the rule by which it is left out.
func (l *logs) span(r *logRecord, turns map[string]string) (s spans.TraceSpan, rule string) {
	a := r.about
	session := r.session()
	s = spans.TraceSpan{
		Record: r.rec, Trace: r.trace, Parent: r.span, ID: r.id, Service: r.service,
		Start: r.at, End: r.at, Timed: r.timed, Strong: true,
	}
	if s.Trace == "" {
		s.Trace = session
	}
	o := signal.NewObject(12)
	add := func(name string, v signal.Value) {
		if k := v.Kind(); k != signal.KindAbsent && k != signal.KindNull {
			o.Add(name, v)
		}
	}
	if session != "" {
		o.Text("gen_ai.conversation.id", session)
	}
	if strings.HasPrefix(r.name, "gen_ai.") {
		return l.convention(r, s, o)
	}
	event := r.name
	for _, p := range programs {
		if rest, ok := strings.CutPrefix(r.name, p.prefix); ok {
			event = rest
			o.Text("gen_ai.agent.id", p.agent)
		}
	}
	turn := first(a, "prompt.id", "turn.id")
	if event == "user_prompt" {
		if turn == "" {
			turn = s.ID
		}
		turns[session] = turn
		s.ID, s.Name, s.Kind, s.Open = turn, "user_prompt", spans.Agent, true
		add("input.value", member1(a, "prompt"))
		s.Attributes = o.Value().Members()
		return s, ""
	}
	if turn == "" {
		turn = turns[session]
	}
	if s.Parent == "" {
		s.Parent = turn
	}
	if length, ok := recording.TimeValue(member1(a, "duration_ms"), time.Millisecond); ok && length <= s.Start {
		s.Start -= length
	}
	switch event {
	case "api_request":
		s.Name, s.Kind = "api_request", spans.Chat
		add("gen_ai.response.model", a.Member("model"))
		in, hasIn := count(a, "input_tokens")
		if !hasIn {
			return s, "no part of the session" // Codex tells the tokens in another event
		}
		read, _ := count(a, "cache_read_tokens")
		write, _ := count(a, "cache_creation_tokens")
		out, _ := count(a, "output_tokens")
		// These counts of the input exclude the caches.
		o.Int("gen_ai.usage.input_tokens", in+read+write).Int("gen_ai.usage.output_tokens", out)
		o.Int("gen_ai.usage.cache_read.input_tokens", read).Int("gen_ai.usage.cache_creation.input_tokens", write)
		add("llm.cost.total", a.Member("cost_usd"))
	case "sse_event":
		in, hasIn := count(a, "input_token_count")
		if !hasIn {
			return s, "no part of the session"
		}
		s.Name, s.Kind = "response", spans.Chat
		add("gen_ai.response.model", a.Member("model"))
		out, _ := count(a, "output_token_count")
		read, _ := count(a, "cached_token_count")
		think, _ := count(a, "reasoning_token_count")
		o.Int("gen_ai.usage.input_tokens", in).Int("gen_ai.usage.output_tokens", out)
		o.Int("gen_ai.usage.cache_read.input_tokens", read).Int("gen_ai.usage.reasoning.output_tokens", think)
	case "tool_result":
		s.Name, s.Kind = first(a, "tool_name"), spans.Tool
		add("gen_ai.tool.name", a.Member("tool_name"))
		add("gen_ai.tool.call.id", member1(a, "tool_use_id", "call_id"))
		add("gen_ai.tool.call.arguments", member1(a, "tool_input", "tool_parameters", "arguments"))
		add("gen_ai.tool.call.result", member1(a, "tool_output", "output"))
		success := member1(a, "success")
		if b, isBool := success.Bool(); isBool {
			s.Failed = !b
		} else if t, _ := success.Text(); t == "false" {
			s.Failed = true
		}
		s.Message = first(a, "error")
	case "api_error":
		s.Name, s.Kind, s.Failed, s.Message = "api_error", spans.Chat, true, first(a, "error")
		add("error.type", a.Member("status_code"))
	default:
		return s, "no part of the session"
	}
	s.Attributes = o.Value().Members()
	return s, ""
}

// convention returns the span of an event of the conventions for generative AI.
func (l *logs) convention(r *logRecord, s spans.TraceSpan, o *signal.Object) (spans.TraceSpan, string) {
	s.Kind = spans.Chat
	content := r.body
	if k := content.Kind(); k != signal.KindObject {
		content = r.about
	}
	switch r.name {
	case "gen_ai.client.inference.operation.details":
		s.Attributes = spans.Joined(r.about.Members(), r.body.Members())
		return s, ""
	case "gen_ai.choice":
		s.Name = "choice"
		message := content.Member("message")
		if message.Kind() == signal.KindAbsent {
			message = content
		}
		o.Add("gen_ai.output.messages", signal.Array(message))
	case "gen_ai.user.message", "gen_ai.assistant.message", "gen_ai.tool.message", "gen_ai.system.message":
		// The messages to the model are repeated with each call.
		return s, "message to the model"
	default:
		return s, "no part of the session"
	}
	s.Attributes = spans.Joined(o.Value().Members(), r.about.Members())
	return s, ""
}

// member1 returns the first member that a value has.
func member1(v signal.Value, names ...string) signal.Value {
	_, m := member(v, names...)
	return m
}

func first(v signal.Value, names ...string) string {
	for _, name := range names {
		if t := v.TextOf(name); t != "" {
			return t
		}
	}
	return ""
}

// count reads a number of tokens, which some programs write as a text.
func count(v signal.Value, name string) (int64, bool) {
	t, ok := recording.TimeValue(v.Member(name), 1)
	return int64(t), ok
}
