package choreography

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// CommandSink receives what the scheduler tells a renderer, in order, during the
// scheduler's calls. It must not call back into the scheduler. Maps it is given
// are shared between commands and must not be changed.
type CommandSink interface {
	// OnActionStart tells that an animated action begins.
	OnActionStart(ActionStart)
	// OnActionUpdate tells how far a running action is. Progress never
	// reaches a raw 1 here: ActionComplete stands for it.
	OnActionUpdate(ActionUpdate)
	// OnActionComplete tells that an animated action ended by itself.
	OnActionComplete(ActionComplete)
	// OnActionExecute tells of an instant action.
	OnActionExecute(ActionExecute)
	// OnInterrupt tells that a performance was ended from outside. Its
	// running actions get no ActionComplete.
	OnInterrupt(Interrupt)
}

// ActionStart is the beginning of an animated action.
type ActionStart struct {
	At            time.Duration // session time
	PerformanceID string
	Action        string
	EntityRef     string         // "" if the step names no entity
	Params        map[string]any // never nil; values as [signal.Value.Any] gives them
	Duration      float64        // ms as written, may be negative; 0 if it was no number
	Easing        string         // the name as written, known or not; "linear" if absent
}

// ActionUpdate is a moment inside an animated action.
type ActionUpdate struct {
	At            time.Duration
	PerformanceID string
	Action        string
	EntityRef     string
	Params        map[string]any
	Progress      float64       // eased; the raw progress is in [0, 1)
	Elapsed       time.Duration // since the start
}

// ActionComplete is the end of an animated action.
type ActionComplete struct {
	At            time.Duration
	PerformanceID string
	Action        string
	EntityRef     string
	Params        map[string]any
}

// ActionExecute is an instant action.
type ActionExecute struct {
	At            time.Duration
	PerformanceID string
	Action        string
	EntityRef     string
	Params        map[string]any
}

// Interrupt is the end of a performance at the hand of another signal.
type Interrupt struct {
	At            time.Duration
	PerformanceID string
	CorrelationID string // of the performance; "" if it has none and was preempted
	InterruptedBy string // the signal's type
}

// CommandKind says which call of a [CommandSink] a [Command] stands for.
type CommandKind string

// The kinds of command.
const (
	CommandStart     CommandKind = "start"
	CommandUpdate    CommandKind = "update"
	CommandComplete  CommandKind = "complete"
	CommandExecute   CommandKind = "execute"
	CommandInterrupt CommandKind = "interrupt"
)

// Command is any command as one flat value, for recording, comparing and
// writing down. Fields that its kind does not have are zero.
type Command struct {
	At            time.Duration
	Kind          CommandKind
	PerformanceID string
	Action        string
	EntityRef     string
	Params        map[string]any
	Duration      float64 // start: ms as written
	Easing        string  // start
	Progress      float64 // update
	Elapsed       time.Duration
	CorrelationID string // interrupt
	InterruptedBy string // interrupt
}

// Command returns c in its flat form.
func (c ActionStart) Command() Command {
	return Command{
		At: c.At, Kind: CommandStart, PerformanceID: c.PerformanceID, Action: c.Action,
		EntityRef: c.EntityRef, Params: c.Params, Duration: c.Duration, Easing: c.Easing,
	}
}

// Command returns c in its flat form.
func (c ActionUpdate) Command() Command {
	return Command{
		At: c.At, Kind: CommandUpdate, PerformanceID: c.PerformanceID, Action: c.Action,
		EntityRef: c.EntityRef, Params: c.Params, Progress: c.Progress, Elapsed: c.Elapsed,
	}
}

// Command returns c in its flat form.
func (c ActionComplete) Command() Command {
	return Command{
		At: c.At, Kind: CommandComplete, PerformanceID: c.PerformanceID, Action: c.Action,
		EntityRef: c.EntityRef, Params: c.Params,
	}
}

// Command returns c in its flat form.
func (c ActionExecute) Command() Command {
	return Command{
		At: c.At, Kind: CommandExecute, PerformanceID: c.PerformanceID, Action: c.Action,
		EntityRef: c.EntityRef, Params: c.Params,
	}
}

// Command returns c in its flat form.
func (c Interrupt) Command() Command {
	return Command{
		At: c.At, Kind: CommandInterrupt, PerformanceID: c.PerformanceID,
		CorrelationID: c.CorrelationID, InterruptedBy: c.InterruptedBy,
	}
}

