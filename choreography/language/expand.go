package language

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// This file expands the steps that only authors see: it replaces include, repeat and
// stagger by other steps, so that a definition in force holds only the steps that
// [definition.Compile] knows and does not depend on later declarations.

// Bounds of the expansion of one definition. The numbers belong to rules 1.
const (
	// maxExpanded bounds the bytes of one expanded definition.
	maxExpanded = 8 << 20

	// Some steps and arguments are visited without being written: includes of empty
	// sequences, or arguments that no step uses. The number of visited steps and
	// bytes is bounded by these constants plus a multiple of the output and of the
	// definition's own size.
	freeVisits    = 1000
	freeBytes     = 64 << 10
	wasteByOutput = 32 // times

	// maxDescent bounds the nesting of structural steps, across all included
	// sequences.
	maxDescent = 4 * definition.MaxNesting
)

// structural returns the action of a step that is expanded before it is performed, ""
// for any other step. A step that lacks the members of its kind is an ordinary
// action, as it was before structural steps existed.
func structural(step signal.Value) string {
	has := func(name string) bool {
		_, ok := step.Get(name)
		return ok
	}
	switch action := definition.ActionOf(step); {
	case action == "include" && has("sequence"),
		action == "repeat" && has("times") && has("steps"),
		action == "stagger" && has("every") && has("steps"):
		return action
	}
	return ""
}

// isPlain reports whether a list of steps needs no expansion.
func isPlain(steps signal.Value) bool {
	for step := range steps.Elements() {
		if structural(step) != "" {
			return false
		}
		if inner, ok := step.Get("steps"); ok && !isPlain(inner) {
			return false
		}
	}
	return true
}

// expansion expands the steps of one definition.
type expansion struct {
	catalog *Catalog
	most    definition.Cost // bound of the output
	own     int             // bytes of the definition itself
	visited int             // steps visited so far
	written int             // steps written so far
	wasted  int             // bytes visited and not written
	depth   int             // of the current step
	inside  []string        // the sequences being included
	err     error
}

func (x *expansion) fail(format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf(format, args...)
	}
}

// full reports whether dst has reached the bound of a definition, and fails then. It
// is called before each value, because one argument can be written in many places.
func (x *expansion) full(dst []byte) bool { return !x.room(len(dst), 0) }

// room reports whether so many bytes and steps may be written in total, and fails if
// not.
func (x *expansion) room(bytes, steps int) bool {
	switch {
	case steps > x.most.Steps && x.most.Steps < definition.MaxSteps:
		x.stop(definition.Cost{Steps: definition.MaxStepsInForce + 1}.Check())
	case steps > x.most.Steps:
		x.stop(definition.OverBudget(reasonTooManySteps, definition.MaxSteps))
	case bytes > x.most.Bytes && x.most.Bytes < maxExpanded:
		x.stop(definition.Cost{Bytes: definition.MaxBytesInForce + 1}.Check())
	case bytes > x.most.Bytes:
		x.stop(definition.OverBudget(reasonTooManyBytes, maxExpanded))
	default:
		return true
	}
	return false
}

func (x *expansion) stop(err error) {
	if x.err == nil {
		x.err = err
	}
}

// visit counts a visited step.
func (x *expansion) visit() {
	if x.visited++; x.visited > freeVisits+x.own/8+wasteByOutput*x.written {
		x.stop(definition.OverBudget(reasonTooManyVisits))
	}
}

// waste counts visited bytes that are not written.
func (x *expansion) waste(n int, dst []byte) {
	if x.wasted += n; x.wasted > freeBytes+wasteByOutput*(x.own+len(dst)) {
		x.stop(definition.OverBudget(reasonTooMuchWaste))
	}
}

// list appends an array of the elements that write appends and counts.
func list(dst []byte, write func(dst []byte) ([]byte, int)) []byte {
	at := len(dst)
	dst, n := write(append(dst, 0x90))
	if n < 16 {
		dst[at] |= byte(n)
		return dst
	}
	return slices.Replace(dst, at, at+1, msgp.AppendArrayHeader(nil, uint32(n))...)
}

// where is the context of a list of steps.
type where uint8

const (
	atTop      where = iota // the steps of the definition itself
	inSequence              // one step after the other
	inParallel              // side by side: a group of several steps must stay one child
)

// steps appends the expansion of a list and returns its number of steps.
func (x *expansion) steps(dst []byte, steps signal.Value, sc *scope, w where) ([]byte, int) {
	n := 0
	for step := range steps.Elements() {
		var m int
		dst, m = x.step(dst, step, sc, w)
		n += m
		if x.err != nil {
			break
		}
	}
	return dst, n
}

