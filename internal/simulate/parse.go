package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/jsonplace"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

func (b *reader) scenario(n node) *Scenario {
	s := &Scenario{limits: defaultLimits}
	if n.v.Kind() != signal.KindObject {
		b.refuse(n, `a scenario is an object with "sajou": "simulation", not %s`, wording.Article(n.v.Kind()))
		return s
	}
	if word, _ := n.at("sajou").v.Text(); word != "simulation" {
		b.refuse(n.at("sajou"), `"sajou" is not "simulation": this is no scenario of agents`)
		return s
	}
	if version, _ := n.at("version").v.Int64(); version != 1 {
		b.refuse(n.at("version"), `"version" is not 1, the only one that this program knows`)
		return s
	}
	b.object(n, "a scenario", "sajou", "version", "name", "title", "config", "world", "agents", "events", "ticks", "until",
		"limits", "expect", "$schema")
	if s.Name = b.needed(n, "name", 0); s.Name != "" {
		if err := eventlog.CheckName(s.Name); err != nil {
			b.refuse(n.at("name"), "name is what the session is called: %v", err)
		}
	}
	s.Title = b.text(n, "title", 0)
	s.bounded, s.until = n.has("until"), b.millis(n, "until", 0)
	b.rules(n, s)
	b.bounds(n, s)
	for _, e := range b.list(n, "events", maxItems) {
		if b.object(e, "an event", "at", "draft") {
			s.events = append(s.events, event{b.when(e, s), b.draft(e.at("draft"), e)})
		}
		b.item(e)
	}
	for i, e := range b.list(n, "expect", maxJudged) {
		if b.object(e, "an expectation", subjects...) {
			s.expect = append(s.expect, b.expectation(e, i, s))
		}
	}
	nameRequests(s)
	return s
}

// item counts what a scenario has to do.
func (b *reader) item(n node) {
	if b.items++; b.items == maxItems+1 {
		b.refuse(n, "a scenario has at most %d script actions, reactions and events", maxItems)
	}
}

// rules reads the configuration, the world and the agents, each as the engine
// would judge it after those before.
func (b *reader) rules(n node, s *Scenario) {
	core, err := agents.NewCore(agents.Options{})
	if err != nil {
		panic("simulate: " + err.Error()) // there are no options
	}
	if n.has("config") {
		s.config = slices.Clone(n.at("config").v)
		if records, err := core.Configure(s.config); err != nil {
			b.judge(n.at("config"), err)
		} else {
			core.Apply(0, records[0])
		}
	}
	s.ticked = core.Config().Authority == agents.TimeSim
	if n.has("world") {
		s.world = slices.Clone(n.at("world").v)
		if records, err := core.Begin(s.world); err != nil {
			b.judge(n.at("world"), err)
		} else {
			core.Apply(0, records[0])
		}
	}
	list := b.list(n, "agents", maxAgents)
	var ids []string
	for _, e := range list {
		id, _ := e.at("id").v.Text()
		ids = append(ids, strings.Clone(id))
	}
	if len(list)*len(s.world) > maxSeen {
		b.refuse(n.at("agents"), "%d agents in a world of %d bytes are too many: use fewer of them, or a smaller world", len(list), len(s.world))
		b.agents = ids
		return
	}
	for i, e := range list {
		if slices.Contains(ids[:i], ids[i]) && ids[i] != "" {
			b.refuse(e.at("id"), "two agents are called %s", wording.Quoted(ids[i]))
		} else if ids[i] != "" {
			b.agents = append(b.agents, ids[i])
		}
		s.agents = append(s.agents, b.agent(e, core, s))
	}
}

// judge tells what the engine says about a part of the scenario, where it says
// so.
func (b *reader) judge(n node, err error) {
	if e, ok := errors.AsType[*agents.PolicyError](err); ok {
		b.place(n, e.Path, e.Reason)
		return
	}
	message := err.Error()
	for _, prefix := range []string{"agents: world: ", "agents: configuration: ", "agents: "} {
		if rest, ok := strings.CutPrefix(message, prefix); ok {
			message = rest
			break
		}
	}
	if at, reason, ok := strings.Cut(message, ": "); ok && strings.HasPrefix(at, "/") {
		b.place(n, at, reason)
		return
	}
	b.refuse(n, "%s", message)
}

// place tells a reason about what a pointer from n leads to.
func (b *reader) place(n node, pointer, reason string) {
	at, rest := n.below(pointer)
	if len(rest) > 0 {
		reason = strings.Join(rest, "/") + ": " + reason
	}
	written, _ := at.v.Text()
	switch {
	case strings.HasPrefix(reason, "unknown policy"):
		reason += instead(written, policyNames)
	case reason == "unknown member" && pointer == "/"+at.path.name:
		reason = fmt.Sprintf("a configuration has no member %s%s", wording.Quoted(at.path.name), instead(at.path.name, configNames))
	}
	b.refuse(at, "%s", reason)
}

