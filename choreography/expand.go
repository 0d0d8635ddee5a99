package choreography

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// This file writes out what only authors see: include, repeat and stagger
// become the steps they stand for, so that a definition in force holds nothing
// but the steps that [Compile] knows and depends on nothing that is declared
// later.

// maxExpanded bounds the bytes of one definition when it is written out, and
// maxLookedAt those that are gone through for it: what stands in a repetition
// without being written counts each time.
const (
	maxExpanded = 8 << 20
	maxLookedAt = 512 << 20
)

// The strings that stand for something else begin like this.
const (
	paramPrefix = "param."
	eachPrefix  = "each."
	eachItem    = "each.item"
	eachIndex   = "each.index"
)

// structural returns what a step is if it is written out before it is
// performed, "" if it is performed as it stands. A step that lacks what makes it
// one is an action like any other, as it was before there were such steps.
func structural(step signal.Value) string {
	has := func(name string) bool {
		_, ok := step.Get(name)
		return ok
	}
	switch action := actionOf(step); {
	case action == "include" && has("sequence"),
		action == "repeat" && has("times") && has("steps"),
		action == "stagger" && has("every") && has("steps"):
		return action
	}
	return ""
}

// isPlain reports whether there is nothing to write out in a list of steps.
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

// expansion writes out the steps of one definition.
type expansion struct {
	catalog *Catalog
	visited int      // steps, counted each time they are written out
	looked  int      // their bytes, likewise
	inside  []string // the sequences that are being included
	err     error
}

// scope is what placeholders stand for where a step is written. A sequence sees
// only its own arguments, and the items of what stands around a step in it.
type scope struct {
	sequence string // "" outside of all
	params   []param

	item, index signal.Value // absent outside of each
}

func (x *expansion) fail(format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf(format, args...)
	}
}

// full reports whether dst has all that a definition may have, and fails then.
// It is asked before each value: one argument can stand in many places.
func (x *expansion) full(dst []byte) bool {
	if len(dst) <= maxExpanded {
		return false
	}
	x.fail("written out, the steps take more than %d bytes", maxExpanded)
	return true
}

// look notes that v is gone through.
func (x *expansion) look(v signal.Value) {
	if x.looked += len(v); x.looked > maxLookedAt {
		x.fail("to be written out, more than %d bytes of steps have to be gone through", maxLookedAt)
	}
}

// list appends an array of as many elements as write appends.
func list(dst []byte, write func(dst []byte) ([]byte, int)) []byte {
	at := len(dst)
	dst, n := write(append(dst, 0x90))
	if n < 16 {
		dst[at] |= byte(n)
		return dst
	}
	return slices.Replace(dst, at, at+1, msgp.AppendArrayHeader(nil, uint32(n))...)
}

// where says what a list of steps is part of.
type where uint8

const (
	atTop      where = iota // the steps of the definition itself
	inSequence              // one step after the other
	inParallel              // side by side: what becomes several steps is held together
)

// steps appends the steps of a list and returns how many they became.
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
	x.visited++
	if x.visited > MaxSteps {
		x.fail("written out, there are more than %d steps", MaxSteps)
	}
	x.look(step)
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
	switch actionOf(step) {
	case "onInterrupt":
		if w != atTop {
			return dst, 0 // it means nothing here, and must not come to mean something
		}
	case "parallel":
		inner = inParallel
	case "onArrive":
	default:
		return x.object(dst, step, sc, nil), 1
	}
	return x.object(dst, step, sc, func(dst []byte, steps signal.Value) []byte {
		return list(dst, func(dst []byte) ([]byte, int) { return x.steps(dst, steps, sc, inner) })
	}), 1
}

// object appends a step with its placeholders replaced. Its steps, if it is a
// step that has any, are appended by inside.
func (x *expansion) object(dst []byte, step signal.Value, sc *scope, inside func([]byte, signal.Value) []byte) []byte {
	if step.Kind() != signal.KindObject {
		return append(dst, step...) // no step, and kept as such
	}
	dst = msgp.AppendMapHeader(dst, uint32(step.Len()))
	for name, v := range step.Members() {
		if x.full(dst) {
			break
		}
		dst = msgp.AppendString(dst, name)
		switch {
		case name == "steps" && inside != nil && v.Kind() == signal.KindArray:
			dst = inside(dst, v)
		case name == "when":
			dst = x.when(dst, v, sc)
		case name == "guard":
			dst = x.members(dst, v, sc)
		case name == "action":
			dst = append(dst, v...)
		default:
			dst = append(dst, x.value(v, sc)...)
		}
	}
	return dst
}

