package conformance

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
)

// The oracle is a second engine, which shares nothing with the first but the
// decoding of scenarios. The first one moves cursors through time; this one
// relies on the independence of performances: when one is made, all of its
// commands to come are written down with their instants.
// An advance picks from these lists what is due, and an interruption throws the
// rest of a list away.

// oracle holds the commands so far and those to come.
type oracle struct {
	definitions []map[string]any
	sequences   map[string]any // in force; never changed, but replaced
	now         time.Duration
	acts        []*act // in the order they were made
	told        []choreography.Command
}

// act is one performance, or one handler.
type act struct {
	id          int
	correlation *string // nil for a handler
	handler     []any   // the steps to run should it be interrupted
	signal      envelope
	beats       []beat        // not told yet, depth first
	spans       []span        // all animations, depth first
	end         time.Duration // when its last step ends
	played      bool          // an advance has come since it was made
	stopped     bool
}

type envelope struct {
	typ     string
	payload any
}

// beat is one start, complete or execute at a known instant. Place orders the
// commands of an act depth first; an update has the place of its start, and part
// 1 to come after it.
type beat struct {
	at          time.Duration
	place, part int
	command     choreography.Command
}

// span is one animation of some length, from its start up to its end.
type span struct {
	start, end time.Duration
	length     float64 // ns as written
	place      int
	command    choreography.Command
	easing     string
}

// never is later than every advance can reach.
const never = time.Duration(math.MaxInt64)

func runOracle(s *rehearsal.Scenario) []choreography.Command {
	o := &oracle{}
	for _, d := range s.Definitions {
		o.definitions = append(o.definitions, d.Value().Any().(map[string]any))
	}
	for _, step := range s.Script {
		if step.Signal != nil {
			o.take(envelope{step.Signal.Type, step.Signal.Payload.Any()}, step.Signal.CorrelationID)
		} else {
			o.advance(later(o.now, step.Advance))
		}
	}
	return inOrder(o.told)
}

// inOrder names performances as they appear.
func inOrder(told []choreography.Command) []choreography.Command {
	names := map[string]string{}
	for i := range told {
		id := told[i].PerformanceID
		if names[id] == "" {
			names[id] = fmt.Sprintf("p%d", len(names)+1)
		}
		told[i].PerformanceID = names[id]
	}
	return told
}

// take applies a signal: the only commands at once are interrupts.
func (o *oracle) take(sig envelope, correlation *string) {
	for _, def := range o.definitions {
		if def["on"] != sig.typ || !holds(def["when"], sig) {
			continue
		}
		if truthy(def["interrupts"]) && correlation != nil {
			for _, a := range slices.Clone(o.acts) {
				if a.stopped || a.done(o.now) || a.correlation == nil || *a.correlation != *correlation {
					continue
				}
				a.stopped = true
				o.told = append(o.told, choreography.Command{
					At: o.now, Kind: choreography.CommandInterrupt, PerformanceID: fmt.Sprint(a.id),
					CorrelationID: *correlation, InterruptedBy: sig.typ,
				})
				if len(a.handler) > 0 {
					o.make(a.handler, nil, a.signal, nil)
				}
			}
		}
		var steps, handler []any
		for _, step := range listOf(def["steps"]) {
			if s := step.(map[string]any); s["action"] == "onInterrupt" && s["when"] != nil {
				handler = append(handler, map[string]any{"action": "onArrive", "when": s["when"], "steps": s["steps"]})
			} else if s["action"] == "onInterrupt" {
				handler = append(handler, listOf(s["steps"])...)
			} else {
				steps = append(steps, step)
			}
		}
		o.make(steps, handler, sig, correlation)
	}
}

// make begins an act now and writes down all it will do.
func (o *oracle) make(steps, handler []any, sig envelope, correlation *string) {
	a := &act{id: len(o.acts) + 1, correlation: correlation, handler: handler, signal: sig}
	a.end = a.sequence(steps, o.now, words{})
	o.acts = append(o.acts, a)
}

func (a *act) done(now time.Duration) bool { return a.played && a.end <= now }