// What may be meant by a name that the engine does not know.
var (
	policyNames = []string{
		"default", "everything", "self", "conversation", "distance", "relationships", "cone", "team", "channel", "fields",
		"all", "any", "not", "fog", "custom",
	}
	configNames = []string{
		"authority", "backpressure_policy", "classes", "cooldowns", "deadline_ms", "debounce_ms", "default_priority",
		"intent_kinds", "interrupt", "latency_model", "max_agents", "max_quantum", "max_queue_depth", "paused",
		"quota_intents_per_minute", "quota_tokens_per_minute", "rules", "staleness_threshold", "tick_effects",
		"token_budget", "weight",
	}
)

func (b *reader) agent(n node, core *agents.Core, s *Scenario) agent {
	var a agent
	if !b.object(n, "an agent", "id", "policy", "class", "permissions", "joins", "reads_every", "script", "on") {
		return a
	}
	a.registration = agents.Registration{AgentID: b.needed(n, "id", agents.MaxID), Class: b.text(n, "class", agents.MaxID)}
	if n.has("policy") {
		a.registration.Policy = slices.Clone(n.at("policy").v)
	}
	if n.has("permissions") {
		a.registration.Permissions = append([]string{}, b.texts(n, "permissions")...)
	}
	if a.registration.AgentID != "" {
		records, err := core.Register(a.registration)
		policy, isPolicy := errors.AsType[*agents.PolicyError](err)
		switch {
		case isPolicy && policy.Path == "/class":
			b.refuse(n.at("class"), "%s: name it in config.classes", policy.Reason)
		case isPolicy:
			at := policy.Path
			// Settings are named from the agent on.
			if setting, ok := strings.CutPrefix(at, "/policy/"); ok {
				if _, rest := n.at("policy").below(at); len(rest) > 0 {
					at = "/" + setting
				}
			}
			b.place(n.at("policy"), at, policy.Reason)
		case err != nil:
			b.judge(n, err)
		default:
			core.Apply(0, records[0])
		}
	}
	a.joins, a.readsEvery = b.millis(n, "joins", 0), b.millis(n, "reads_every", 0)
	if s.bounded && a.joins > s.until {
		b.refuse(n.at("joins"), "the scenario ends before that, until is %d", s.until.Milliseconds())
	}
	for _, e := range b.list(n, "script", maxItems) {
		if b.object(e, "an action of a script", "at", "submit", "generate", "cancel", "leave") {
			c := cue{b.when(e, s), b.action(e)}
			if c.at < a.joins {
				b.refuse(e.at("at"), "%s joins only after that, at %d", wording.Quoted(a.registration.AgentID), a.joins.Milliseconds())
			}
			a.script = append(a.script, c)
		}
		b.item(e)
	}
	for _, e := range b.list(n, "on", maxItems) {
		if b.object(e, "a reaction", "path", "equals", "exists", "changed", "after", "times", "do") {
			a.on = append(a.on, b.reaction(e))
		}
		b.item(e)
	}
	return a
}

// when reads the time at which something happens.
func (b *reader) when(n node, s *Scenario) time.Duration {
	if !n.has("at") {
		b.lacks(n, "at is missing: when it happens, in milliseconds")
	}
	at := b.millis(n, "at", 0)
	if s.bounded && at > s.until {
		b.refuse(n.at("at"), "the scenario ends before that, until is %d", s.until.Milliseconds())
	}
	return at
}

func (b *reader) bounds(n node, s *Scenario) {
	if n.has("limits") && b.object(n.at("limits"), "limits", "steps", "effects", "reactions") {
		for _, l := range []struct {
			name  string
			limit *int64
			most  int64
		}{
			{"steps", &s.limits.steps, mostLimits.steps},
			{"effects", &s.limits.effects, mostLimits.effects},
			{"reactions", &s.limits.reactions, mostLimits.reactions},
		} {
			*l.limit = b.integer(n.at("limits"), l.name, *l.limit, 1, l.most)
		}
	}
	switch t := n.at("ticks"); {
	case n.has("ticks") && !s.ticked:
		b.refuse(t, `ticks decide only where config has "authority": "sim"`)
	case !n.has("ticks") && s.ticked:
		b.refuse(n.at("config").at("authority"), `with "sim" only ticks decide, and there are none: add "ticks": {"every": 50}`)
	case !n.has("ticks"):
	case b.object(t, "ticks", "every", "first", "source"):
		s.ticks.every = b.millis(t, "every", 0)
		s.ticks.first = b.millis(t, "first", s.ticks.every)
		if s.ticks.source = b.text(t, "source", agents.MaxID); s.ticks.source == "" {
			s.ticks.source = "simulation"
		}
		switch {
		case !t.has("every"):
			b.lacks(t, "every is missing: from one tick to the next")
		case s.ticks.every < time.Millisecond:
			b.refuse(t.at("every"), "from one tick to the next it is 1 millisecond at least")
		}
		if !s.bounded {
			b.refuse(t, "ticks go on for ever: say until when")
		}
	}
}

