package provenance

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// SetterKind is the kind of an event that sets values.
type SetterKind string

// The kinds of events.
const (
	ByEntry     SetterKind = "entry"     // an entry by itself
	ByStart     SetterKind = "start"     // an animated act began
	ByExecute   SetterKind = "execute"   // an instant act
	ByComplete  SetterKind = "complete"  // an animated act ended by itself
	ByInterrupt SetterKind = "interrupt" // an entry ended a performance
	ByTime      SetterKind = "time"      // time passed; the acts of the instant are candidates
)

// Setter is the event that set a value.
type Setter struct {
	Kind SetterKind

	// Entry is the entry itself, or the one whose signal began the performance, or the
	// one that interrupted it. It is 0 for ByTime.
	Entry eventlog.Seq

	// The act and its performance; for ByInterrupt the performance alone. All are
	// zero for ByEntry and ByTime.
	Performance string
	Definition  string // the id of its choreography, or else the signal type that starts it
	Step        string // the place of the act in its choreography, such as "2" or "2.1"
	Action      string
	Entity      string         // as the step resolves it
	Params      map[string]any // resolved

	// Candidates are the acts that may have set the value, for ByTime alone.
	Candidates []Setter
}

// Setting is one event that set a value.
type Setting struct {
	Moment   replay.Moment
	At       time.Duration // session time
	Setter   Setter
	Old, New any  // plain values right before and right after; nil if there is none
	Had, Has bool // whether there was a value before, and is one after
}

// setterOf describes the act of an event.
func setterOf(kind SetterKind, a *choreography.Act) Setter {
	o := Setter{
		Kind: kind, Entry: eventlog.Seq(a.Key.Seq), Performance: performanceID(a.Key.Seq, a.Key.Index),
		Action: a.Action, Entity: a.Entity(), Params: map[string]any{},
	}
	d := a.Definition()
	if o.Definition = d.Name(); o.Definition == "" {
		o.Definition = d.On()
	}
	o.Step = stepText(d, a.Key.Node)
	for _, p := range d.Nodes()[a.Key.Node].Params {
		if v, ok := a.Param(p.Name); ok {
			o.Params[p.Name] = v.Any()
		}
	}
	return o
}

func performanceID(seq uint64, index uint32) string {
	return "p-" + strconv.FormatUint(seq, 10) + "-" + strconv.FormatUint(uint64(index), 10)
}

// stepText returns the place of a node: its number in its block, from 1, behind those
// of the parallel groups around it. Conditions and waits of no length do not count.
func stepText(d *definition.Definition, node int32) string {
	if s, ok := stepIn(d, d.Main(), node); ok {
		return s
	}
	s, _ := stepIn(d, d.Handler(), node)
	return "onInterrupt " + s
}

func stepIn(d *definition.Definition, b definition.Block, node int32) (string, bool) {
	nodes := d.Nodes()
	number := 0
	for i := b.First; i < b.End; i++ {
		if nodes[i].Kind == definition.NodeBranch {
			continue
		}
		number++
		if i == node {
			return strconv.Itoa(number), true
		}
		for k, child := range nodes[i].Children {
			if node < child.First || node >= child.End {
				if s, ok := stepIn(d, child, node); ok && nodes[i].Kind == definition.NodeParallel {
					return fmt.Sprintf("%d.%d.%s", number, k+1, s), true
				}
				continue
			}
			s, _ := stepIn(d, child, node)
			if child.End-child.First == 1 {
				return fmt.Sprintf("%d.%d", number, k+1), true
			}
			return fmt.Sprintf("%d.%d.%s", number, k+1, s), true
		}
	}
	return "", false
}
