package agents

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// PolicyDifference is something that an agent sees otherwise under another
// observation policy, from an entry on.
type PolicyDifference struct {
	Entry uint64
	At    time.Duration
	Cause Cause
	Agent string
	What  DifferenceKind
	// Path is a JSON pointer into the view; "" if the agent is told of the effect
	// under one policy only, and nothing that it sees differs by that.
	Path string
	// Before and After are what stands there under the recorded policy and under
	// the other; nil if nothing does.
	Before, After signal.Value
	// Standing says that it has been so before this entry.
	Standing bool
}

// DifferenceKind says how something differs.
type DifferenceKind string

// The kinds of difference.
const (
	OnlyBefore DifferenceKind = "only_before" // under the recorded policy
	OnlyAfter  DifferenceKind = "only_after"  // under the other
	Different  DifferenceKind = "different"   // under both, with another value
)

// PolicyTally counts what a [PolicyWatch] found.
type PolicyTally struct {
	Entries                          uint64 // that had somebody told something, under either policy
	DeltasBefore, DeltasAfter        uint64
	OnlyBefore, OnlyAfter, Different uint64
}

// Same reports whether nothing differs.
func (t PolicyTally) Same() bool { return t.OnlyBefore == 0 && t.OnlyAfter == 0 && t.Different == 0 }

// PolicyWatch finds what agents would have seen if another observation policy
// had been theirs from the beginning: beside what the core shows them it looks at
// the same world through another lens. What they did stands as it is recorded, as
// does when they were told. Views are compared as they were made, entry by entry.
type PolicyWatch struct {
	Tally PolicyTally

	lens     *Lens
	agents   map[string]*compared
	everyone bool // whoever is registered
}

// compared is one agent under two policies.
type compared struct {
	other *Observer // nil while the agent is not registered
	// standing has a sum of each difference there is, by what it is of in the
	// view and then by path. It is bounded by the two views.
	standing map[sightKey]map[string]uint64
}

// sightKey names one entity, or one list of relationships, of a view.
type sightKey struct{ part, id string }

func (k sightKey) path() string { return k.part + "/" + escape(k.id) }

func (k sightKey) of(o *Observer) signal.Value {
	if k.part == pathRelations {
		return o.tied(k.id)
	}
	return o.shown(k.id)
}

// NewPolicyWatch returns a watch over some agents, or without any over all, with a policy as
// [CompileLens] reads it. What it says of [Settings] is read and makes no
// difference.
func NewPolicyWatch(policy signal.Value, options Options, agents ...string) (*PolicyWatch, error) {
	c, err := NewCore(options)
	if err != nil {
		return nil, err
	}
	if _, err := c.Register(Registration{AgentID: "policy", Policy: policy}); err != nil {
		return nil, err
	}
	lens, err := CompileLens(policy, options.Customs, settingNames...)
	if err != nil {
		return nil, err
	}
	w := &PolicyWatch{lens: lens, agents: map[string]*compared{}, everyone: len(agents) == 0}
	for _, id := range agents {
		w.watch(id)
	}
	return w, nil
}

func (w *PolicyWatch) watch(id string) {
	if _, ok := w.agents[id]; !ok {
		w.agents[id] = &compared{standing: map[sightKey]map[string]uint64{}}
	}
}

// Step takes in an entry that c has folded and returns what differs by it, in
// the order of agents and paths. Only what is counted is tallied.
func (w *PolicyWatch) Step(c *Core, s *Step, counted bool) []PolicyDifference {
	if id := textOf(s.Record.Value, "agent_id"); w.everyone && s.registers(id) {
		w.watch(id)
	}
	var list []PolicyDifference
	told := false
	for _, id := range slices.Sorted(maps.Keys(w.agents)) {
		a := w.agents[id]
		before, ok1 := s.news(id)
		after, ok2 := a.step(c, s, id, w.lens)
		if !ok1 && !ok2 {
			continue
		}
		told = true
		if counted {
			w.count(ok1, ok2)
		}
		found := a.compare(c.agents[id].observer, touched(before.Delivery.Delta, after))
		if len(found) == 0 && ok1 != ok2 {
			found = []PolicyDifference{{What: OnlyBefore}}
			if ok2 {
				found[0].What = OnlyAfter
			}
		}
		for _, d := range found {
			d.Entry, d.At, d.Cause, d.Agent = s.Entry, s.At, s.cause(), id
			list = append(list, d)
		}
	}
	if counted {
		w.tally(list)
		if told {
			w.Tally.Entries++
		}
	}
	return list
}

func (w *PolicyWatch) count(before, after bool) {
	if before {
		w.Tally.DeltasBefore++
	}
	if after {
		w.Tally.DeltasAfter++
	}
}