// sequence writes down steps one after the other and returns when they end.
func (a *act) sequence(steps []any, at time.Duration, in words) time.Duration {
	for _, step := range steps {
		at = a.step(step.(map[string]any), at, in)
	}
	return at
}

// step writes down one step that is reached at an instant and returns when it
// ends.
func (a *act) step(step map[string]any, at time.Duration, in words) time.Duration {
	step = in.say(step)
	action := step["action"].(string)
	if when, ok := step["when"]; ok && isCondition(when) {
		if !holds(when, a.signal) {
			return at
		}
		step = maps.Clone(step)
		delete(step, "when")
	}
	written, _ := number(step["duration"])
	switch action {
	case "include", "repeat", "stagger":
		return a.composed(step, at, in)
	case "wait":
		return later(at, lengthOf(written))
	case "onArrive":
		return a.sequence(listOf(step["steps"]), at, in)
	case "parallel":
		end := at
		for _, child := range listOf(step["steps"]) {
			end = max(end, a.step(child.(map[string]any), at, in))
		}
		return end
	}

	if delay, ok := number(step["delay"]); ok {
		at = later(at, lengthOf(delay))
	}
	c := choreography.Command{
		PerformanceID: fmt.Sprint(a.id), Action: action,
		EntityRef: entityOf(step, a.signal), Params: paramsOf(step, a.signal),
	}
	_, animated := step["duration"]
	if !animated || slices.Contains([]string{"spawn", "destroy", "playSound", "setAnimation"}, action) {
		a.tell(choreography.CommandExecute, at, c)
		return at
	}
	start, place := c, len(a.beats)
	start.Duration, start.Easing = written, "linear"
	if name, ok := step["easing"].(string); ok {
		start.Easing = name
	}
	a.tell(choreography.CommandStart, at, start)
	end := later(at, lengthOf(written))
	if end > at {
		a.spans = append(a.spans, span{at, end, written * 1e6, place, c, start.Easing})
	}
	a.tell(choreography.CommandComplete, end, c)
	return end
}

// tell writes one command down. Until an act is played its list only grows, so
// that the length gives the place.
func (a *act) tell(kind choreography.CommandKind, at time.Duration, c choreography.Command) {
	c.Kind, c.At = kind, at
	a.beats = append(a.beats, beat{at: at, place: len(a.beats), command: c})
}

