package choreography

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// CommandSink receives the scheduler's commands to a renderer, in order, during the
// scheduler's calls. It must not call back into the scheduler. Commands share the
// maps in them, so the sink must not change them.
type CommandSink interface {
	// OnActionStart reports the beginning of an animated action.
	OnActionStart(ActionStart)
	// OnActionUpdate reports the progress of a running action. The raw progress is
	// below 1; OnActionComplete reports the end.
	OnActionUpdate(ActionUpdate)
	// OnActionComplete reports that an animated action ended by itself.
	OnActionComplete(ActionComplete)
	// OnActionExecute reports an instant action.
	OnActionExecute(ActionExecute)
	// OnInterrupt reports that another signal ended a performance. Its running
	// actions get no OnActionComplete.
	OnInterrupt(Interrupt)
}

// PerformanceSink is an optional interface of a [CommandSink] that also receives the
// beginning and the end of each performance, in the order of the commands.
type PerformanceSink interface {
	// OnPerformance reports a performance that its signal has just made. It is valid
	// only during the call. It does not say yet whether the performance waits for its
	// guard.
	OnPerformance(p Performance)
	// OnPerformanceEnd reports the end of a performance, after the last of its
	// commands; after an OnInterrupt if it was interrupted.
	OnPerformanceEnd(at time.Duration, performanceID string)
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

// Interrupt is the end of a performance that another signal interrupted or preempted.
type Interrupt struct {
	At            time.Duration
	PerformanceID string
	CorrelationID string // of the performance; "" if it has none and was preempted
	InterruptedBy string // the signal's type
}

// CommandKind says which method of [CommandSink] takes a [Command].
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
// encoding. Fields that its kind does not have are zero.
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

// Command returns c as a [Command].
func (c ActionStart) Command() Command {
	return Command{
		At: c.At, Kind: CommandStart, PerformanceID: c.PerformanceID, Action: c.Action,
		EntityRef: c.EntityRef, Params: c.Params, Duration: c.Duration, Easing: c.Easing,
	}
}

// Command returns c as a [Command].
func (c ActionUpdate) Command() Command {
	return Command{
		At: c.At, Kind: CommandUpdate, PerformanceID: c.PerformanceID, Action: c.Action,
		EntityRef: c.EntityRef, Params: c.Params, Progress: c.Progress, Elapsed: c.Elapsed,
	}
}

// Command returns c as a [Command].
func (c ActionComplete) Command() Command {
	return Command{
		At: c.At, Kind: CommandComplete, PerformanceID: c.PerformanceID, Action: c.Action,
		EntityRef: c.EntityRef, Params: c.Params,
	}
}

// Command returns c as a [Command].
func (c ActionExecute) Command() Command {
	return Command{
		At: c.At, Kind: CommandExecute, PerformanceID: c.PerformanceID, Action: c.Action,
		EntityRef: c.EntityRef, Params: c.Params,
	}
}

// Command returns c as a [Command].
func (c Interrupt) Command() Command {
	return Command{
		At: c.At, Kind: CommandInterrupt, PerformanceID: c.PerformanceID,
		CorrelationID: c.CorrelationID, InterruptedBy: c.InterruptedBy,
	}
}

// commandJSON is the JSON form of a [Command]: times in milliseconds, and only the
// fields that the kind has.
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

	// Most, unless zero, bounds how many commands are recorded; the rest is dropped.
	Most int
}

var _ CommandSink = (*RecordingSink)(nil)

func (r *RecordingSink) add(c Command) {
	if r.Most == 0 || len(r.Commands) < r.Most {
		r.Commands = append(r.Commands, c)
	}
}

// OnActionStart records c.
func (r *RecordingSink) OnActionStart(c ActionStart) { r.add(c.Command()) }

// OnActionUpdate records c.
func (r *RecordingSink) OnActionUpdate(c ActionUpdate) { r.add(c.Command()) }

// OnActionComplete records c.
func (r *RecordingSink) OnActionComplete(c ActionComplete) { r.add(c.Command()) }

// OnActionExecute records c.
func (r *RecordingSink) OnActionExecute(c ActionExecute) { r.add(c.Command()) }

// OnInterrupt records c.
func (r *RecordingSink) OnInterrupt(c Interrupt) { r.add(c.Command()) }
