// Package perfetto writes the course of a session as trace events in JSON, which
// ui.perfetto.dev and chrome://tracing open.
//
// # From a session to a trace
//
//	agent                            a process; the session itself is one more
//	signal                           an instant on the track "signals" of its agent
//	other entry                      an instant on a track of the session: effects, beats, definitions
//	performance                      a track of its own, below the agent of its signal
//	animated action                  a slice in its performance; one that runs beside others has its own track
//	instant action, interruption     an instant in its performance
//	task_dispatch … completion       a flow, by the id of the task
//	tool_call … tool_result          a flow, by the id of the call
//
// Times are session time in microseconds with three decimals, which is exact. A flow
// needs slices to bind to, so its signals are slices of one nanosecond. The label of a fork
// is in otherData and in the name of the session's process.
//
// docs/glossary.md has the nouns of all packages.
package perfetto

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/course"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

const (
	// maxOpen bounds the tasks and calls that wait for their end. Further ones have no
	// flow.
	maxOpen = 1 << 16
	// maxAgents bounds the processes. The signals of further agents are in that of the
	// session.
	maxAgents = 1 << 12
	// maxText bounds the text of a payload or of parameters, in bytes.
	maxText = 4 << 10
)

// Write writes the course of a range of a session. Its memory does not depend on the
// number of entries. Errors are those of [course.Walk] and of w.
func Write(ctx context.Context, w io.Writer, r *replay.Replay, over course.Passage) error {
	t := &trace{
		w: bufio.NewWriterSize(w, 64<<10), processes: map[string]int{}, tracks: map[track]bool{},
		tasks: map[string]eventlog.Seq{}, calls: map[string]eventlog.Seq{}, open: map[string]*performance{},
	}
	fork, err := session.ReadFork(ctx, r)
	if err != nil {
		return err
	}
	title, about := "session "+r.Name(), map[string]string{"session": r.Name(), "head": r.Head().String()}
	if fork != nil {
		about["fork"] = fork.String()
		title += ", " + fork.Title()
	}
	t.put(`{"displayTimeUnit":"ns","otherData":`)
	t.json(about)
	t.put(`,"traceEvents":[`)
	t.name(event{phase: "M", name: "process_name", pid: sessionProcess}, title)
	end, err := course.Walk(ctx, r, over, t)
	if err == nil {
		t.end(end)
		err = t.err
	}
	if err != nil {
		return err
	}
	t.put("\n]}\n")
	return t.w.Flush()
}

// The process of the session, and the tracks of entries.
const (
	sessionProcess = 1
	signalsTrack   = 1
)

type track struct{ pid, tid int }

// performance is one that is under way.
type performance struct {
	id    string
	name  string
	pid   int
	lanes []*action // those that run, by lane; nil for a free one
}

// action is one animated action that runs.
type action struct {
	name, entity string
	until        time.Duration
}

// trace is the sink that writes events. Its first error is kept; nothing is written after.
type trace struct {
	w   *bufio.Writer
	err error

	events    int
	processes map[string]int // by agent
	tracks    map[track]bool // that have their name
	tasks     map[string]eventlog.Seq
	calls     map[string]eventlog.Seq
	open      map[string]*performance
	order     []string // of open, in the order they were made; may hold ended ones
	pid       int      // of the last signal
}

// event is one trace event. Fields that are zero are left out, but for its time.
type event struct {
	phase, name, category string
	pid, tid              int
	at                    time.Duration
	id                    string
	dur                   bool // a slice of one nanosecond
	bind                  bool // a flow that ends in the slice around it
	args                  any
}

func (t *trace) put(s string) {
	if t.err == nil {
		_, t.err = t.w.WriteString(s)
	}
}

func (t *trace) json(v any) {
	data, err := json.Marshal(v)
	if err != nil && t.err == nil {
		t.err = err
	}
	if t.err == nil {
		_, t.err = t.w.Write(termtext.PrintableJSON(data)) // a trace may be printed
	}
}

// emit writes an event.
func (t *trace) emit(e event) {
	if t.events++; t.events > 1 {
		t.put(",")
	}
	t.put("\n" + `{"ph":"` + e.phase + `","pid":` + strconv.Itoa(e.pid) + `,"tid":` + strconv.Itoa(e.tid) + `,"ts":` + microseconds(e.at))
	if e.name != "" {
		t.put(`,"name":`)
		t.json(clip(e.name))
	}
	if e.category != "" {
		t.put(`,"cat":"` + e.category + `"`)
	}
	if e.id != "" {
		t.put(`,"id":"` + e.id + `"`)
	}
	if e.dur {
		t.put(`,"dur":0.001`)
	}
	if e.bind {
		t.put(`,"bp":"e"`)
	}
	if e.phase == "i" {
		t.put(`,"s":"t"`)
	}
	if e.args != nil {
		t.put(`,"args":`)
		t.json(e.args)
	}
	t.put("}")
}

