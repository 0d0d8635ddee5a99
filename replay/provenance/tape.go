package provenance

import (
	"context"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
)

// group is a set of members of an entity that are set together.
type group uint16

const (
	position group = 1 << iota
	opacity
	tint
	scale
	rotation
	words
	visible
	layer
	animation
	label
	look
	home       // of new entities: which place is free
	everything = home - 1
)

// groupOf returns the members that an entity's member belongs to.
func groupOf(member string) group {
	switch member {
	case "x", "y", "position.x", "position.y", "height", "home":
		return position
	case "opacity":
		return opacity
	case "tint", "strength":
		return tint
	case "scale":
		return scale
	case "rotation":
		return rotation
	case "text", "textOpacity":
		return words
	case "visible":
		return visible
	case "layer":
		return layer
	case "state":
		return animation
	case "label":
		return label
	case "look", "actor":
		return look
	}
	return everything // moving, conflicted, and the whole entity
}

// written returns the members that an action sets.
func written(a *choreography.Act) group {
	text := func(name string) string {
		v, _ := a.Param(name)
		s, _ := v.Text()
		return s
	}
	switch a.Action {
	case "move", "fly", "followRoute":
		if text("animationDuring")+text("animationOnArrival") != "" {
			return position | animation
		}
		return position
	case "spawn", "destroy":
		return everything
	case "flash":
		return tint
	case "pulse":
		return scale
	case "typeText", "say":
		return words
	case "setAnimation":
		return animation
	case "set":
		return groupOf(text("property"))
	case "drawBeam", "playSound", "wait":
		return 0
	}
	return everything // an action of the program
}

// cell is members of one entity; the entity "" has only home.
type cell struct {
	entity string
	group  group
}

// traceKind is the kind of a traced event.
type traceKind uint8

const (
	traceAct       traceKind = iota // an act began, or was instant
	traceCompleted                  // it ended by itself
	traceInterrupt                  // entry by ended the performance
	traceSignal                     // entry by changed the stage by itself
	traceAsked                      // the performance, or the signal by, asked the stage
	traceBlocked                    // a guard held the signal by up for the performance
	traceHandler                    // the performance handles the end of one of entry by
)

// traced is one event of a stretch.
type traced struct {
	kind   traceKind
	moment replay.Moment
	key    choreography.ActKey // of the performance, and of its act
	by     eventlog.Seq

	definition, step, action string
	entities                 []string
	writes                   group
	created                  bool   // an entity appears
	reads                    []cell // that decide what is set
	own                      bool   // the result depends on the values before
	until                    bool   // it does until the act completes
}

// tracer records what happens on the stage. It stands between scheduler and stage.
type tracer struct {
	*stage.Stage
	scheduler *choreography.Scheduler
	events    []traced
	moment    replay.Moment
	entry     eventlog.Seq // that is being applied
	handlers  bool         // the entry has ended performances

	// touch, unless nil, is called with an entity and those of its members that an event
	// may have set, also by an end; the entity "" stands for all.
	touch func(entity string, members group)
}

// trace records the events after entry from up to a moment.
func trace(ctx context.Context, r *replay.Replay, from eventlog.Seq, to replay.Moment) ([]traced, error) {
	f, t, err := newTracer(ctx, r, from)
	if err != nil {
		return nil, err
	}
	err = walk(ctx, r, f, to, t)
	return t.events, err
}

