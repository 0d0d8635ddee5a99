package codex

import (
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// reader is the state of one reading. The texts of a record are parts of the whole record, so
// the state has copies.
type reader struct {
	m     *recording.Mapping
	begun bool
	flat  bool   // the layout without payloads
	agent string // of this thread
	from  string // who gives this thread its tasks

	model string
	cwd   string

	turn      turn
	turns     int
	announced string // the id of the turn that the next prompt opens
	limits    bool   // the recording has the limits of turns

	prompted bool        // a prompt came as an event
	asked    *askedInput // an input of a user that may be a prompt

	total  signal.Value // of the last token count
	status statuses
	search pair
	image  pair
	shrunk pair
}

// turn is the turn that goes on.
type turn struct {
	id       string
	open     bool
	tasks    []string
	failed   bool
	answered bool // its last item is an answer
}

// askedInput is an item with the role user. It is the prompt only if no event tells one.
type askedInput struct {
	text   string
	record recording.SavedRecord
}

// pair counts facts that come twice, as an item and as an event, in any order. The first
// of each two is mapped.
type pair struct{ items, events, mapped int }

func (p *pair) item() (isNew bool)  { p.items++; return p.take(p.items) }
func (p *pair) event() (isNew bool) { p.events++; return p.take(p.events) }

func (p *pair) take(n int) bool {
	if n <= p.mapped {
		return false
	}
	p.mapped = n
	return true
}

func newReader(m *recording.Mapping) *reader {
	return &reader{m: m, agent: mainAgent, from: recording.User}
}

// text returns a member that is a text, "" if its publisher trimmed it.
func text(v signal.Value, name string) string {
	member := v.Member(name)
	if recording.Trimmed(member) {
		return ""
	}
	text, _ := member.Text()
	return text
}

func (r *reader) line(v signal.Value) {
	if !r.begun {
		r.begun = true
		r.first(v)
	}
	if r.flat {
		r.flatLine(v)
		return
	}
	r.m.SetTime(recording.TimeText(v.TextOf("timestamp")))
	typ, payload := v.TextOf("type"), v.Member("payload")
	if payload.Kind() != signal.KindObject {
		if strings.Contains(typ, ".") || typ == "error" {
			r.exec(typ, v)
		}
		return // else kept
	}
	switch typ {
	case "session_meta":
		r.meta(payload)
	case "turn_context":
		r.context(payload)
	case "response_item":
		r.item(payload)
	case "event_msg":
		r.event(payload)
	case "compacted":
		r.compacted(payload)
	case "world_state", "inter_agent_communication_metadata":
		r.m.Skip(typ)
	}
}

// first decides by the first line which layout it is.
func (r *reader) first(v signal.Value) {
	switch {
	case isHeader(v):
		r.flat = true
		r.m.Invent()
		r.m.SetClock(recording.TimeText(v.TextOf("timestamp")))
		r.m.SetSession(text(v, "id"))
	case v.TextOf("timestamp") == "" && strings.Contains(v.TextOf("type"), "."):
		r.m.Invent() // codex exec --json
	}
}

// flatLine maps a line of the early layout: items without a payload, and states of the program.
func (r *reader) flatLine(v signal.Value) {
	switch {
	case isHeader(v):
		r.m.Skip("header")
	case v.TextOf("record_type") != "":
		r.m.Skip("state")
	default:
		r.m.SetLength(len(v))
		r.item(v)
	}
}

func (r *reader) meta(p signal.Value) {
	r.m.Skip("session_meta")
	id := text(p, "id")
	if id == "" || r.turns > 0 {
		return
	}
	if _, known := p.Get("session_id"); !known || r.agent == mainAgent {
		r.m.SetSession(id)
	}
	for _, o := range [...][2]string{{"version", "cli_version"}, {"cwd", "cwd"}, {"originator", "originator"}, {"modelProvider", "model_provider"}} {
		r.m.Origin(o[0], p.Member(o[1]))
	}
	parent := parentThread(p)
	if parent == "" || parent == id {
		return
	}
	r.agent, r.from = strings.Clone(id), strings.Clone(parent)
	if parent == text(p, "session_id") {
		r.from = mainAgent
	}
	r.m.Origin("parentThread", signal.Text(parent))
}

// parentThread returns the thread that started a thread of a subagent.
func parentThread(p signal.Value) string {
	if parent := text(p, "parent_thread_id"); parent != "" {
		return parent
	}
	spawn := p.Member("source").Member("subagent").Member("thread_spawn")
	return text(spawn, "parent_thread_id")
}

func (r *reader) context(p signal.Value) {
	r.m.Skip("turn_context")
	if model := text(p, "model"); model != "" && model != r.model {
		r.model = strings.Clone(model)
	}
	if cwd := text(p, "cwd"); cwd != "" {
		r.cwd = strings.Clone(cwd)
	}
	if id := text(p, "turn_id"); id != "" && id != r.turn.id {
		r.announced = strings.Clone(id)
	}
}

// prompt maps a prompt of a person, or the task of a subagent. It opens a turn, unless one goes on.
func (r *reader) prompt(message string, p signal.Value) {
	if r.turn.open && len(r.turn.tasks) > 0 && !r.limits {
		// Without limits of turns, a prompt is the end of the turn before.
		r.endTurn(true)
	}
	if !r.turn.open {
		r.open("")
	}
	task := r.turn.id
	if n := len(r.turn.tasks); n > 0 {
		task += "/" + strconv.Itoa(n+1)
	}
	r.turn.tasks = append(r.turn.tasks, task)
	r.turn.answered = false
	for _, name := range []string{"images", "local_images"} {
		if n := p.Member(name).Len(); n > 0 {
			r.m.AddMeta(name, signal.Int(int64(n)).Value())
		}
	}
	if r.cwd != "" {
		r.m.AddMeta("cwd", signal.Text(r.cwd))
	}
	r.m.Dispatch(r.turn.id, task, r.from, r.agent, message)
}

// open opens a turn: with the id that it has, or that was announced, or with its number.
func (r *reader) open(id string) {
	r.turns++
	if id == "" {
		id = r.announced
	}
	if id == "" {
		id = "turn-" + strconv.Itoa(r.turns)
	}
	r.announced = ""
	r.turn = turn{id: strings.Clone(id), open: true}
}

// active returns the correlation id for something that the agent does, which may be before the first
// prompt, or after the end of a turn.
func (r *reader) active() string {
	if r.turn.id == "" {
		r.open("")
	}
	return r.turn.id
}

// endTurn completes the tasks of the turn.
func (r *reader) endTurn(success bool) {
	r.settle()
	if r.turn.open {
		for _, task := range r.turn.tasks {
			r.m.Complete(r.turn.id, task, r.agent, success, "")
		}
		if len(r.turn.tasks) == 0 {
			r.m.State(r.turn.id, r.agent, recording.Done, "")
		}
	}
	r.turn.open, r.turn.tasks, r.turn.answered = false, nil, false
}

func (r *reader) finish() {
	r.flush()
	if r.turn.open && r.turn.answered && !r.limits {
		r.endTurn(true)
	}
}

// flush maps an input as the prompt, if no event tells prompts.
func (r *reader) flush() {
	a := r.asked
	r.asked = nil
	if a == nil {
		return
	}
	if r.prompted {
		r.m.Release(1) // the event has told it
		return
	}
	r.m.Within(a.record, func() { r.prompt(a.text, nil) })
}