func (w *PolicyWatch) tally(list []PolicyDifference) {
	for i := range list {
		switch list[i].What {
		case OnlyBefore:
			w.Tally.OnlyBefore++
		case OnlyAfter:
			w.Tally.OnlyAfter++
		case Different:
			w.Tally.Different++
		}
	}
}

// Standing returns all that differs after the last entry, which c has folded,
// and tallies it.
func (w *PolicyWatch) Standing(c *Core) []PolicyDifference {
	var list []PolicyDifference
	for _, id := range slices.Sorted(maps.Keys(w.agents)) {
		a := w.agents[id]
		if a.other == nil {
			continue
		}
		keys := slices.SortedFunc(maps.Keys(a.standing), sightKey.compare)
		a.standing = map[sightKey]map[string]uint64{} // so that all of it is news
		for _, d := range a.compare(c.agents[id].observer, keys) {
			d.Agent, d.At, d.Standing = id, c.now, true
			list = append(list, d)
		}
	}
	w.tally(list)
	return list
}

// step shows the agent what the other policy lets it see of an entry.
func (a *compared) step(c *Core, s *Step, id string, lens *Lens) (Delta, bool) {
	switch e := s.Applied.Effect; {
	case s.dismisses(id):
		a.other = nil
		clear(a.standing)
	case s.registers(id):
		a.other = NewObserver(id, lens)
		clear(a.standing)
		return a.other.Begin(c.world.Reader, c.Seq()), true
	case e != nil && a.other != nil:
		return a.other.Update(c.world.Reader, *e, s.Applied.Changes)
	}
	return Delta{}, false
}

// touched returns what two deltas are about, in order. What one of them shows
// as a whole may be about anything: that is a key without an id.
func touched(deltas ...Delta) []sightKey {
	var keys []sightKey
	for _, d := range deltas {
		for _, op := range d.Patches {
			p, err := ParsePointer(op.Path)
			if err != nil || len(p) == 0 {
				continue
			}
			k := sightKey{part: "/" + p[0]}
			if len(p) > 1 {
				k.id = p[1]
			}
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, sightKey.compare)
	return slices.Compact(keys)
}

func (k sightKey) compare(o sightKey) int {
	if c := strings.Compare(k.part, o.part); c != 0 {
		return c
	}
	return strings.Compare(k.id, o.id)
}

// compare compares the two views at some places, and returns what differs there
// and did not differ so before.
func (a *compared) compare(before *Observer, keys []sightKey) []PolicyDifference {
	var list []PolicyDifference
	for _, k := range a.everyone(before, keys) {
		now := map[string]uint64{}
		for _, d := range differences(k, k.of(before), k.of(a.other)) {
			sum := d.sum()
			if had, ok := a.standing[k][d.Path]; !ok || had != sum {
				list = append(list, d)
			}
			now[d.Path] = sum
		}
		if len(now) > 0 {
			a.standing[k] = now
		} else {
			delete(a.standing, k)
		}
	}
	return list
}

// everyone puts all that either view has in the place of a key without an id.
func (a *compared) everyone(before *Observer, keys []sightKey) []sightKey {
	if !slices.ContainsFunc(keys, func(k sightKey) bool { return k.id == "" }) {
		return keys
	}
	all := slices.Collect(maps.Keys(a.standing)) // what is in neither any more does not differ any more
	for _, o := range []*Observer{before, a.other} {
		for _, s := range o.seen {
			all = append(all, sightKey{pathEntities, s.id})
		}
		for _, t := range o.ties {
			all = append(all, sightKey{pathRelations, t.id})
		}
	}
	slices.SortFunc(all, sightKey.compare)
	return slices.Compact(all)
}

// differences compares what two views have of one thing.
func differences(k sightKey, before, after signal.Value) []PolicyDifference {
	switch {
	case before == nil && after == nil:
		return nil
	case after == nil:
		return []PolicyDifference{{What: OnlyBefore, Path: k.path(), Before: before}}
	case before == nil:
		return []PolicyDifference{{What: OnlyAfter, Path: k.path(), After: after}}
	}
	var list []PolicyDifference
	for _, op := range appendDiff(nil, "", before, after) {
		d := PolicyDifference{What: Different, Path: k.path() + op.Path, After: op.Value}
		switch op.Op {
		case "add":
			d.What = OnlyAfter
		case "remove":
			d.What = OnlyBefore
		default:
		}
		if p, err := ParsePointer(op.Path); err == nil && d.What != OnlyAfter {
			d.Before, _ = p.In(before)
		}
		list = append(list, d)
	}
	return list
}

// sum tells one difference at a path from another.
func (d *PolicyDifference) sum() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%s", d.What, AppendCanonical(nil, d.Before), AppendCanonical(nil, d.After))
	return h.Sum64()
}