// members appends an object with the placeholders right in it replaced.
func (x *expansion) members(dst []byte, v signal.Value, sc *scope) []byte {
	if v.Kind() != signal.KindObject {
		return append(dst, x.value(v, sc)...)
	}
	dst = msgp.AppendMapHeader(dst, uint32(v.Len()))
	for name, e := range v.Members() {
		if x.full(dst) {
			break
		}
		dst = msgp.AppendString(dst, name)
		dst = append(dst, x.value(e, sc)...)
	}
	return dst
}

// value returns what v stands for: v itself, if it is no placeholder.
func (x *expansion) value(v signal.Value, sc *scope) signal.Value {
	text, ok := v.Text()
	if !ok {
		return v
	}
	if name, ok := strings.CutPrefix(text, paramPrefix); ok && sc.sequence != "" && isParamName(name) {
		for _, p := range sc.params {
			if p.name == name {
				return p.value
			}
		}
		x.fail("sequence %s uses param.%s, but has no such parameter", wording.Quoted(sc.sequence), name)
		return v
	}
	switch {
	case text == eachItem && sc.item != nil:
		return sc.item
	case text == eachIndex && sc.index != nil:
		return sc.index
	}
	return v
}

// when appends a condition: a placeholder may stand for the entity of a
// condition on the stage, and for what a value is compared with.
func (x *expansion) when(dst []byte, v signal.Value, sc *scope) []byte {
	switch v.Kind() {
	case signal.KindArray:
		return list(dst, func(dst []byte) ([]byte, int) {
			n := 0
			for e := range v.Elements() {
				if x.full(dst) {
					break
				}
				dst = x.when(dst, e, sc)
				n++
			}
			return dst, n
		})
	case signal.KindObject:
		dst = msgp.AppendMapHeader(dst, uint32(v.Len()))
		for path, op := range v.Members() {
			if x.full(dst) {
				break
			}
			dst = msgp.AppendString(dst, x.path(path, sc))
			dst = x.operator(dst, op, sc)
		}
		return dst
	default:
		return append(dst, x.value(v, sc)...)
	}
}

func (x *expansion) operator(dst []byte, op signal.Value, sc *scope) []byte {
	if op.Kind() != signal.KindObject {
		return append(dst, x.value(op, sc)...)
	}
	dst = msgp.AppendMapHeader(dst, uint32(op.Len()))
	for name, operand := range op.Members() {
		if x.full(dst) {
			break
		}
		dst = msgp.AppendString(dst, name)
		dst = x.operator(dst, operand, sc)
	}
	return dst
}

// path replaces a placeholder that is the entity of a condition on the stage.
func (x *expansion) path(path string, sc *scope) string {
	rest, ok := strings.CutPrefix(path, stagePrefix)
	if !ok {
		return path
	}
	placeholder, property, ok := cutPlaceholder(rest)
	if !ok {
		return path
	}
	written := msgp.AppendString(nil, placeholder)
	v := x.value(written, sc)
	entity, ok := v.Text()
	if !ok {
		x.fail("%s must be the name of an entity, but is %s", placeholder, wording.Article(v.Kind()))
	}
	return stagePrefix + entity + "." + property
}

// cutPlaceholder splits "param.NAME.PROPERTY", and each likewise.
func cutPlaceholder(path string) (placeholder, property string, ok bool) {
	if !strings.HasPrefix(path, paramPrefix) && !strings.HasPrefix(path, eachPrefix) {
		return "", "", false
	}
	first, rest, _ := strings.Cut(path, ".")
	name, property, ok := strings.Cut(rest, ".")
	return first + "." + name, property, ok
}

// together appends what write appends as one step if it has to be one: side by
// side with others, or under a condition. Otherwise it stands for itself.
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
	v, _ := step.Get("sequence")
	name, _ := v.Text()
	seq := x.catalog.sequence(name)
	if seq == nil {
		x.fail("there is no sequence %s", wording.Quoted(name))
		return dst, 0
	}
	if i := slices.Index(x.inside, name); i >= 0 {
		x.fail("sequences include each other without end: %s", cycle(append(slices.Clone(x.inside[i:]), name)))
		return dst, 0
	}
	if len(x.inside) >= MaxNesting {
		x.fail("sequences include each other deeper than %d", MaxNesting)
		return dst, 0
	}
	// Arguments are not copied: what is handed on from sequence to sequence may
	// be large. What comes in as a whole is not looked into.
	with, _ := step.Get("with")
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

