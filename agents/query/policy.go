package query

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/signal"
)

// PolicyDifference is a difference between an agent's views under two observation
// policies, from an entry on.
type PolicyDifference struct {
	Entry uint64
	At    time.Duration
	Cause Cause
	Agent string
	What  DifferenceKind
	// Path is a JSON pointer into the view; "" if the agent gets a delta under one
	// policy only, and the views do not differ by it.
	Path string
	// Before and After are the values under the recorded policy and under the
	// other one; nil if there is none.
	Before, After signal.Value
	// Standing says that the difference existed before this entry.
	Standing bool
}

// DifferenceKind says how two views differ at a path.
type DifferenceKind string

// The kinds of difference.
const (
	OnlyBefore DifferenceKind = "only_before" // under the recorded policy
	OnlyAfter  DifferenceKind = "only_after"  // under the other
	Different  DifferenceKind = "different"   // under both, with another value
)

// PolicyTally counts the differences that a [PolicyWatch] found.
type PolicyTally struct {
	Entries                          uint64 // that made a delta under either policy
	DeltasBefore, DeltasAfter        uint64
	OnlyBefore, OnlyAfter, Different uint64
}

// Same reports whether there is no difference.
func (t PolicyTally) Same() bool { return t.OnlyBefore == 0 && t.OnlyAfter == 0 && t.Different == 0 }

// PolicyWatch finds what agents would have seen under another observation policy
// that had been theirs from the beginning: beside the core's observers it keeps
// others with that policy, over the same world. The agents' requests stay as
// recorded, and so do the times of delivery. Views are compared as they are made,
// entry by entry.
type PolicyWatch struct {
	Tally PolicyTally

	lens     *view.CompiledPolicy
	agents   map[string]*compared
	everyone bool // all registered agents are watched
}

// compared is one agent under two policies.
type compared struct {
	other  *view.Observer // nil while the agent is not registered
	number uint64         // of deltas under the other policy; it continues when the agent registers again
	// standing holds a hash of each present difference, by entity or relationship
	// list and then by path. The two views bound its size.
	standing map[sightKey]map[string]uint64
}

// sightKey names one entity, or one list of relationships, of a view.
type sightKey struct{ part, id string }

func (k sightKey) path() string { return k.part + "/" + jsonpointer.Escape(k.id) }

func (k sightKey) of(o *view.Observer) signal.Value {
	if k.part == view.PathRelations {
		return o.ShownRelations(k.id)
	}
	return o.ShownEntity(k.id)
}

// NewPolicyWatch returns a watch over some agents, or without ids over all, with a
// policy as [view.CompilePolicy] reads it. It ignores the members of
// [agents.Settings].
func NewPolicyWatch(policy signal.Value, options agents.Options, ids ...string) (*PolicyWatch, error) {
	lens, err := agents.CompilePolicy(policy, options)
	if err != nil {
		return nil, err
	}
	w := &PolicyWatch{lens: lens, agents: map[string]*compared{}, everyone: len(ids) == 0}
	for _, id := range ids {
		w.watch(id)
	}
	return w, nil
}

func (w *PolicyWatch) watch(id string) {
	if _, ok := w.agents[id]; !ok {
		w.agents[id] = &compared{standing: map[sightKey]map[string]uint64{}}
	}
}

// Apply applies an entry that c has folded and returns the new differences, in the
// order of agents and paths. It tallies them if counted is set.
func (w *PolicyWatch) Apply(c *agents.Core, s *FoldedEntry, counted bool) []PolicyDifference {
	if id := jsonvalue.TextOf(s.Record.Value, "agent_id"); w.everyone && s.registers(id) {
		w.watch(id)
	}
	var list []PolicyDifference
	changed := false
	for _, id := range slices.Sorted(maps.Keys(w.agents)) {
		a := w.agents[id]
		before, ok1 := s.delivery(id)
		after, ok2 := a.step(c, s, id, w.lens)
		if !ok1 && !ok2 {
			continue
		}
		changed = true
		if counted {
			w.count(ok1, ok2)
		}
		shown, _ := c.Observer(id)
		found := a.compare(shown, touched(before.Delivery.Delta, after))
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
		if changed {
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

// Standing returns and tallies all differences after the last entry, which c has
// folded.
func (w *PolicyWatch) Standing(c *agents.Core) []PolicyDifference {
	var list []PolicyDifference
	for _, id := range slices.Sorted(maps.Keys(w.agents)) {
		a := w.agents[id]
		if a.other == nil {
			continue
		}
		keys := slices.SortedFunc(maps.Keys(a.standing), sightKey.compare)
		a.standing = map[sightKey]map[string]uint64{} // so that compare reports all of them as new
		shown, _ := c.Observer(id)
		for _, d := range a.compare(shown, keys) {
			d.Agent, d.At, d.Standing = id, c.Now(), true
			list = append(list, d)
		}
	}
	w.tally(list)
	return list
}

// step updates the agent's view under the other policy.
func (a *compared) step(c *agents.Core, s *FoldedEntry, id string, lens *view.CompiledPolicy) (view.Delta, bool) {
	if a.other != nil {
		a.number = a.other.Number()
	}
	switch e := s.Applied.Effect; {
	case s.Dismisses(id):
		a.other = nil
		clear(a.standing)
	case s.registers(id):
		shown, _ := c.Observer(id) // it was registered by this entry
		a.other = view.NewObserver(id, lens, a.number)
		clear(a.standing)
		return a.other.Begin(c.World(), shown.ViewSeq()), true
	case e != nil && a.other != nil:
		return a.other.Update(c.World(), *e, s.Applied.Changes)
	}
	return view.Delta{}, false
}

// touched returns the keys of what two deltas change, in order. An operation that
// replaces all entities or relationships gives a key without an id.
func touched(deltas ...view.Delta) []sightKey {
	var keys []sightKey
	for _, d := range deltas {
		for _, op := range d.Patches {
			p, err := jsondoc.ParsePointer(op.Path)
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

// compare compares the two views at some keys and returns the differences that are
// new.
func (a *compared) compare(before *view.Observer, keys []sightKey) []PolicyDifference {
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

// everyone replaces keys without an id by the keys of all that either view has.
func (a *compared) everyone(before *view.Observer, keys []sightKey) []sightKey {
	if !slices.ContainsFunc(keys, func(k sightKey) bool { return k.id == "" }) {
		return keys
	}
	all := slices.Collect(maps.Keys(a.standing)) // includes keys that neither view has now: their differences have ended
	for _, o := range []*view.Observer{before, a.other} {
		for _, id := range o.Visible() {
			all = append(all, sightKey{view.PathEntities, id})
		}
		for _, id := range o.Relations() {
			all = append(all, sightKey{view.PathRelations, id})
		}
	}
	slices.SortFunc(all, sightKey.compare)
	return slices.Compact(all)
}

// differences compares the values of one key in two views.
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
	for _, op := range jsondoc.AppendDiff(nil, "", before, after) {
		d := PolicyDifference{What: Different, Path: k.path() + op.Path, After: op.Value}
		switch op.Op {
		case "add":
			d.What = OnlyAfter
		case "remove":
			d.What = OnlyBefore
		default:
		}
		if p, err := jsondoc.ParsePointer(op.Path); err == nil && d.What != OnlyAfter {
			d.Before, _ = p.In(before)
		}
		list = append(list, d)
	}
	return list
}

// sum returns a hash of the difference, to recognize it.
func (d *PolicyDifference) sum() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%s", d.What, jsondoc.AppendCanonical(nil, d.Before), jsondoc.AppendCanonical(nil, d.After))
	return h.Sum64()
}
