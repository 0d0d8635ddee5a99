package where

import (
	"encoding/hex"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

// variables are the variables of an [Expression]. They compute a value when it is
// first read, and every evaluation reuses them.
type variables struct {
	entry entryVars
	state stateVars
	prev  stateVars

	whole [3]*object // entry, state and prev, made when they are first read
}

func (v *variables) prepare(m *meter, set projection.Set) {
	v.entry.m, v.state.m, v.prev.m = m, m, m
	v.state.names, v.prev.names = make([]string, len(set)), make([]string, len(set))
	for i, p := range set {
		v.state.names[i], v.prev.names[i] = p.Name, p.Name
	}
	v.state.made = make([]ref.Val, len(set))
	v.prev.made = make([]ref.Val, len(set))
}

func (v *variables) reset(in Input) {
	v.entry.reset(in.Entry)
	v.state.reset(in.State, nil)
	v.prev.reset(nil, in.Prev)
	v.whole = [3]*object{}
}

// variableNames are the variables that every expression may read.
var variableNames = []string{"seq", "at", "entry", "state", "prev"}

// read returns a variable's value.
func (v *variables) read(name string) ref.Val {
	switch name {
	case "entry":
		return v.object(0, entryShown{&v.entry})
	case "state":
		return v.object(1, stateShown{&v.state})
	case "prev":
		return v.object(2, stateShown{&v.prev})
	case "seq":
		switch {
		case v.state.fold != nil:
			return types.Int(v.state.fold.Head().Seq)
		case v.entry.entry != nil:
			return types.Int(v.entry.entry.Seq)
		}
		return types.Int(0)
	case "at":
		switch {
		case v.state.fold != nil:
			return types.Double(projection.Millis(v.state.fold.At()))
		case v.entry.entry != nil:
			return types.Double(projection.Millis(v.entry.entry.At))
		}
		return types.Double(0)
	}
	return nil
}

func (v *variables) object(i int, of members) ref.Val {
	if v.whole[i] == nil {
		v.whole[i] = v.entry.m.object(of)
	}
	return v.whole[i]
}

// seq returns the Seq of the input.
func (in Input) seq() eventlog.Seq {
	switch {
	case in.Entry != nil:
		return in.Entry.Seq
	case in.State != nil:
		return in.State.Head().Seq
	}
	return 0
}

// kindNames are the kinds as values, made once.
var kindNames = func() (names [256]ref.Val) {
	for k := range names {
		names[k] = types.String(eventlog.Kind(k).String())
	}
	return names
}()

// entryVars is the variable entry.
type entryVars struct {
	m       *meter
	entry   *eventlog.Entry // nil: there is none
	signal  signal.Signal   // what the entry records, if decoded
	decoded bool
	fine    bool // it was decoded without an error

	// Types repeat often, so the last one is kept as a value.
	lastType ref.Val
	lastText string

	// The elements read already; nil for others. An object keeps its index.
	made [elementCount]ref.Val
	read [elementCount]bool
}

func (e *entryVars) empty() bool { return e.entry == nil }

func (e *entryVars) reset(entry *eventlog.Entry) {
	e.entry, e.decoded = entry, false
	e.made, e.read = [elementCount]ref.Val{}, [elementCount]bool{}
}

// sig returns the signal that the entry records, or nil.
func (e *entryVars) sig() *signal.Signal {
	if !e.decoded {
		e.decoded, e.fine = true, false
		if e.entry.Kind == eventlog.KindSignal && e.m.copied(len(e.entry.Data)) {
			sig, err := signal.Decode(e.entry.Data)
			e.signal, e.fine = sig, err == nil
		}
	}
	if !e.fine {
		return nil
	}
	return &e.signal
}

// envelope returns the signal if it has the envelope's members: an irregular signal
// has a type, a problem and raw instead.
func (e *entryVars) envelope() *signal.Signal {
	if sig := e.sig(); sig != nil && sig.Raw == nil {
		return sig
	}
	return nil
}

func (e *entryVars) key() ref.Val { return textOrNil(e.entry.Key) }

// The indexes of an envelope's members in the data of a signal that was valid when it
// was recorded; package signal defines the form.
const (
	elementID = iota
	elementType
	elementTimestamp
	elementSource
	elementCorrelationID
	elementMetadata
	elementPayload

	// Not elements of that form, but also read only once.
	elementRaw
	elementWorded
	elementData

	elementCount
)

// arrayOf7 is the first byte of that form.
const arrayOf7 = 0x97

// element returns a member of a valid signal's envelope directly from the entry's
// bytes. It does not check the other members, so reading a type takes a tenth of the
// time of decoding the signal. Readers of a value check its bytes themselves, so bytes
// that are not a signal give arbitrary values but cause no panic. For another form it
// returns false.
func (e *entryVars) element(i int) (signal.Value, bool) {
	data := e.entry.Data
	if e.entry.Kind != eventlog.KindSignal || len(data) == 0 || data[0] != arrayOf7 {
		return nil, false
	}
	for v := range signal.Value(data).Elements() {
		if i == 0 {
			return v, true
		}
		i--
	}
	return nil, false
}

// member returns a member of the envelope: as a value, if the form allows, or
// of the decoded signal. Nil stands for none.
func (e *entryVars) member(i int, of func(*signal.Signal) ref.Val) ref.Val {
	return e.once(i, func() ref.Val {
		if v, ok := e.element(i); ok {
			if v.Kind() == signal.KindNull {
				return nil
			}
			return e.m.exactValue(v)
		}
		if sig := e.envelope(); sig != nil {
			return of(sig)
		}
		return nil
	})
}

// once reads an element unless it was read before. Finding it may require reading all
// the others.
func (e *entryVars) once(i int, read func() ref.Val) ref.Val {
	if !e.read[i] && e.m.text(len(e.entry.Data)) {
		e.read[i], e.made[i] = true, read()
	}
	return e.made[i]
}

func (e *entryVars) id() ref.Val {
	return e.member(elementID, func(sig *signal.Signal) ref.Val { return types.String(sig.ID) })
}

func (e *entryVars) typ() ref.Val {
	var text string
	if v, ok := e.element(elementType); ok {
		text, _ = v.Text()
	} else if sig := e.sig(); sig != nil {
		text = sig.Type
	} else {
		return nil
	}
	if e.lastType == nil || e.lastText != text {
		e.lastText, e.lastType = text, types.String(text)
	}
	return e.lastType
}

func (e *entryVars) timestamp() ref.Val {
	return e.member(elementTimestamp, func(sig *signal.Signal) ref.Val {
		if !sig.Timestamp.IsSet() {
			return nil
		}
		return numberValue(sig.Timestamp)
	})
}

func (e *entryVars) source() ref.Val {
	return e.member(elementSource, func(sig *signal.Signal) ref.Val { return types.String(sig.Source) })
}

func (e *entryVars) correlationID() ref.Val {
	return e.member(elementCorrelationID, func(sig *signal.Signal) ref.Val {
		if sig.CorrelationID == nil {
			return nil
		}
		return types.String(*sig.CorrelationID)
	})
}

func (e *entryVars) metadata() ref.Val {
	return e.member(elementMetadata, func(sig *signal.Signal) ref.Val { return e.exactOrNil(sig.Metadata) })
}

func (e *entryVars) payload() ref.Val {
	return e.member(elementPayload, func(sig *signal.Signal) ref.Val { return e.exactOrNil(sig.Payload) })
}

func (e *entryVars) exactOrNil(v signal.Value) ref.Val {
	if v == nil {
		return nil
	}
	return e.m.exactValue(v)
}

func (e *entryVars) problem() ref.Val {
	if sig := e.sig(); sig != nil {
		return textOrNil(sig.Problem)
	}
	return nil
}

func (e *entryVars) raw() ref.Val {
	return e.once(elementRaw, func() ref.Val {
		if sig := e.sig(); sig != nil {
			return e.exactOrNil(sig.Raw)
		}
		return nil
	})
}

func (e *entryVars) define() ref.Val  { return e.worded(eventlog.KindDefine) }
func (e *entryVars) session() ref.Val { return e.worded(eventlog.KindSession) }
func (e *entryVars) effect() ref.Val  { return e.worded(eventlog.KindEffect) }
func (e *entryVars) beat() ref.Val    { return e.worded(eventlog.KindBeat) }

// worded returns the object of one member that the data of define, effect, beat
// and session entries, [word, value], is shown as.
func (e *entryVars) worded(kind eventlog.Kind) ref.Val {
	if e.entry.Kind != kind {
		return nil
	}
	return e.once(elementWorded, func() ref.Val {
		if word, v, ok := wordOf(e.entry.Data); ok {
			return e.m.object(oneMember{word, v})
		}
		return nil
	})
}

// wordOf splits the data of such an entry.
func wordOf(data []byte) (word string, v signal.Value, ok bool) {
	whole, rest, err := signal.CheckValue(data)
	if err != nil || len(rest) != 0 || whole.Kind() != signal.KindArray || whole.Len() != 2 {
		return "", nil, false
	}
	for el := range whole.Elements() {
		if v == nil {
			if word, ok = el.Text(); !ok {
				return "", nil, false
			}
			v = el
			continue
		}
		v = el
	}
	return word, v, true
}

// data returns, in hexadecimal, the data of an entry that no other member shows.
func (e *entryVars) data() ref.Val {
	switch e.entry.Kind {
	case eventlog.KindSignal:
		if e.sig() != nil {
			return nil
		}
	case eventlog.KindDefine, eventlog.KindEffect, eventlog.KindBeat, eventlog.KindSession:
		if e.worded(e.entry.Kind) != nil {
			return nil
		}
	default:
	}
	return e.once(elementData, func() ref.Val {
		if !e.m.copied(2 * len(e.entry.Data)) {
			return nil
		}
		return types.String(hex.EncodeToString(e.entry.Data))
	})
}

func textOrNil(s string) ref.Val {
	if s == "" {
		return nil
	}
	return types.String(s)
}

// stateVars is the variable state, read from a fold, or prev, read from a view.
type stateVars struct {
	m     *meter
	names []string // the projections, in the set's order
	fold  *projection.Fold
	view  map[string]any
	made  []ref.Val // projections that were read already
}

func (s *stateVars) empty() bool { return s.fold == nil && s.view == nil }

func (s *stateVars) reset(fold *projection.Fold, view map[string]any) {
	s.fold, s.view = fold, view
	clear(s.made)
}

func (s *stateVars) seq() ref.Val {
	if s.fold != nil {
		return types.Int(s.fold.Head().Seq)
	}
	return s.viewOrNil("seq")
}

func (s *stateVars) at() ref.Val {
	if s.fold != nil {
		return types.Double(projection.Millis(s.fold.At()))
	}
	return s.viewOrNil("at")
}

func (s *stateVars) viewOrNil(name string) ref.Val {
	if v, ok := s.view[name]; ok {
		return s.m.plainValue(v)
	}
	return nil
}

// projection returns the state of one projection.
func (s *stateVars) projection(i int) ref.Val {
	if s.made[i] == nil {
		if s.fold == nil {
			s.made[i] = s.viewOrNil(s.names[i])
		} else if st := s.fold.State(s.names[i]); st != nil {
			s.made[i] = s.m.stateValue(st)
		}
	}
	return s.made[i]
}

// Members is an optional interface of a [projection.State]: an object whose members
// are made one by one, so that expressions read a part of the state without making
// its whole View. The members must be those of the View.
type Members interface {
	// Len returns how many members there are.
	Len() int

	// Names returns their names in an order of the implementation's, which
	// must not be that of a Go map.
	Names() []string

	// Member returns one of them, in the forms that a View has or as Members
	// again, or false.
	Member(name string) (any, bool)
}

// scheduled is a state that is a choreographer. The number and names of its
// performances are known without their views.
type scheduled interface {
	projection.State
	Scheduler() *choreography.Scheduler
}

func (m *meter) stateValue(st projection.State) ref.Val {
	switch st := st.(type) {
	case Members:
		return m.object(stateMembers{st})
	case scheduled:
		return m.object(&performances{state: st})
	}
	return m.plainValue(st.View())
}

type stateMembers struct{ Members }

func (s stateMembers) member(m *meter, name string) (ref.Val, bool) {
	v, ok := s.Member(name)
	if !ok {
		return nil, false
	}
	return m.plainValue(v), true
}

func (s stateMembers) size() int       { return s.Len() }
func (s stateMembers) names() []string { return s.Names() }

// performances reads a choreographer: its view is made when a member of a performance
// is read.
type performances struct {
	state scheduled
	view  map[string]any
}

func (p *performances) size() int { return p.state.Scheduler().Active() }

func (p *performances) names() []string {
	names := make([]string, 0, p.size())
	for perf := range p.state.Scheduler().Performances() {
		names = append(names, perf.ID())
	}
	return names
}

func (p *performances) member(m *meter, name string) (ref.Val, bool) {
	if p.size() == 0 {
		return nil, false
	}
	if p.view == nil {
		p.view, _ = p.state.View().(map[string]any)
	}
	v, ok := p.view[name]
	if !ok {
		return nil, false
	}
	return m.plainValue(v), true
}