// Send hands c to the call of sink that its kind names, and reports whether the
// kind is one. Recorded commands can so be played to a renderer again.
func (c Command) Send(sink CommandSink) bool {
	switch c.Kind {
	case CommandStart:
		sink.OnActionStart(ActionStart{c.At, c.PerformanceID, c.Action, c.EntityRef, c.Params, c.Duration, c.Easing})
	case CommandUpdate:
		sink.OnActionUpdate(ActionUpdate{c.At, c.PerformanceID, c.Action, c.EntityRef, c.Params, c.Progress, c.Elapsed})
	case CommandComplete:
		sink.OnActionComplete(ActionComplete{c.At, c.PerformanceID, c.Action, c.EntityRef, c.Params})
	case CommandExecute:
		sink.OnActionExecute(ActionExecute{c.At, c.PerformanceID, c.Action, c.EntityRef, c.Params})
	case CommandInterrupt:
		sink.OnInterrupt(Interrupt{c.At, c.PerformanceID, c.CorrelationID, c.InterruptedBy})
	default:
		return false
	}
	return true
}

// commandJSON is the written form: times in milliseconds, and only the fields
// that the kind has.
type commandJSON struct {
	T             float64        `json:"t"`
	Kind          CommandKind    `json:"kind"`
	Performance   string         `json:"performance"`
	Action        *string        `json:"action,omitempty"`
	EntityRef     *string        `json:"entityRef,omitempty"`
	Params        map[string]any `json:"params,omitzero"`
	Duration      *float64       `json:"duration,omitempty"`
	Easing        *string        `json:"easing,omitempty"`
	Progress      *float64       `json:"progress,omitempty"`
	Elapsed       *float64       `json:"elapsed,omitempty"`
	CorrelationID *string        `json:"correlationId,omitempty"`
	InterruptedBy *string        `json:"interruptedBy,omitempty"`
}

// MarshalJSON writes c as an object with t and elapsed in milliseconds: {"t",
// "kind", "performance", then the fields of the kind}.
func (c Command) MarshalJSON() ([]byte, error) {
	j := commandJSON{T: milliseconds(c.At), Kind: c.Kind, Performance: c.PerformanceID}
	if c.Kind == CommandInterrupt {
		j.CorrelationID, j.InterruptedBy = &c.CorrelationID, &c.InterruptedBy
		return json.Marshal(j)
	}
	j.Action, j.EntityRef, j.Params = &c.Action, &c.EntityRef, c.Params
	if j.Params == nil {
		j.Params = map[string]any{}
	}
	switch c.Kind {
	case CommandStart:
		j.Duration, j.Easing = &c.Duration, &c.Easing
	case CommandUpdate:
		elapsed := milliseconds(c.Elapsed)
		j.Progress, j.Elapsed = &c.Progress, &elapsed
	default:
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what [Command.MarshalJSON] writes. Numbers in params are
// float64.
func (c *Command) UnmarshalJSON(data []byte) error {
	var j commandJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("choreography: command: %w", err)
	}
	*c = Command{
		At: fromMilliseconds(j.T), Kind: j.Kind, PerformanceID: j.Performance,
		Action: deref(j.Action), EntityRef: deref(j.EntityRef), Params: j.Params,
		Duration: deref(j.Duration), Easing: deref(j.Easing),
		Progress:      deref(j.Progress),
		CorrelationID: deref(j.CorrelationID), InterruptedBy: deref(j.InterruptedBy),
	}
	if j.Elapsed != nil {
		c.Elapsed = fromMilliseconds(*j.Elapsed)
	}
	return nil
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

func fromMilliseconds(ms float64) time.Duration {
	switch ns := math.Round(float64(ms * 1e6)); {
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns <= math.MinInt64:
		return math.MinInt64
	default:
		return time.Duration(ns)
	}
}

// RecordingSink is a [CommandSink] that keeps every command.
type RecordingSink struct {
	Commands []Command
}

var _ CommandSink = (*RecordingSink)(nil)

// OnActionStart records c.
func (r *RecordingSink) OnActionStart(c ActionStart) { r.Commands = append(r.Commands, c.Command()) }

// OnActionUpdate records c.
func (r *RecordingSink) OnActionUpdate(c ActionUpdate) { r.Commands = append(r.Commands, c.Command()) }

// OnActionComplete records c.
func (r *RecordingSink) OnActionComplete(c ActionComplete) {
	r.Commands = append(r.Commands, c.Command())
}

// OnActionExecute records c.
func (r *RecordingSink) OnActionExecute(c ActionExecute) {
	r.Commands = append(r.Commands, c.Command())
}

// OnInterrupt records c.
func (r *RecordingSink) OnInterrupt(c Interrupt) { r.Commands = append(r.Commands, c.Command()) }