func (b *reader) draft(n, around node) agents.Draft {
	if !around.has("draft") {
		b.lacks(around, "draft is missing: what happens, as {kind, source_id, payload}")
		return agents.Draft{}
	}
	if !b.object(n, "a draft", "kind", "source_id", "payload", "schema_version") {
		return agents.Draft{}
	}
	d := agents.Draft{
		Kind: b.needed(n, "kind", agents.MaxID), SourceID: b.text(n, "source_id", agents.MaxID),
		SchemaVersion: b.text(n, "schema_version", agents.MaxID),
	}
	if n.has("payload") {
		if d.Payload = slices.Clone(n.at("payload").v); d.Payload.Kind() != signal.KindObject {
			b.refuse(n.at("payload"), "payload is an object, not %s", wording.Article(d.Payload.Kind()))
		}
	}
	return d
}

func (b *reader) action(n node) action {
	var a action
	switch b.one(n, "an action", "submit", "generate", "cancel", "leave") {
	case "submit":
		if m := n.at("submit"); b.object(m, "an intent", "kind", "payload", "req_id", "context_seq", "priority", "schema_version") {
			a.submit = new(b.intent(m, false))
		}
	case "generate":
		if m := n.at("generate"); b.object(m, "a generation", "words", "ms_per_token", "stall", "reads", "classes", "deadline_ms",
			"token_budget", "intent", "req_id", "interrupted") {
			a.generate = b.generation(m)
		}
	case "cancel":
		a.cancel = b.needed(n, "cancel", agents.MaxReqID)
	case "leave":
		a.leave = b.isTrue(n, "leave")
	}
	return a
}

func (b *reader) intent(n node, answered bool) submission {
	s := submission{
		kind: b.needed(n, "kind", agents.MaxID), payload: b.payload(n, answered), reqID: b.text(n, "req_id", agents.MaxReqID),
		current: !n.has("context_seq"), unprioritized: !n.has("priority"), version: b.text(n, "schema_version", agents.MaxID),
	}
	s.contextSeq = uint64(b.integer(n, "context_seq", 0, 0, 1<<53))
	s.priority = int(b.integer(n, "priority", 0, -agents.MaxPriority, agents.MaxPriority))
	return s
}

// spoken is the intent of a generation that names none.
var spoken = submission{kind: agents.KindSpeak, payload: func() signal.Value {
	v, err := signal.ParseValue([]byte(`{"text":"{{answer}}"}`))
	if err != nil {
		panic("simulate: " + err.Error())
	}
	return v
}(), current: true, unprioritized: true}

func (b *reader) generation(n node) *generating {
	g := &generating{
		words: b.words(n, "words"), perToken: b.millis(n, "ms_per_token", 50*time.Millisecond),
		reads: b.texts(n, "reads"), classes: b.texts(n, "classes"),
		deadline: b.millis(n, "deadline_ms", 0), budget: b.integer(n, "token_budget", 0, 1, 1<<40),
		intent: spoken,
	}
	if !n.has("words") {
		b.lacks(n, "words is missing: what the generation yields")
	}
	if m := n.at("stall"); n.has("stall") && b.object(m, "a stall", "after", "ms") {
		g.stallAfter, g.stall = int(b.integer(m, "after", 0, 0, maxWords)), b.millis(m, "ms", 0)
	}
	if m := n.at("intent"); n.has("intent") && b.object(m, "the intent of a generation", "kind", "payload", "priority") {
		g.intent = b.intent(m, true)
	}
	g.intent.reqID = b.text(n, "req_id", agents.MaxReqID)
	if m := n.at("interrupted"); n.has("interrupted") && b.object(m, "interrupted", "regenerate", "after", "words") {
		g.regenerate = int(b.integer(m, "regenerate", 0, 0, 1000))
		g.again = b.millis(m, "after", 0)
		g.wordsAgain, g.hasNewWords = b.words(m, "words"), m.has("words")
	}
	return g
}

// words reads a text, or an array of words.
func (b *reader) words(n node, name string) string {
	m := n.at(name)
	b.placeholders(m, false)
	text := ""
	if m.v.Kind() == signal.KindArray {
		text = strings.Join(b.texts(n, name), " ")
	} else {
		text = b.text(n, name, 0)
	}
	if len(text) > maxFilled {
		b.refuse(m, "%s take at most %d KiB", name, maxFilled>>10)
	}
	return text
}