// microseconds writes a time with its nanoseconds as decimals.
func microseconds(at time.Duration) string {
	b := strconv.AppendInt(make([]byte, 0, 24), int64(at/1000), 10)
	if ns := int64(at % 1000); ns != 0 {
		b = append(b, '.', byte('0'+ns/100), byte('0'+ns/10%10), byte('0'+ns%10))
	}
	return string(b)
}

func (t *trace) name(e event, name string) {
	e.args = map[string]string{"name": clip(name)}
	t.emit(e)
}

// process returns the process of an agent, and names it and its track of signals first
// if it is new.
func (t *trace) process(agent string) int {
	if agent == "" {
		return sessionProcess
	}
	key := keyOf(agent)
	pid, known := t.processes[key]
	if !known && len(t.processes) >= maxAgents {
		return sessionProcess
	}
	if !known {
		pid = sessionProcess + 1 + len(t.processes)
		t.processes[key] = pid
		t.name(event{phase: "M", name: "process_name", pid: pid}, agent)
	}
	return pid
}

// on names a track before its first event.
func (t *trace) on(pid, tid int, name string) {
	if k := (track{pid, tid}); !t.tracks[k] {
		t.tracks[k] = true
		t.name(event{phase: "M", name: "thread_name", pid: pid, tid: tid}, name)
	}
}

// OnEntry implements [course.Sink].
func (t *trace) OnEntry(e *eventlog.Entry) error {
	if e.Kind == eventlog.KindSignal {
		if sig, err := session.SignalOf(e); err == nil {
			t.signal(e, &sig)
			return t.err
		}
	}
	name := e.Kind.String()
	if word, _, err := session.WordOf(e); err == nil && word != "" {
		name = word
	}
	tid := 2 + int(e.Kind)
	t.on(sessionProcess, tid, e.Kind.String())
	t.emit(event{phase: "i", name: name, category: "entry", pid: sessionProcess, tid: tid, at: e.At, args: map[string]any{"seq": e.Seq}})
	t.pid = sessionProcess
	return t.err
}

// signalArgs are the facts about a signal that the viewer shows beside it.
type signalArgs struct {
	Seq         eventlog.Seq `json:"seq"`
	ID          string       `json:"id,omitempty"`
	Source      string       `json:"source,omitempty"`
	Correlation string       `json:"correlationId,omitempty"`
	Payload     string       `json:"payload,omitempty"`
}

func (t *trace) signal(e *eventlog.Entry, sig *signal.Signal) {
	p := sig.Payload
	agent := p.TextOf("agentId")
	if sig.Type == "task_dispatch" {
		agent = p.TextOf("from")
	}
	pid := t.process(agent)
	t.pid = pid
	t.on(pid, signalsTrack, "signals")
	args := signalArgs{Seq: e.Seq, ID: clip(sig.ID), Source: clip(sig.Source), Payload: clip(string(p.AppendJSON(nil)))}
	if sig.CorrelationID != nil {
		args.Correlation = clip(*sig.CorrelationID)
	}
	at := event{phase: "i", name: sig.Type, category: "signal", pid: pid, tid: signalsTrack, at: e.At, args: args}
	flow := event{category: "flow", pid: pid, tid: signalsTrack, at: e.At}
	switch sig.Type {
	case "task_dispatch":
		t.begin(at, flow, t.tasks, p.TextOf("taskId"), "task", e.Seq)
		// The work of the performer begins here too, so its process has a name.
		t.pid = t.process(p.TextOf("to"))
	case "completion":
		t.finish(at, flow, t.tasks, p.TextOf("taskId"), "task")
	case "tool_call":
		t.begin(at, flow, t.calls, p.TextOf("callId"), "call", e.Seq)
	case "tool_result":
		t.finish(at, flow, t.calls, p.TextOf("callId"), "call")
	default:
		t.emit(at)
	}
}

// begin writes a signal from which a flow starts.
func (t *trace) begin(at, flow event, open map[string]eventlog.Seq, id, name string, seq eventlog.Seq) {
	key := keyOf(id)
	_, again := open[key]
	if id == "" || !again && len(open) >= maxOpen {
		t.emit(at)
		return
	}
	open[key] = seq
	at.phase, at.dur = "X", true
	t.emit(at)
	flow.phase, flow.name, flow.id = "s", name, strconv.FormatUint(uint64(seq), 10)
	t.emit(flow)
}

// finish writes a signal in which a flow ends.
func (t *trace) finish(at, flow event, open map[string]eventlog.Seq, id, name string) {
	key := keyOf(id)
	seq, known := open[key]
	if !known {
		t.emit(at)
		return
	}
	delete(open, key)
	at.phase, at.dur = "X", true
	t.emit(at)
	flow.phase, flow.name, flow.id, flow.bind = "f", name, strconv.FormatUint(uint64(seq), 10), true
	t.emit(flow)
}