// cycle names what leads back to itself.
func cycle(names []string) string {
	const most = 20
	if len(names) > most {
		names = append(append(slices.Clone(names[:most/2]), "…"), names[len(names)-most/2:]...)
	}
	return strings.Join(names, " → ")
}

func (x *expansion) repeat(dst []byte, step signal.Value, sc *scope, w where) ([]byte, int) {
	v, _ := step.Get("times")
	times, ok := wholeNumber(x.value(v, sc))
	if !ok || times < 0 {
		x.fail("times of repeat must be a whole number from 0, not %s", shown(x.value(v, sc)))
		return dst, 0
	}
	steps, _ := step.Get("steps")
	if steps.Kind() != signal.KindArray || steps.Len() == 0 {
		return dst, 0 // nothing would bound how often nothing is repeated
	}
	return x.together(dst, step, sc, w, func(dst []byte, w where) ([]byte, int) {
		n := 0
		for range times {
			var m int
			dst, m = x.steps(dst, steps, sc, w)
			n += m
			if x.err != nil || m == 0 {
				break // what wrote nothing will not write anything the next time
			}
		}
		return dst, n
	})
}

// wholeNumber reads an integer, however it is written.
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

// shown is a value in a message.
func shown(v signal.Value) string {
	switch v.Kind() {
	case signal.KindArray, signal.KindObject, signal.KindAbsent:
		return wording.Article(v.Kind())
	case signal.KindString:
		text, _ := v.Text()
		return wording.Quoted(text)
	default:
		return v.String()
	}
}

