package where

import (
	"encoding/hex"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

// variables is the activation of an [Expression]: it gives what is asked for
// and makes nothing before. It is used again for every evaluation.
type variables struct {
	entry entryVars
	state stateVars
	prev  stateVars
}

func (v *variables) prepare(set projection.Set) {
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
}

// ResolveName implements [interpreter.Activation].
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case "entry":
		return &v.entry, true
	case "state":
		return &v.state, true
	case "prev":
		return &v.prev, true
	case "seq":
		switch {
		case v.state.fold != nil:
			return types.Int(v.state.fold.Head().Seq), true
		case v.entry.entry != nil:
			return types.Int(v.entry.entry.Seq), true
		}
		return types.Int(0), true
	case "at":
		switch {
		case v.state.fold != nil:
			return types.Double(projection.Millis(v.state.fold.At())), true
		case v.entry.entry != nil:
			return types.Double(projection.Millis(v.entry.entry.At)), true
		}
		return types.Double(0), true
	}
	return nil, false
}

// Parent implements [interpreter.Activation].
func (v *variables) Parent() interpreter.Activation { return nil }

// seq returns where in is.
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
	entry   *eventlog.Entry // nil: there is none
	signal  signal.Signal   // what the entry records, if decoded
	decoded bool
	fine    bool // it was decoded without an error

	// A type is seldom new: the last one is kept as a value.
	lastType ref.Val
	lastText string
}

func (e *entryVars) empty() bool { return e.entry == nil }

func (e *entryVars) reset(entry *eventlog.Entry) {
	e.entry, e.decoded = entry, false
}

// sig returns the signal that the entry records, or nil.
func (e *entryVars) sig() *signal.Signal {
	if !e.decoded {
		e.decoded, e.fine = true, false
		if e.entry.Kind == eventlog.KindSignal {
			sig, err := signal.Decode(e.entry.Data)
			e.signal, e.fine = sig, err == nil
		}
	}
	if !e.fine {
		return nil
	}
	return &e.signal
}

// envelope returns the signal if it has the envelope's members: an irregular
// one has its type, its problem and raw instead.
func (e *entryVars) envelope() *signal.Signal {
	if sig := e.sig(); sig != nil && sig.Raw == nil {
		return sig
	}
	return nil
}

func (e *entryVars) key() ref.Val { return textOrNil(e.entry.Key) }

// The places of an envelope's members in the data of a signal that was valid
// when it was recorded; package signal has the form.
const (
	elementID = iota
	elementType
	elementTimestamp
	elementSource
	elementCorrelationID
	elementMetadata
	elementPayload
)

// arrayOf7 is the first byte of that form.
const arrayOf7 = 0x97

// element returns a member of a valid signal's envelope straight from the
// entry's bytes. It checks nothing of the others, which is why reading a type
// takes a tenth of decoding the signal; values stand on their own feet, and
// bytes that were never a signal give other answers but do no harm. For
// another form it returns false.
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
	if v, ok := e.element(i); ok {
		if v.Kind() == signal.KindNull {
			return nil
		}
		return exactValue(v)
	}
	if sig := e.envelope(); sig != nil {
		return of(sig)
	}
	return nil
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
	return e.member(elementMetadata, func(sig *signal.Signal) ref.Val { return exactOrNil(sig.Metadata) })
}

func (e *entryVars) payload() ref.Val {
	return e.member(elementPayload, func(sig *signal.Signal) ref.Val { return exactOrNil(sig.Payload) })
}

func exactOrNil(v signal.Value) ref.Val {
	if v == nil {
		return nil
	}
	return exactValue(v)
}

func (e *entryVars) problem() ref.Val {
	if sig := e.sig(); sig != nil {
		return textOrNil(sig.Problem)
	}
	return nil
}

func (e *entryVars) raw() ref.Val {
	if sig := e.sig(); sig != nil && sig.Raw != nil {
		return exactValue(sig.Raw)
	}
	return nil
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
	word, v, ok := wordOf(e.entry.Data)
	if !ok {
		return nil
	}
	return &object{members: oneMember{word, v}}
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

// data returns, in hexadecimal, the data of an entry that nothing else shows.
func (e *entryVars) data() ref.Val {
	switch e.entry.Kind {
	case eventlog.KindSignal:
		if e.sig() != nil {
			return nil
		}
	case eventlog.KindDefine, eventlog.KindEffect, eventlog.KindBeat, eventlog.KindSession:
		if _, _, ok := wordOf(e.entry.Data); ok {
			return nil
		}
	default:
	}
	return types.String(hex.EncodeToString(e.entry.Data))
}

func textOrNil(s string) ref.Val {
	if s == "" {
		return nil
	}
	return types.String(s)
}

// stateVars is the variable state, which is a fold, or prev, which is a view.
type stateVars struct {
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
	return viewOrNil(s.view, "seq")
}

func (s *stateVars) at() ref.Val {
	if s.fold != nil {
		return types.Double(projection.Millis(s.fold.At()))
	}
	return viewOrNil(s.view, "at")
}

func viewOrNil(view map[string]any, name string) ref.Val {
	if v, ok := view[name]; ok {
		return plainValue(v)
	}
	return nil
}

// projection returns the state of one projection.
func (s *stateVars) projection(i int) ref.Val {
	if s.made[i] == nil {
		if s.fold == nil {
			s.made[i] = viewOrNil(s.view, s.names[i])
		} else if st := s.fold.State(s.names[i]); st != nil {
			s.made[i] = stateValue(st)
		}
	}
	return s.made[i]
}

// Members is what a [projection.State] may be besides, so that expressions need
// not make its whole View to read a part of it: an object whose members are
// made one by one. They must be those of the View.
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

// scheduled is a state that is a choreographer. How many performances there
// are and what they are called is known without their views.
type scheduled interface {
	projection.State
	Scheduler() *choreography.Scheduler
}

func stateValue(st projection.State) ref.Val {
	switch st := st.(type) {
	case Members:
		return &object{members: stateMembers{st}}
	case scheduled:
		return &object{members: &performances{state: st}}
	}
	return plainValue(st.View())
}

type stateMembers struct{ Members }

func (m stateMembers) member(name string) (ref.Val, bool) {
	v, ok := m.Member(name)
	if !ok {
		return nil, false
	}
	return plainValue(v), true
}

func (m stateMembers) size() int       { return m.Len() }
func (m stateMembers) names() []string { return m.Names() }

// performances reads a choreographer: its view is made when a performance is
// looked into.
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

func (p *performances) member(name string) (ref.Val, bool) {
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
	return plainValue(v), true
}