func (x *expansion) step(dst []byte, step signal.Value, sc *scope, w where) ([]byte, int) {
	x.visit()
	if x.depth++; x.depth > maxDescent {
		x.fail(reasonStepDepth, maxDescent)
	}
	defer func() { x.depth-- }()
	if x.full(dst) || x.err != nil {
		return dst, 0
	}
	switch structural(step) {
	case "include":
		return x.include(dst, step, sc, w)
	case "repeat":
		return x.repeat(dst, step, sc, w)
	case "stagger":
		return x.stagger(dst, step, sc)
	}
	inner := inSequence
	switch definition.ActionOf(step) {
	case "onInterrupt":
		if w != atTop {
			x.waste(len(step), dst)
			return dst, 0 // it has no effect here, and must not gain one by expansion
		}
	case "parallel":
		inner = inParallel
	case "onArrive":
	default:
		if x.written++; !x.room(len(dst), x.written) {
			return dst, 0
		}
		return x.object(dst, step, sc, nil), 1
	}
	if x.written++; !x.room(len(dst), x.written) {
		return dst, 0
	}
	return x.object(dst, step, sc, func(dst []byte, steps signal.Value) []byte {
		return list(dst, func(dst []byte) ([]byte, int) { return x.steps(dst, steps, sc, inner) })
	}), 1
}

// together appends the output of write, as one step where it must be one: side by
// side with others, or under a condition.
func (x *expansion) together(dst []byte, step signal.Value, sc *scope, w where, write func(dst []byte, w where) ([]byte, int)) ([]byte, int) {
	when, guarded := step.Get("when")
	if w != inParallel && !guarded {
		return write(dst, inSequence)
	}
	at := len(dst)
	count := uint32(2)
	if guarded {
		count++
	}
	dst = msgp.AppendMapHeader(dst, count)
	dst = appendAction(dst, "onArrive")
	if guarded {
		dst = x.when(msgp.AppendString(dst, "when"), when, sc)
	}
	n := 0
	dst = list(msgp.AppendString(dst, "steps"), func(dst []byte) ([]byte, int) {
		dst, n = write(dst, inSequence)
		return dst, n
	})
	if n == 0 {
		return dst[:at], 0
	}
	return dst, 1
}

func appendAction(dst []byte, action string) []byte {
	return msgp.AppendString(msgp.AppendString(dst, "action"), action)
}

func (x *expansion) include(dst []byte, step signal.Value, sc *scope, w where) ([]byte, int) {
	v := step.Member("sequence")
	name, _ := v.Text()
	seq := x.catalog.sequence(name)
	if seq == nil {
		x.fail(reasonNoSequence, wording.Quoted(name))
		return dst, 0
	}
	if i := slices.Index(x.inside, name); i >= 0 {
		x.fail(reasonIncludeCycle, cycle(append(slices.Clone(x.inside[i:]), name)))
		return dst, 0
	}
	if len(x.inside) >= definition.MaxNesting {
		x.fail(reasonIncludeDepth, definition.MaxNesting)
		return dst, 0
	}
	x.waste(len(step), dst)
	// Arguments are not copied, because sequences may pass large ones on to each other.
	// A "with" that is itself a placeholder is passed on unchanged.
	with := step.Member("with")
	means := func(v signal.Value) signal.Value { return x.value(v, sc) }
	if with.Kind() != signal.KindObject {
		with, means = means(with), itself
	}
	arguments, err := seq.arguments(with, means)
	if err != nil {
		x.fail("%w", err)
	}
	if x.err != nil {
		return dst, 0
	}
	x.inside = append(x.inside, name)
	dst, n := x.together(dst, step, sc, w, func(dst []byte, w where) ([]byte, int) {
		return x.steps(dst, seq.steps, &scope{sequence: name, params: arguments}, w)
	})
	x.inside = x.inside[:len(x.inside)-1]
	return dst, n
}

// cycle formats the names of a cycle.
func cycle(names []string) string {
	const most = 20
	if len(names) > most {
		names = append(append(slices.Clone(names[:most/2]), "…"), names[len(names)-most/2:]...)
	}
	return strings.Join(names, " → ")
}

func (x *expansion) repeat(dst []byte, step signal.Value, sc *scope, w where) ([]byte, int) {
	v := step.Member("times")
	times, ok := wholeNumber(x.value(v, sc))
	if !ok || times < 0 {
		x.fail(reasonTimes, shown(x.value(v, sc)))
		return dst, 0
	}
	steps := step.Member("steps")
	if steps.Kind() != signal.KindArray || steps.Len() == 0 {
		return dst, 0 // no bound limits the repetition of nothing
	}
	x.waste(len(step)-len(steps), dst)
	if times == 0 || x.err != nil {
		return dst, 0
	}
	return x.together(dst, step, sc, w, func(dst []byte, w where) ([]byte, int) {
		// The repetitions are equal, so the steps are expanded once, and the total is
		// checked before the copies are made.
		at, before := len(dst), x.written
		dst, n := x.steps(dst, steps, sc, w)
		length, count := len(dst)-at, x.written-before
		if x.err != nil || n == 0 {
			return dst, n
		}
		if !x.room(multiplied(times, length, at), multiplied(times, count, before)) {
			return dst, n
		}
		x.written = before + int(times)*count
		dst = slices.Grow(dst, int(times-1)*length)
		for range times - 1 {
			dst = append(dst, dst[at:at+length]...)
		}
		return dst, n * int(times)
	})
}