// stagger appends a parallel group, each child of which begins a little later
// than the one before.
func (x *expansion) stagger(dst []byte, step signal.Value, sc *scope) ([]byte, int) {
	v, _ := step.Get("every")
	every := x.value(v, sc)
	if ms, ok := every.Float64(); !ok || ms < 0 {
		x.fail("every of stagger must be a number of milliseconds from 0, not %s", shown(every))
		return dst, 0
	}
	steps, _ := step.Get("steps")
	items, fanned := step.Get("each")
	if fanned {
		if items = x.value(items, sc); items.Kind() != signal.KindArray {
			x.fail("each of stagger must be an array, not %s", shown(items))
			return dst, 0
		}
	}
	if steps.Kind() != signal.KindArray || steps.Len() == 0 {
		return dst, 0
	}
	x.look(items)

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

// later appends the child of a staggered group that has i others before it, as
// one step.
func (x *expansion) later(dst []byte, every signal.Value, i int64, write func(dst []byte, w where) ([]byte, int)) ([]byte, int) {
	pause := times(every, i)
	if nanos(pause.Append(nil)) == 0 {
		return write(dst, inParallel)
	}
	wait := msgp.AppendMapHeader(nil, 2)
	wait = appendAction(wait, "wait")
	wait = pause.Append(msgp.AppendString(wait, "duration"))
	return x.held(dst, wait, func(dst []byte) ([]byte, int) { return write(dst, inSequence) })
}

// held appends an onArrive step: first, if it is not nil, and what write
// appends. Nothing at all is appended if write appends nothing.
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

// times multiplies a number of milliseconds, exactly as long as it is a whole
// number that can be.
func times(every signal.Value, i int64) signal.Number {
	if ms, ok := every.Int64(); ok && (i == 0 || ms <= math.MaxInt64/i) {
		return signal.Int(ms * i)
	}
	ms, _ := every.Float64()
	return signal.Float(min(float64(ms*float64(i)), math.MaxFloat64))
}

// written returns an object with some members replaced, in their places, others
// left out, and others added at the end: edits are absent for what is left out.
func written(v signal.Value, edits []param) signal.Value {
	places := make(map[string]int, len(edits))
	for i := range edits {
		places[edits[i].name] = i
	}
	var o object
	for name, value := range v.Members() {
		if i, ok := places[name]; ok {
			value = edits[i].value
			delete(places, name)
		}
		o.put(name, value)
	}
	for i := range edits {
		if _, ok := places[edits[i].name]; ok {
			o.put(edits[i].name, edits[i].value)
		}
	}
	return o.value()
}

// extended returns the value of a definition that starts from another one,
// which is in force: what it does not say itself is that one's.
func extended(base, own signal.Value) signal.Value {
	var edits []param
	for name, v := range own.Members() {
		edits = append(edits, param{name, v})
	}
	edits = append(edits, param{"extends", nil}, param{"before", nil}, param{"after", nil})
	if _, ok := own.Get("id"); !ok {
		edits = append(edits, param{"id", nil})
	}
	edits = slices.DeleteFunc(edits, func(e param) bool {
		return e.value != nil && (e.name == "extends" || e.name == "before" || e.name == "after" || e.name == "steps")
	})

	inherited, _ := base.Get("steps")
	main, replaced := own.Get("steps")
	if !replaced {
		main = inherited
	}
	before, _ := own.Get("before")
	after, _ := own.Get("after")
	steps := list(nil, func(dst []byte) ([]byte, int) {
		n, handled := 0, false
		for _, part := range [...]signal.Value{before, main, after} {
			for step := range part.Elements() {
				dst = append(dst, step...)
				n++
				handled = handled || actionOf(step) == "onInterrupt"
			}
		}
		// Steps that are replaced take their clean-up with them only if there
		// is another one.
		if replaced && !handled {
			for step := range inherited.Elements() {
				if actionOf(step) == "onInterrupt" {
					dst = append(dst, step...)
					n++
				}
			}
		}
		return dst, n
	})
	return written(base, append(edits, param{"steps", steps}))
}

var errCannotHold = errors.New("written out, it is nested too deeply or asks one thing twice")

// bind returns the definition that comes into force when d is declared: with
// nothing in it that refers to other declarations.
func (c *Catalog) bind(d *Definition) (*Definition, error) {
	v := d.value
	if extends, ok := v.Get("extends"); ok {
		id, ok := extends.Text()
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: extends must be the id of a choreography, not %s", ErrDefinition, wording.Article(extends.Kind()))
		case id == d.Name():
			return nil, fmt.Errorf("%w: choreography %s extends itself", ErrDefinition, wording.Quoted(id))
		}
		base := c.definition(id)
		if base == nil {
			return nil, fmt.Errorf("%w: there is no choreography %s to extend", ErrDefinition, wording.Quoted(id))
		}
		v = extended(base.value, v)
	}
	steps, _ := v.Get("steps")
	var edits []param
	if !isPlain(steps) {
		x := expansion{catalog: c}
		steps = list(nil, func(dst []byte) ([]byte, int) { return x.steps(dst, steps, &scope{}, atTop) })
		if x.err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDefinition, x.err)
		}
		edits = append(edits, param{"steps", steps})
	}
	if easings := c.easingsOf(v, steps); easings != nil {
		edits = append(edits, param{"easings", easings})
	}
	if len(edits) == 0 && len(v) == len(d.value) && &v[0] == &d.value[0] {
		return d, nil
	}
	v = written(v, edits)
	if _, rest, err := signal.CheckValue(v); err != nil || len(rest) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrDefinition, errCannotHold)
	}
	return Compile(v)
}

// easingsOf returns the curves that steps use by names of the catalog, as the
// member "easings" of a definition; absent if that would change nothing. Those
// that the definition v brings with it stay.
func (c *Catalog) easingsOf(v, steps signal.Value) signal.Value {
	own, _ := v.Get("easings")
	seen := map[string]bool{}
	for name := range own.Members() {
		seen[name] = true
	}
	var found []param
	eachEasing(steps, func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		if e := c.easing(name); e != nil {
			found = append(found, param{name, msgp.AppendString(nil, e.curve.String())})
		}
	})
	if found == nil {
		return nil
	}
	if own.Kind() != signal.KindObject {
		own = msgp.AppendMapHeader(nil, 0)
	}
	return written(own, found)
}

// includes calls f for each sequence that steps include.
func includes(steps signal.Value, f func(name string)) {
	for step := range steps.Elements() {
		if structural(step) == "include" {
			v, _ := step.Get("sequence")
			name, _ := v.Text()
			f(name)
		}
		if inner, ok := step.Get("steps"); ok {
			includes(inner, f)
		}
	}
}

// eachEasing calls f for each easing written in steps that is no built-in one.
func eachEasing(steps signal.Value, f func(name string)) {
	for step := range steps.Elements() {
		if easing, ok := step.Get("easing"); ok {
			if name, ok := easing.Text(); ok {
				if _, known := curveNamed(name); !known {
					f(name)
				}
			}
		}
		if inner, ok := step.Get("steps"); ok {
			eachEasing(inner, f)
		}
	}
}
