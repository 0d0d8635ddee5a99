package spans

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// facts are what the attributes of a span say.
type facts struct {
	kind         SpanKind
	failed       bool
	conversation string

	name    string // of the span
	agent   string // its own agent
	named   bool   // agent is from an attribute, not from the name of the span
	byID    bool   // agent is an id
	about   string
	tool    string
	callID  string
	input   signal.Value
	output  signal.Value
	prompt  string // the task in words
	result  string
	texts   []part
	usage   *recording.TokenCount
	problem string // a message, if the span has an error
	code    string
	service string
	from    string // of a handoff
	to      string

	handedBy string // the agent that handed its work over to this one
}

// size returns about how many bytes the facts hold.
func (f *facts) size() int {
	n := 400 + len(f.name) + len(f.about) + len(f.input) + len(f.output) + len(f.prompt) + len(f.result) + len(f.problem)
	for _, p := range f.texts {
		n += len(p.Text)
	}
	return n
}

// scratch reads the attributes of one span after the other.
type scratch struct {
	values  [fields]signal.Value
	rank    [fields]int // the place in table of the value
	kind    SpanKind
	kindAt  int
	in, out map[int]*numberedMessage
	seen    int // attributes
	f       facts
}

// maxAttributes bounds the attributes of a span that are looked at.
const maxAttributes = 1 << 20

// numberedMessage is a message that is spread over attributes.
type numberedMessage struct {
	role, content string
	parts         map[int]*part
}

func (s *scratch) read(span *TraceSpan) *facts {
	s.values, s.rank = [fields]signal.Value{}, [fields]int{}
	s.kind, s.kindAt, s.seen = Unknown, len(table), 0
	s.in, s.out = nil, nil
	s.f = facts{}
	f := &s.f
	if span.Attributes != nil {
		s.attributes("", span.Attributes, 0)
	}
	var eventTexts []part
	var eventPrompt string
	for _, e := range span.Events {
		s.event(e, &eventTexts, &eventPrompt)
	}
	f.kind = s.decide(span)
	f.conversation = text(s.values[conversation])
	f.failed = span.Failed || strings.EqualFold(text(s.values[statusCode]), "ERROR") || isTrue(s.values[errorFlag])
	if f.kind == Transport || f.kind == Chain {
		f.agent = s.agent()
	}
	f.usage = s.usage()
	if f.kind == Transport && f.usage == nil {
		return f
	}
	f.prompt = firstText(s.promptText(), eventPrompt)
	if f.kind == Chain && f.usage == nil && span.Parent != "" {
		return f // it becomes no workflow
	}
	s.describe(span, f)
	if len(f.texts) == 0 {
		f.texts = eventTexts
	}
	return f
}

// attributes notes the values of the names in the table.
func (s *scratch) attributes(prefix string, list iter.Seq2[string, signal.Value], depth int) {
	for name, v := range list {
		if s.seen++; s.seen > maxAttributes {
			return
		}
		if prefix != "" {
			name = prefix + "." + name
		}
		s.attribute(name, v)
		if k := v.Kind(); depth < 6 && (k == signal.KindObject && prefixes[name]) {
			s.attributes(name, v.Members(), depth+1)
		}
	}
}

func (s *scratch) attribute(name string, v signal.Value) {
	at, known := places[name]
	if !known {
		for _, n := range numbered {
			if rest, ok := strings.CutPrefix(name, n.prefix); ok {
				s.numbered(n.field, rest, v)
				return
			}
		}
		return
	}
	if k := v.Kind(); k == signal.KindAbsent || k == signal.KindNull || recording.Trimmed(v) {
		return
	}
	f := table[at].field
	if f == operation {
		if kind := kindOfValue(text(v)); kind != Unknown && (at < s.kindAt || s.kind == Chain) && !(kind == Chain && s.kind != Unknown) {
			s.kind, s.kindAt = kind, at
		}
		return
	}
	if t, isText := v.Text(); isText && t == "" {
		return
	}
	if s.values[f] == nil || at < s.rank[f] {
		s.values[f], s.rank[f] = v, at
	}
}