func (b *reader) reaction(n node) reaction {
	r := reaction{
		path: b.view(n), after: b.millis(n, "after", 0), times: int(b.integer(n, "times", 1, 1, maxItems)),
	}
	switch b.one(n, "what a reaction waits for", "equals", "exists", "changed") {
	case "equals":
		r.test, r.value = isEqual, slices.Clone(n.at("equals").v)
	case "exists":
		there, ok := n.at("exists").v.Bool()
		if !ok {
			b.refuse(n.at("exists"), "exists is true or false")
		}
		if r.test = isGone; there {
			r.test = isThere
		}
	case "changed":
		r.test = isChanged
		b.isTrue(n, "changed")
	}
	if !n.has("do") {
		b.lacks(n, "do is missing: the action")
	} else if m := n.at("do"); b.object(m, "do", "submit", "generate", "cancel", "leave") {
		r.do = b.action(m)
	}
	return r
}

func (b *reader) expectation(n node, i int, s *Scenario) expectation {
	e := expectation{count: -1, at: -1, mark: jsonplace.Mark{Segments: []string{"expect", strconv.Itoa(i)}}}
	name := b.one(n, "an expectation", subjects...)
	if name == "" {
		return e
	}
	e.subject = subject(slices.Index(subjects, name))
	members := map[subject][]string{
		accepted:    {"agent", "req_id", "kind", "code", "reason", "count"},
		rejected:    {"agent", "req_id", "kind", "code", "reason", "count"},
		cancelled:   {"agent", "req_id", "reason", "count"},
		generations: {"agent", "req_id", "count"},
		effects:     {"source", "kind", "count"},
		sees:        {"agent", "path", "equals", "at"},
		seesNot:     {"agent", "path", "equals", "at"},
		told:        {"agent", "texts"},
		neverTold:   {"agent", "text"},
	}[e.subject]
	m := n.at(name)
	if !b.object(m, name, members...) {
		return e
	}
	switch e.subject {
	case effects:
		e.agent = b.text(m, "source", 0)
	case accepted, rejected, cancelled, generations:
		e.agent = b.known(m, "agent", false)
	default:
		e.agent = b.known(m, "agent", true)
	}
	e.reqID, e.kind, e.reason = b.text(m, "req_id", 0), b.text(m, "kind", 0), b.text(m, "reason", 0)
	e.count = int(b.integer(m, "count", -1, 0, mostLimits.steps))
	if code := b.text(m, "code", 0); code != "" {
		e.code = agents.Code(code)
		if _, ok := e.code.Failure(); !ok {
			b.refuse(m.at("code"), "no refusal has the code %s%s", wording.Quoted(code), instead(code, codes))
		}
	}
	switch e.subject {
	case sees, seesNot:
		e.path = b.view(m)
		if m.has("equals") {
			e.equals = slices.Clone(m.at("equals").v)
		}
		if m.has("at") {
			e.at = b.when(m, s)
		}
	case told:
		if e.texts = b.texts(m, "texts"); len(e.texts) == 0 {
			b.lacks(m, "texts is missing: what the agent is told, in order")
		}
	case neverTold:
		e.texts = []string{b.needed(m, "text", 0)}
	default:
	}
	return e
}

// codes are those that refuse an intent.
var codes = []string{
	string(agents.StaleContext), string(agents.IntentConflict), string(agents.InvalidIntent), string(agents.Invalid),
	string(agents.QuotaExceeded), string(agents.CooldownActive), string(agents.QueueFull), string(agents.Timeout),
	string(agents.Cancelled), string(agents.Forbidden), string(agents.UnknownAgent), string(agents.WorldPaused),
	string(agents.VersionMismatch),
}

// nameRequests gives a req_id to what has none: r1, r2 and so on of each agent,
// in the order of the file.
func nameRequests(s *Scenario) {
	for i := range s.agents {
		a := &s.agents[i]
		var ids []*string
		collect := func(do *action) {
			switch {
			case do.submit != nil:
				ids = append(ids, &do.submit.reqID)
			case do.generate != nil:
				ids = append(ids, &do.generate.intent.reqID)
			}
		}
		for j := range a.script {
			collect(&a.script[j].do)
		}
		for j := range a.on {
			collect(&a.on[j].do)
		}
		taken := map[string]bool{}
		for _, id := range ids {
			taken[*id] = true
		}
		n := 0
		for _, id := range ids {
			for *id == "" {
				if n++; !taken[fmt.Sprintf("r%d", n)] {
					*id = fmt.Sprintf("r%d", n)
				}
			}
		}
	}
}