// newTracer returns the fold after an entry, and a tracer of it.
func newTracer(ctx context.Context, r *replay.Replay, from eventlog.Seq) (*projection.Fold, *tracer, error) {
	f, err := r.Fold(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	f.Advance(f.At())
	p, st := session.PerformancesOf(f), session.StageOf(f)
	if p == nil || st == nil {
		return nil, nil, fmt.Errorf("%w: this session has no stage", ErrPath)
	}
	t := &tracer{Stage: st, scheduler: p.Scheduler(), moment: replay.Moment{Seq: from}}
	p.Scheduler().Observe(t, t)
	return f, t, nil
}

func (t *tracer) advance(f *projection.Fold, m replay.Moment, at time.Duration) {
	t.moment = m
	f.Advance(at)
}

func (t *tracer) apply(f *projection.Fold, e *eventlog.Entry) error {
	t.moment, t.entry, t.handlers = replay.Moment{Seq: e.Seq}, e.Seq, false
	var seen *impression
	if e.Kind == eventlog.KindSignal && t.Impressed() {
		seen = t.impression(e)
	}
	err := f.Apply(e)
	t.entry = 0
	if err != nil {
		return fmt.Errorf("provenance: %w", err)
	}
	if seen != nil {
		t.events = append(t.events, seen.changes(t)...)
		for _, name := range seen.names {
			t.touched(t.EntitiesNamed(name), everything)
		}
	}
	if t.touch != nil && (e.Kind == eventlog.KindDefine || e.Kind == eventlog.KindSession) {
		t.touch("", everything)
	}
	if t.handlers {
		for p := range t.scheduler.Performances() {
			if p.Seq == uint64(e.Seq) && p.Handler {
				t.add(traced{kind: traceHandler, key: choreography.ActKey{Seq: p.Seq, Index: p.Index}, by: eventlog.Seq(p.Signal)})
			}
		}
	}
	f.Advance(e.At)
	return nil
}

func (t *tracer) touched(ids []string, members group) {
	if t.touch == nil {
		return
	}
	if members &= everything; members == 0 {
		members = everything
	}
	for _, id := range ids {
		t.touch(id, members)
	}
}

func (t *tracer) add(e traced) {
	e.moment = t.moment
	t.events = append(t.events, e)
}

// begun records the beginning of an act that event performs.
func (t *tracer) begun(a *choreography.Act, instant bool, event func()) {
	name := a.Entity()
	before := t.EntitiesNamed(name)
	e := traced{kind: traceAct, key: a.Key, action: a.Action, writes: written(a)}
	d := a.Definition()
	if e.definition = d.Name(); e.definition == "" {
		e.definition = d.On()
	}
	e.step = stepText(d, a.Key.Node)
	t.reads(a, &e, before)
	missing := t.missingTargets(a)
	event()
	for _, target := range missing {
		t.touched(t.EntitiesNamed(target), everything) // the act made it appear
	}
	e.entities = t.EntitiesNamed(name)
	if a.Action == "destroy" {
		e.entities = before
	}
	if len(before) == 0 && len(e.entities) > 0 {
		e.created, e.writes = true, everything
	}
	if e.created || a.Action == "spawn" || a.Action == "destroy" {
		e.writes |= home
	}
	t.touched(before, e.writes)
	t.touched(e.entities, e.writes)
	switch {
	case instant:
	case a.Action == "pulse", a.Action == "drawBeam":
		e.own = true
	default:
		e.until = true
	}
	t.add(e)
}

// missingTargets returns the names of the targets of an act that are not on the stage.
func (t *tracer) missingTargets(a *choreography.Act) (names []string) {
	if t.touch == nil {
		return nil
	}
	for _, param := range [...]string{"to", "from", "at"} {
		v, _ := a.Param(param)
		if target, ok := v.Text(); ok && len(t.EntitiesNamed(target)) == 0 {
			names = append(names, target)
		}
	}
	return names
}

// reads notes which parts of the stage decide the result of an act.
func (t *tracer) reads(a *choreography.Act, e *traced, players []string) {
	place := func(name string) {
		v, _ := a.Param(name)
		if target, ok := v.Text(); ok {
			for _, id := range t.EntitiesNamed(target) {
				e.reads = append(e.reads, cell{id, position})
			}
			e.own = e.own || a.Action != "spawn" && len(t.EntitiesNamed(target)) > 0
		}
	}
	switch a.Action {
	case "move", "fly":
		_, absolute := a.Param("to")
		place("to")
		e.own = e.own || !absolute
	case "followRoute":
		place("from")
		place("to")
		e.own = true
	case "spawn":
		place("at")
		_, placed := a.Param("at")
		if !placed {
			e.reads = append(e.reads, cell{"", home})
		}
	case "drawBeam":
		place("to")
	case "say":
		e.own = true
	case "set":
		v, _ := a.Param("value")
		revert, _ := a.Param("revert")
		e.own = v.Kind() != signal.KindString && v.Kind() != signal.KindInt && v.Kind() != signal.KindUint && v.Kind() != signal.KindFloat && v.Kind() != signal.KindBool
		e.own = e.own || revert != nil
		if text, _ := v.Text(); text == "toggle" {
			e.own = true
		}
	case "flash", "pulse", "typeText", "setAnimation", "destroy":
	default:
		e.own = true
	}
	if len(players) == 0 && a.Action != "spawn" {
		e.reads = append(e.reads, cell{"", home})
	}
}

// Started implements [choreography.ActObserver].
func (t *tracer) Started(a *choreography.Act) { t.begun(a, false, func() { t.Stage.Started(a) }) }

// Executed implements [choreography.ActObserver].
func (t *tracer) Executed(a *choreography.Act) { t.begun(a, true, func() { t.Stage.Executed(a) }) }

// Completed implements [choreography.ActObserver].
func (t *tracer) Completed(a *choreography.Act) {
	t.touched(t.EntitiesNamed(a.Entity()), written(a))
	t.Stage.Completed(a)
	t.add(traced{kind: traceCompleted, key: a.Key, action: a.Action})
}

// Interrupted implements [choreography.ActObserver].
func (t *tracer) Interrupted(at time.Duration, seq uint64, index uint32) {
	if t.touch != nil {
		t.touched(t.ActedOn(seq, index), everything)
	}
	t.Stage.Interrupted(at, seq, index)
	t.handlers = true
	t.add(traced{kind: traceInterrupt, key: choreography.ActKey{Seq: seq, Index: index}, by: t.entry})
}

// Blocked implements [choreography.BlockObserver].
func (t *tracer) Blocked(seq uint64, _ bool, holderSeq uint64, holderIndex uint32) {
	t.add(traced{kind: traceBlocked, key: choreography.ActKey{Seq: holderSeq, Index: holderIndex}, by: eventlog.Seq(seq)})
}

// Property implements [definition.StageView].
func (t *tracer) Property(entity, property string, at time.Duration) (signal.Value, bool) {
	e := traced{kind: traceAsked, by: t.entry}
	if seq, index, ok := t.scheduler.Asking(); ok {
		e.key = choreography.ActKey{Seq: seq, Index: index}
		e.by = 0
	}
	ids := t.EntitiesNamed(entity)
	for _, id := range ids {
		e.reads = append(e.reads, cell{id, groupOf(property)})
	}
	if len(ids) == 0 {
		e.reads = []cell{{entity, everything}}
	}
	t.add(e)
	return t.Stage.Property(entity, property, at)
}

var (
	_ choreography.ActObserver   = (*tracer)(nil)
	_ choreography.BlockObserver = (*tracer)(nil)
	_ definition.StageView       = (*tracer)(nil)
)

// impression is the part of the stage that a signal without a choreography may change.
type impression struct {
	seq    eventlog.Seq
	adds   bool // it adds to what is said
	names  []string
	before map[string][]byte
}

// impression reads the entities of a signal before it is applied.
func (t *tracer) impression(e *eventlog.Entry) *impression {
	sig, err := session.SignalOf(e)
	if err != nil {
		return nil
	}
	i := &impression{seq: e.Seq, adds: sig.Type == "thinking" || sig.Type == "text_delta", before: map[string][]byte{}}
	i.names = []string{sig.Source}
	for _, name := range [...]string{"from", "to", "agentId", "source"} {
		if who := sig.Payload.TextOf(name); who != "" {
			i.names = append(i.names, who)
		}
	}
	for _, name := range i.names {
		for _, id := range t.EntitiesNamed(name) {
			for g, text := range t.impressed(id) {
				i.before[id+"\x00"+string(rune(g))] = text
			}
		}
	}
	return i
}

// impressed returns the members of an entity that signals change by themselves.
func (t *tracer) impressed(id string) map[group][]byte {
	m := map[group][]byte{}
	for _, member := range [...]string{"text", "tint", "strength", "state"} {
		g := groupOf(member)
		v, ok := t.ValueAt(id, member, 0)
		m[g] = append(m[g], text(v, ok)...)
		for _, after := range probes {
			v, ok := t.ValueAt(id, member, t.Now()+after)
			m[g] = append(m[g], text(v, ok)...)
		}
	}
	return m
}

// changes returns the changes of the signal, after it was applied.
func (i *impression) changes(t *tracer) (list []traced) {
	for _, name := range i.names {
		for _, id := range t.EntitiesNamed(name) {
			e := traced{kind: traceSignal, moment: t.moment, by: i.seq, entities: []string{id}}
			for g, now := range t.impressed(id) {
				old, had := i.before[id+"\x00"+string(rune(g))]
				e.created = e.created || !had
				if string(old) != string(now) {
					e.writes |= g
				}
			}
			if e.created {
				e.writes, e.reads = everything|home, []cell{{"", home}}
			}
			e.own = i.adds
			if e.writes != 0 {
				list = append(list, e)
			}
		}
	}
	return list
}