// OnPerformance implements [choreography.PerformanceSink].
func (t *trace) OnPerformance(p choreography.Performance) {
	name := p.Name()
	if name == "" {
		name = "on " + p.On
	}
	if p.Handler {
		name += " (onInterrupt)"
	}
	perf := &performance{id: p.ID(), name: name, pid: max(t.pid, sessionProcess)}
	t.open[perf.id] = perf
	t.order = append(t.order, perf.id)
	t.compact()
	t.emit(event{
		phase: "b", name: name, category: "performance", pid: perf.pid, id: perf.id, at: p.Began,
		args: map[string]any{"performance": perf.id, "signal": p.Signal, "correlationId": clip(p.CorrelationID)},
	})
}

// compact forgets the order of performances that have ended.
func (t *trace) compact() {
	if len(t.order) < 64 || len(t.order) < 2*len(t.open) {
		return
	}
	kept := t.order[:0]
	for _, id := range t.order {
		if t.open[id] != nil {
			kept = append(kept, id)
		}
	}
	t.order = kept
}

// lane returns the id of a track of a performance: that of the performance itself for
// the first of the actions that run at once.
func (p *performance) lane(i int) string {
	if i == 0 {
		return p.id
	}
	return p.id + "/" + strconv.Itoa(i+1)
}

// OnActionStart implements [choreography.CommandSink].
func (t *trace) OnActionStart(c choreography.ActionStart) {
	p := t.open[c.PerformanceID]
	if p == nil {
		return
	}
	a := &action{name: c.Action, entity: c.EntityRef, until: c.At + time.Duration(c.Duration*float64(time.Millisecond))}
	i := 0
	for i < len(p.lanes) && p.lanes[i] != nil {
		i++
	}
	if i == len(p.lanes) {
		p.lanes = append(p.lanes, nil)
	}
	p.lanes[i] = a
	t.emit(event{phase: "b", name: a.title(), category: "performance", pid: p.pid, id: p.lane(i), at: c.At, args: actionArgs(c.EntityRef, c.Params)})
}

func (a *action) title() string { return title(a.name, a.entity) }

func title(action, entity string) string {
	if entity == "" {
		return action
	}
	return action + " " + entity
}

func actionArgs(entity string, params map[string]any) any {
	text, err := json.Marshal(params)
	if err != nil {
		text = nil // a number that JSON does not have
	}
	return map[string]string{"entity": clip(entity), "params": clip(string(text))}
}

// OnActionUpdate implements [choreography.CommandSink].
func (t *trace) OnActionUpdate(choreography.ActionUpdate) {}

// OnActionComplete implements [choreography.CommandSink]. Of several equal actions it
// ends the one that was to end nearest to this instant.
func (t *trace) OnActionComplete(c choreography.ActionComplete) {
	p := t.open[c.PerformanceID]
	if p == nil {
		return
	}
	best := -1
	for i, a := range p.lanes {
		if a == nil || a.name != c.Action || a.entity != c.EntityRef {
			continue
		}
		if best < 0 || (a.until-c.At).Abs() < (p.lanes[best].until-c.At).Abs() {
			best = i
		}
	}
	if best >= 0 {
		t.endAction(p, best, c.At)
	}
}

func (t *trace) endAction(p *performance, i int, at time.Duration) {
	t.emit(event{phase: "e", name: p.lanes[i].title(), category: "performance", pid: p.pid, id: p.lane(i), at: at})
	p.lanes[i] = nil
}

// OnActionExecute implements [choreography.CommandSink].
func (t *trace) OnActionExecute(c choreography.ActionExecute) {
	if p := t.open[c.PerformanceID]; p != nil {
		t.emit(event{phase: "n", name: title(c.Action, c.EntityRef), category: "performance", pid: p.pid, id: p.id, at: c.At, args: actionArgs(c.EntityRef, c.Params)})
	}
}

// OnInterrupt implements [choreography.CommandSink].
func (t *trace) OnInterrupt(c choreography.Interrupt) {
	if p := t.open[c.PerformanceID]; p != nil {
		t.emit(event{phase: "n", name: "interrupted by " + c.InterruptedBy, category: "performance", pid: p.pid, id: p.id, at: c.At})
	}
}

// OnPerformanceEnd implements [choreography.PerformanceSink].
func (t *trace) OnPerformanceEnd(at time.Duration, id string) {
	if p := t.open[id]; p != nil {
		t.endPerformance(p, at)
		delete(t.open, id)
	}
}

// endPerformance ends the actions that an interruption has stopped, and then the
// performance around them.
func (t *trace) endPerformance(p *performance, at time.Duration) {
	for i, a := range p.lanes {
		if a != nil {
			t.endAction(p, i, at)
		}
	}
	t.emit(event{phase: "e", name: p.name, category: "performance", pid: p.pid, id: p.id, at: at})
}

// end ends what is still under way at the end of the course.
func (t *trace) end(at time.Duration) {
	for _, id := range t.order {
		if p := t.open[id]; p != nil {
			t.endPerformance(p, at)
		}
	}
}

// keyOf returns a key for a recorded name that takes little memory.
func keyOf(name string) string {
	if len(name) <= sha256.Size {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return string(sum[:])
}

// clip bounds a text. The bytes of a character that is cut become U+FFFD in JSON.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return s[:maxText] + "…"
}