// numbered notes a part of a message: 0.content, 0.message.content, 0.message.contents.1.message_content.text.
func (s *scratch) numbered(f field, rest string, v signal.Value) {
	const mostMessages = 4096
	number, rest, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= mostMessages {
		return
	}
	list := &s.out
	if f == inputMessages {
		list = &s.in
	}
	if *list == nil {
		*list = map[int]*numberedMessage{}
	}
	m := (*list)[i]
	if m == nil {
		m = &numberedMessage{}
		(*list)[i] = m
	}
	rest = strings.TrimPrefix(rest, "message.")
	switch rest {
	case "role":
		m.role = text(v)
		return
	case "content":
		m.content = text(v)
		return
	}
	rest, ok := strings.CutPrefix(rest, "contents.")
	if !ok {
		rest, ok = strings.CutPrefix(rest, "content.")
	}
	if !ok {
		return
	}
	number, rest, _ = strings.Cut(rest, ".")
	i, err = strconv.Atoi(number)
	if err != nil || i < 0 || i >= mostMessages {
		return
	}
	if m.parts == nil {
		m.parts = map[int]*part{}
	}
	p := m.parts[i]
	if p == nil {
		p = &part{}
		m.parts[i] = p
	}
	switch strings.TrimPrefix(rest, "message_content.") {
	case "", "text":
		p.Text = text(v)
	case "type":
		p.Thought = thoughtKinds[text(v)]
	}
}

// messages returns numbered messages in order.
func messages(list map[int]*numberedMessage) []textMessage {
	var numbers []int
	for i := range list {
		numbers = append(numbers, i)
	}
	slices.Sort(numbers)
	var all []textMessage
	for _, i := range numbers {
		m := list[i]
		one := textMessage{role: m.role}
		if m.content != "" {
			one.parts = partsOf(signal.Text(m.content))
		}
		var parts []int
		for j := range m.parts {
			parts = append(parts, j)
		}
		slices.Sort(parts)
		for _, j := range parts {
			if p := m.parts[j]; p.Text != "" {
				one.parts = append(one.parts, *p)
			}
		}
		all = append(all, one)
	}
	return all
}

// event reads an event of a span: an exception, or a message by the older conventions.
func (s *scratch) event(e SpanEvent, texts *[]part, prompt *string) {
	if e.Attributes == nil {
		return
	}
	switch {
	case e.Name == "exception":
		for name, v := range e.Attributes {
			switch name {
			case "exception.message":
				s.f.problem = text(v)
			case "exception.type":
				s.f.code = text(v)
			}
		}
		if s.f.problem == "" {
			s.f.problem = firstText(s.f.code, "exception")
		}
	case e.Name == "gen_ai.user.message", e.Name == "gen_ai.choice", e.Name == "gen_ai.assistant.message":
		for name, v := range e.Attributes {
			if name != "content" && name != "message" {
				continue
			}
			parts := partsOf(recording.Nested(v))
			switch e.Name {
			case "gen_ai.user.message":
				*prompt = firstText(joined(parts), *prompt)
			case "gen_ai.choice":
				*texts = append(*texts, parts...)
			}
		}
	case strings.HasPrefix(e.Name, "gen_ai."):
		s.attributes("", e.Attributes, 0)
	}
}

// decide tells the kind of the span.
func (s *scratch) decide(span *TraceSpan) SpanKind {
	if span.Strong && span.Kind != Unknown {
		return span.Kind
	}
	kind := s.kind
	if kind == Unknown || kind == Chain && span.Kind != Unknown {
		kind = span.Kind
	}
	if kind == Unknown {
		kind = kindOfName(span.Name)
	}
	if kind != Unknown {
		return kind
	}
	if s.values[model] != nil || s.values[promptTokens] != nil || s.values[completionTokens] != nil {
		return Chat
	}
	return Transport
}

func (s *scratch) agent() string {
	return firstText(text(s.values[agentID]), text(s.values[agentName]))
}

// describe fills in what spans of a session need.
func (s *scratch) describe(span *TraceSpan, f *facts) {
	f.name, f.service = span.Name, span.Service
	f.agent = s.agent()
	f.named, f.byID = f.agent != "", s.values[agentID] != nil
	f.about = text(s.values[agentAbout])
	f.from, f.to = span.From, span.To
	message := firstText(f.problem, span.Message, text(s.values[statusMessage]), text(s.values[errorType]))
	if f.failed && f.problem == "" {
		f.problem = firstText(message, "failed")
	}
	f.code = firstText(text(s.values[errorType]), f.code)
	switch f.kind {
	case Agent:
		if f.agent == "" {
			f.agent = strings.TrimPrefix(span.Name, "invoke_agent ")
		}
		f.result = resultText(s.values[outputValue])
	case Workflow, Chain:
		f.name = firstText(text(s.values[workflowName]), text(s.values[toolName]), span.Name)
		f.result = resultText(s.values[outputValue])
	case Tool:
		f.tool = firstText(text(s.values[toolName]), strings.TrimPrefix(span.Name, "execute_tool "))
		f.callID = text(s.values[callID])
		f.input, f.output = s.values[toolInput], s.values[toolOutput]
		if s.values[inputValue] != nil && (f.input == nil || table[s.rank[toolInput]].Name == "tool.parameters") {
			f.input = s.values[inputValue]
		}
		if f.output == nil {
			f.output = s.values[outputValue]
		}
		f.failed = f.failed || text(s.values[errorType]) != ""
		if k := f.output.Kind(); f.failed && message != "" && (k == signal.KindAbsent || k == signal.KindObject && f.output.Len() == 0) {
			f.output = signal.NewObject(1).Text("error", message).Value()
		}
	default:
	}
	if f.kind != Tool && f.kind != Chain {
		f.texts = s.answer(f.kind)
	}
	if f.result == "" && (f.kind == Agent || f.kind == Workflow) {
		f.result = joined(f.texts)
	}
}