// advance tells what is due up to and including an instant: by instants, then
// acts, then depth first. Updates belong to the last instant.
func (o *oracle) advance(to time.Duration) {
	type due struct {
		beat
		act int
	}
	var list []due
	for _, a := range o.acts {
		if a.stopped {
			continue
		}
		a.played = true
		var rest []beat
		for _, b := range a.beats {
			if b.at <= to && b.at != never {
				list = append(list, due{b, a.id})
			} else {
				rest = append(rest, b)
			}
		}
		a.beats = rest
		for _, s := range a.spans {
			if s.start <= to && to < s.end {
				c := s.command
				c.Kind, c.At, c.Elapsed = choreography.CommandUpdate, to, to-s.start
				c.Progress = eased(s.easing, float64(c.Elapsed)/s.length)
				list = append(list, due{beat{at: to, place: s.place, part: 1, command: c}, a.id})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b due) int {
		for _, d := range []int{int(sign(a.at - b.at)), a.act - b.act, a.place - b.place, a.part - b.part} {
			if d != 0 {
				return d
			}
		}
		return 0
	})
	for _, d := range list {
		o.told = append(o.told, d.command)
	}
	o.now = to
}

func sign(d time.Duration) time.Duration { return min(max(d, -1), 1) }

// later adds a length to an instant; what is out of reach is never.
func later(at, length time.Duration) time.Duration {
	if length > never-at {
		return never
	}
	return at + length
}

// lengthOf makes ms a length of time; what is not positive takes none.
func lengthOf(ms float64) time.Duration {
	switch ns := math.Round(ms * 1e6); {
	case ns <= 0:
		return 0
	case ns >= math.MaxInt64:
		return never
	default:
		return time.Duration(ns)
	}
}

func eased(name string, t float64) float64 {
	switch name {
	case "easeIn":
		return math.Pow(t, 2)
	case "easeOut":
		return 1 - math.Pow(1-t, 2)
	case "easeInOut":
		if t < 0.5 {
			return 4 * math.Pow(t, 3)
		}
		return 1 - math.Pow(2-2*t, 3)/2
	case "arc":
		return 4 * t * (1 - t)
	}
	return t
}

// lookUp returns the value of a reference without its prefix.
func lookUp(path string, sig envelope) (any, bool) {
	if path == "type" {
		return sig.typ, true
	}
	v := sig.payload
	for _, segment := range strings.Split(path, ".") {
		switch within := v.(type) {
		case map[string]any:
			member, ok := within[segment]
			if !ok {
				return nil, false
			}
			v = member
		case []any:
			found := false
			for i, element := range within {
				if fmt.Sprint(i) == segment {
					v, found = element, true
					break
				}
			}
			if !found {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return v, true
}

func resolve(v any, sig envelope) (any, bool) {
	if text, ok := v.(string); ok && strings.HasPrefix(text, "signal.") {
		return lookUp(text[len("signal."):], sig)
	}
	return v, true
}

func paramsOf(step map[string]any, sig envelope) map[string]any {
	params := map[string]any{}
	for key, value := range step {
		switch key {
		case "action", "entity", "target", "delay", "duration", "easing", "steps":
			continue
		}
		if v, ok := resolve(value, sig); ok {
			params[key] = v
		}
	}
	return params
}

func entityOf(step map[string]any, sig envelope) string {
	named := step["entity"]
	if named == nil {
		named = step["target"]
	}
	v, _ := resolve(named, sig)
	text, _ := v.(string)
	return text
}

// holds judges a when clause.
func holds(when any, sig envelope) bool {
	switch clause := when.(type) {
	case map[string]any:
		for path, operator := range clause {
			value, found := lookUp(strings.TrimPrefix(path, "signal."), sig)
			if !satisfies(operator, value, found) {
				return false
			}
		}
	case []any:
		for _, alternative := range clause {
			if holds(alternative, sig) {
				return true
			}
		}
		return len(clause) == 0
	}
	return true
}

// isCondition tells a condition of a step from a parameter of that name.
func isCondition(when any) bool {
	switch when := when.(type) {
	case map[string]any:
		for _, operator := range when {
			if _, ok := operator.(map[string]any); !ok {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(when, func(alternative any) bool {
			_, ok := alternative.(map[string]any)
			return !ok || !isCondition(alternative)
		})
	}
	return false
}

func satisfies(operator, value any, found bool) bool {
	ops, ok := operator.(map[string]any)
	if !ok {
		return true
	}
	if inner, ok := ops["not"]; ok {
		return !satisfies(inner, value, found)
	}
	text, isText := value.(string)
	n, isNumber := number(value)
	for name, operand := range ops {
		ok := true
		switch name {
		case "equals":
			ok = found && same(value, operand)
		case "contains":
			part, can := operand.(string)
			ok = isText && can && strings.Contains(text, part)
		case "matches":
			pattern, can := operand.(string)
			re, err := regexp.Compile(dots.ReplaceAllStringFunc(pattern, dot))
			ok = isText && can && err == nil && re.MatchString(text)
		case "gt":
			limit, can := number(operand)
			ok = isNumber && can && n > limit
		case "lt":
			limit, can := number(operand)
			ok = isNumber && can && n < limit
		case "exists":
			ok = (value != nil) == truthy(operand)
		}
		if !ok {
			return false
		}
	}
	return true
}

// dots finds what escapes and dots a pattern has. The dot of JavaScript takes
// less than Go's; other differences do not occur in what the oracle is given.
var dots = regexp.MustCompile(`\\.|\.`)

func dot(found string) string {
	if found == "." {
		return `[^\n\r\x{2028}\x{2029}]`
	}
	return found
}

// same is === on what JSON can hold.
func same(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool, string:
		return a == b
	}
	m, ok := number(a)
	n, also := number(b)
	return ok && also && m == n
}

// truthy is a JavaScript condition on what JSON can hold.
func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	}
	n, ok := number(v)
	return !ok || n != 0
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}