// multiplied returns base + times·n, at most [math.MaxInt32].
func multiplied(times int64, n, base int) int {
	if n > 0 && times > (math.MaxInt32-int64(base))/int64(n) {
		return math.MaxInt32
	}
	return base + int(times)*n
}

// wholeNumber returns a number without a fraction, written as an integer or not.
func wholeNumber(v signal.Value) (int64, bool) {
	if i, ok := v.Int64(); ok {
		return i, true
	}
	f, ok := v.Float64()
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// shown formats a value for a message.
func shown(v signal.Value) string {
	switch v.Kind() {
	case signal.KindArray, signal.KindObject, signal.KindAbsent:
		return v.Kind().WithArticle()
	case signal.KindString:
		text, _ := v.Text()
		return wording.Quoted(text)
	default:
		return v.String()
	}
}

// stagger appends a parallel group in which each child begins a little later than the
// one before.
func (x *expansion) stagger(dst []byte, step signal.Value, sc *scope) ([]byte, int) {
	v := step.Member("every")
	every := x.value(v, sc)
	if ms, ok := every.Float64(); !ok || ms < 0 {
		x.fail(reasonEvery, shown(every))
		return dst, 0
	}
	steps := step.Member("steps")
	items, fanned := step.Get("each")
	if fanned {
		if items = x.value(items, sc); items.Kind() != signal.KindArray {
			x.fail(reasonEach, shown(items))
			return dst, 0
		}
	}
	if steps.Kind() != signal.KindArray || steps.Len() == 0 {
		return dst, 0
	}
	x.waste(len(step)-len(steps)+len(items), dst)

	at := len(dst)
	when, guarded := step.Get("when")
	count := uint32(2)
	if guarded {
		count++
	}
	dst = msgp.AppendMapHeader(dst, count)
	dst = appendAction(dst, "parallel")
	if guarded {
		dst = x.when(msgp.AppendString(dst, "when"), when, sc)
	}
	n := 0
	dst = list(msgp.AppendString(dst, "steps"), func(dst []byte) ([]byte, int) {
		i := int64(0)
		child := func(write func(dst []byte, w where) ([]byte, int)) {
			var m int
			dst, m = x.later(dst, every, i, write)
			n += m
			i++
		}
		if !fanned {
			for e := range steps.Elements() {
				child(func(dst []byte, w where) ([]byte, int) { return x.step(dst, e, sc, w) })
			}
			return dst, n
		}
		for item := range items.Elements() {
			if x.err != nil {
				break
			}
			inner := *sc
			inner.item = x.value(item, sc)
			inner.index = signal.Int(i).Append(nil)
			child(func(dst []byte, w where) ([]byte, int) {
				if w == inParallel {
					return x.held(dst, nil, func(dst []byte) ([]byte, int) { return x.steps(dst, steps, &inner, inSequence) })
				}
				return x.steps(dst, steps, &inner, w)
			})
		}
		return dst, n
	})
	if n == 0 {
		return dst[:at], 0
	}
	return dst, 1
}

// later appends child i of a staggered group, from 0, as one step.
func (x *expansion) later(dst []byte, every signal.Value, i int64, write func(dst []byte, w where) ([]byte, int)) ([]byte, int) {
	pause := times(every, i)
	if definition.Nanoseconds(pause.Append(nil)) == 0 {
		return write(dst, inParallel)
	}
	wait := msgp.AppendMapHeader(nil, 2)
	wait = appendAction(wait, "wait")
	wait = pause.Append(msgp.AppendString(wait, "duration"))
	return x.held(dst, wait, func(dst []byte) ([]byte, int) { return write(dst, inSequence) })
}

// held appends an onArrive step with first, if it is not nil, and the output of write.
// It appends nothing if write appends nothing.
func (x *expansion) held(dst, first []byte, write func(dst []byte) ([]byte, int)) ([]byte, int) {
	at := len(dst)
	dst = msgp.AppendMapHeader(dst, 2)
	dst = appendAction(dst, "onArrive")
	n := 0
	dst = list(msgp.AppendString(dst, "steps"), func(dst []byte) ([]byte, int) {
		dst, n = write(append(dst, first...))
		if first != nil {
			return dst, n + 1
		}
		return dst, n
	})
	if n == 0 {
		return dst[:at], 0
	}
	return dst, 1
}

// times multiplies a number of milliseconds: exactly if the product is an int64.
func times(every signal.Value, i int64) signal.Number {
	if ms, ok := every.Int64(); ok && (i == 0 || ms <= math.MaxInt64/i) {
		return signal.Int(ms * i)
	}
	ms, _ := every.Float64()
	return signal.Float(min(float64(ms*float64(i)), math.MaxFloat64))
}