// answer returns the texts of the model.
func (s *scratch) answer(kind SpanKind) []part {
	if len(s.out) > 0 {
		var all []part
		for _, m := range messages(s.out) {
			if m.role == "" || m.role == "assistant" || m.role == "model" {
				all = append(all, m.parts...)
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	v := s.values[outputMessages]
	if v == nil && kind == Chat {
		v = s.values[outputValue]
	}
	inner := recording.Nested(v)
	if k := inner.Kind(); k != signal.KindObject && k != signal.KindArray {
		return partsOf(v)
	}
	var all []part
	for _, m := range messagesOf(inner, 0) {
		if m.role == "" || m.role == "assistant" || m.role == "model" || m.role == "ai" {
			all = append(all, m.parts...)
		}
	}
	return all
}

// promptText returns what a person asked for, as far as the span itself has it.
func (s *scratch) promptText() string {
	if p := lastUser(messagesOf(recording.Nested(s.values[inputMessages]), 0)); p != "" {
		return p
	}
	if p := lastUser(messages(s.in)); p != "" {
		return p
	}
	return promptOf(s.values[inputValue])
}

// usage returns the tokens of the span, or nil.
func (s *scratch) usage() *recording.TokenCount {
	in, hasIn := number(s.values[promptTokens])
	out, hasOut := number(s.values[completionTokens])
	if !hasIn && !hasOut {
		return nil
	}
	read, _ := number(s.values[cacheRead])
	write, _ := number(s.values[cacheWrite])
	total, hasTotal := number(s.values[totalTokens])
	think, _ := number(s.values[reasoning])
	money, _ := decimal(s.values[cost])
	u := &recording.TokenCount{
		Model: text(s.values[model]), Prompt: in, Completion: out,
		CacheRead: read, CacheWrite: write, Reasoning: think, Cost: money,
	}
	// The input includes the cached tokens by all conventions, but not by all programs: it does not
	// if they are more, or if the total says so.
	if read+write > in || hasTotal && read+write > 0 && total == in+read+write+out {
		u.Prompt += read + write
	}
	return u
}

// keep returns a copy of the facts that shares no bytes with the record.
func (f *facts) keep(c *Collection) *facts {
	k := *f
	k.conversation = ""
	k.name, k.agent, k.service = c.share(f.name), c.share(f.agent), c.share(f.service)
	k.about, k.tool, k.code = strings.Clone(f.about), c.share(f.tool), c.share(f.code)
	k.callID, k.prompt, k.result = strings.Clone(f.callID), strings.Clone(f.prompt), strings.Clone(f.result)
	k.problem, k.from, k.to = strings.Clone(f.problem), c.share(f.from), c.share(f.to)
	k.input, k.output = bytes.Clone(f.input), bytes.Clone(f.output)
	k.texts = slices.Clone(f.texts)
	for i := range k.texts {
		k.texts[i].Text = strings.Clone(k.texts[i].Text)
	}
	if f.usage != nil {
		u := *f.usage
		u.Model = c.share(u.Model)
		k.usage = &u
	}
	return &k
}

// text returns a text, or "".
func text(v signal.Value) string {
	t, _ := v.Text()
	if t == "" || recording.Trimmed(v) {
		return ""
	}
	return t
}

// firstText returns the first text that is not empty.
func firstText(list ...string) string {
	for _, t := range list {
		if t != "" {
			return t
		}
	}
	return ""
}

// number returns a count, which may be a text of digits.
func number(v signal.Value) (int64, bool) {
	if n, ok := v.Int64(); ok {
		return n, n >= 0
	}
	if f, ok := v.Float64(); ok {
		return int64(f), f >= 0 && f < 1<<53
	}
	n, err := strconv.ParseInt(text(v), 10, 64)
	return n, err == nil && n >= 0
}

// decimal returns a number, which may be a text.
func decimal(v signal.Value) (float64, bool) {
	if f, ok := v.Float64(); ok {
		return f, f >= 0
	}
	if n, ok := v.Int64(); ok {
		return float64(n), n >= 0
	}
	f, err := strconv.ParseFloat(text(v), 64)
	return f, err == nil && f >= 0 && f < 1e15
}

func isTrue(v signal.Value) bool {
	if b, ok := v.Bool(); ok {
		return b
	}
	return strings.EqualFold(text(v), "true")
}
