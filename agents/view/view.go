// Package view decides what each agent sees of a world, and computes the deltas that
// keep the agents' views up to date.
//
// A [Policy] says what one agent may see; [CompilePolicy] reads one from JSON. An
// [Observer] keeps the view of one agent: after an effect, [Observer.Update] returns
// the [Delta] from the last view to the new one. An [Audience] names the agents that
// an effect may concern, so that the other observers need no update.
//
//	changes, err := w.Apply(effect)
//	for _, id := range audience.Follow(w.ReadOnly, effect, changes) {
//		if delta, ok := observers[id].Update(w.ReadOnly, effect, changes); ok {
//			queue(id, delta)
//		}
//	}
//
// The package is pure. It reads worlds and never writes one.
//
// # Invariants
//
//   - A delta is a valid JSON Patch against the view that the delta before it led to.
//     Applied in order, deltas give the view whose digest they carry.
//   - That view is what the policy allows of the current world, whatever happened
//     before. Only remembered entities ([Options].Remember) depend on the history.
//   - Only its source and its target are shown a private message, and only the team
//     a team message, whatever the policies.
//   - The view_seq of a view is the number of the newest effect for which the agent
//     got a delta, other than one by [Observer.Pass]; it never exceeds the world's.
//
// A policy that is not a pure function, or that claims smaller [Dependencies] than it
// has, breaks them.
//
// docs/glossary.md has the nouns of all packages.
package view

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/signal"
)

// CompiledPolicy is a policy together with the form of the views that it produces.
// It is immutable and may be shared.
type CompiledPolicy struct {
	policy Policy
	deps   Dependencies
	config Options
	whole  bool // it shows all fields of an entity that the agent sees
}

// Options is the form of the views and deltas of an agent.
type Options struct {
	// MaxPatchOps bounds the operations of a delta; 0 means [DefaultMaxPatchOps].
	MaxPatchOps int
	// HidePositions leaves out the member position, which otherwise every
	// visible entity with a position has, and the members that the world derives
	// from it.
	HidePositions bool
	// TypedRelationships shows relations that have a type or a strength as
	// objects; otherwise all are plain ids.
	TypedRelationships bool
	// Remember is how many entities stay in the view, as last seen, when they
	// are no longer visible; 0 means that they are removed. Such an entity has the
	// member last_seen_seq: the agent's own number of the delta that hid it. It is
	// forgotten when the agent sees it again, when it is removed while the agent sees
	// it, and, from the one hidden first on, when more than Remember are hidden.
	Remember int
}

// MaxRemember bounds [Options.Remember].
const MaxRemember = 10_000

// NewCompiledPolicy returns a compiled policy; a nil policy is [Everything].
func NewCompiledPolicy(p Policy, config Options) *CompiledPolicy {
	if p == nil {
		p = Everything()
	}
	config.Remember = min(max(config.Remember, 0), MaxRemember)
	return &CompiledPolicy{p, p.Dependencies(), config, !config.HidePositions && showsAll(p)}
}

// View is the present view of an agent.
type View struct {
	AgentID              string
	ViewSeq              uint64
	VisibleEntities      signal.Value
	VisibleRelationships signal.Value
	ContextDigest        string
}

// Value returns the view as JSON.
func (v View) Value() signal.Value {
	return jsonvalue.Fields{
		{"agent_id", jsonvalue.Text(v.AgentID)},
		{"view_seq", jsonvalue.Uint(v.ViewSeq)},
		{"visible_entities", v.VisibleEntities},
		{"visible_relationships", v.VisibleRelationships},
		{"context_digest", jsonvalue.Text(v.ContextDigest)},
	}.Value()
}

// Digest returns the context digest that the view must have: the hexadecimal
// SHA-256 of the canonical JSON of the view without view_seq and context_digest.
func (v View) Digest() string {
	sum := sha256.Sum256(jsondoc.AppendCanonical(nil, jsonvalue.Fields{
		{"agent_id", jsonvalue.Text(v.AgentID)},
		{"visible_entities", v.VisibleEntities},
		{"visible_relationships", v.VisibleRelationships},
	}.Value()))
	return hex.EncodeToString(sum[:])
}

// Observer keeps the view of one agent, up to the last delta that was made for it,
// whether that was delivered or not. It is not safe for concurrent use.
//
// The cost of a delta depends on what changed and, when the agent itself moved, on
// what is near. The digest is defined over the whole view (the multi-agent design,
// "Observation Policy Interface"), so the JSON of each entity is kept, and a digest
// costs one pass of SHA-256 over it: microseconds for ordinary views, on the goroutine
// that asks for it first. A digest of digests would cost less for views of thousands of
// entities, but a client could not check it without knowing how it is composed.
type Observer struct {
	agent     string
	compiled  *CompiledPolicy
	seq       uint64
	number    uint64            // of deltas made; the agent's own number of the next one
	seen      []*renderedEntity // in the order of ids
	relations []*relationList   // in the order of ids
	memory    map[string]uint64 // remembered entities: the number of the delta that hid each
	digest    *digest           // of seen and relations, which are not changed in place
	viewpoint Viewpoint         // of the present update
}

// relationList is the list of the visible relationships of one id.
type relationList struct {
	id   string
	list signal.Value
	json []byte
}

// NewObserver returns an observer with an empty view. It numbers its deltas from
// number on.
func NewObserver(agent string, compiled *CompiledPolicy, number uint64) *Observer {
	o := &Observer{agent: agent, compiled: compiled, number: number, memory: map[string]uint64{}}
	o.change()
	return o
}

// Number returns the agent's own number of the next delta.
func (o *Observer) Number() uint64 { return o.number }

// Agent returns the id of the observing agent.
func (o *Observer) Agent() string { return o.agent }

// Policy returns the compiled policy of the observer.
func (o *Observer) Policy() *CompiledPolicy { return o.compiled }

// ViewSeq returns the number of the newest effect for which a delta was made, other
// than one by [Observer.Pass].
func (o *Observer) ViewSeq() uint64 { return o.seq }

// Digest returns the context digest of the view.
func (o *Observer) Digest() string { return o.digest.String() }

// Sees reports whether the agent sees an entity now. A remembered entity does not
// count.
func (o *Observer) Sees(id string) bool {
	i, ok := o.find(id)
	return ok && !o.seen[i].gone
}

// Visible returns the ids of all entities in the view, remembered ones included, in
// order.
func (o *Observer) Visible() []string {
	ids := make([]string, len(o.seen))
	for i, s := range o.seen {
		ids[i] = s.id
	}
	return ids
}

// View returns the present view.
func (o *Observer) View() View {
	entities, relations := o.values()
	return View{o.agent, o.seq, entities, relations, o.Digest()}
}

// Relations returns the ids whose relationships are in the view, in order.
func (o *Observer) Relations() []string {
	ids := make([]string, len(o.relations))
	for i, t := range o.relations {
		ids[i] = t.id
	}
	return ids
}

// FullView returns a delta that replaces the full view by the present one.
func (o *Observer) FullView() Delta { return o.delta(fullView(o.values())) }

func (o *Observer) values() (entities, relations signal.Value) {
	shown := make(jsonvalue.Fields, len(o.seen))
	for i, s := range o.seen {
		shown[i] = jsonvalue.NamedValue{s.id, s.value()}
	}
	lists := make(jsonvalue.Fields, len(o.relations))
	for i, t := range o.relations {
		lists[i] = jsonvalue.NamedValue{t.id, t.list}
	}
	return shown.Value(), lists.Value()
}

// Begin builds the view of the world at seq and returns a delta that replaces the
// full view: the first observation, and the one that starts a client over.
func (o *Observer) Begin(w world.ReadOnly, seq uint64) Delta {
	o.rebuild(newViewpoint(w, o.agent), seq)
	o.number++
	return o.FullView()
}

// rebuild evaluates the policy for all entities again. It keeps the memory.
func (o *Observer) rebuild(vp *Viewpoint, seq uint64) {
	o.look(vp, o.everything(vp), true, nil)
	o.seq = seq
	o.change()
}

// Update brings the view up to date after an effect, and returns the delta. w is
// the world after the effect, and c are the changes that [world.World.Apply]
// returned. If the agent neither sees a change nor observes the effect, Update
// changes nothing and returns false. A delta for an effect that is observed but
// changes nothing visible has no operations.
//
// Update must be called for every effect for which [Audience.Follow] names the
// agent.
func (o *Observer) Update(w world.ReadOnly, e world.Effect, c world.Changes) (Delta, bool) {
	delta, ok := o.Pass(w, e, c)
	if ok {
		o.seq = c.Seq
		delta.ViewSeq = c.Seq
	}
	return delta, ok
}

// Pass is [Observer.Update] for an effect that makes no context stale unless it changes the view:
// a delta without operations has the view_seq of the one before it.
func (o *Observer) Pass(w world.ReadOnly, e world.Effect, c world.Changes) (Delta, bool) {
	vp := &o.viewpoint
	vp.set(w, o.agent)
	ids, fresh := o.concerned(vp, c)
	ops := o.look(vp, ids, fresh, &c)
	if len(ops) == 0 && !o.observes(vp, e) { // an agent observes what changes its view
		return Delta{}, false
	}
	o.number++
	if len(ops) > 0 {
		o.seq = c.Seq
		o.change()
	}
	if tooMuch(ops, o.compiled.config.MaxPatchOps, o.size) {
		ops = fullView(o.values())
	}
	return o.delta(ops), true
}

// size returns the length of the view's JSON, in bytes.
func (o *Observer) size() int {
	size := 0
	for _, s := range o.seen {
		size += s.size()
	}
	for _, t := range o.relations {
		size += len(t.json)
	}
	return size
}

// change ends a change of the view: from now on it has another digest.
func (o *Observer) change() {
	o.digest = &digest{agent: o.agent, seen: o.seen, relations: o.relations}
}

func (o *Observer) delta(ops []jsondoc.Operation) Delta {
	return Delta{o.seq, ops, world.SchemaVersion, o.digest}
}

// Observes reports whether the agent observes an effect, given the present world
// and view:
//
//   - It observes its own effects. It observes a private message if it is the
//     target, and a team message if it is of the team, and no other private or team
//     message. The payload's channel decides, whatever the kind.
//   - Otherwise a policy that is a [Listener] decides, unless it leaves the decision
//     to the rule.
//   - Otherwise it observes the effect if it sees the source; if a point of the payload
//     (position, to) is in view; if it sees the payload's entity_id or target_id; or if
//     it sees both from_entity and to_entity (from and to).
func (o *Observer) Observes(w world.ReadOnly, e world.Effect) bool {
	return o.observes(newViewpoint(w, o.agent), e)
}

func (o *Observer) observes(vp *Viewpoint, e world.Effect) bool {
	if e.SourceID == o.agent && o.agent != "" {
		return true
	}
	switch hidden, addressed := confidential(vp, e); {
	case hidden:
		return false
	case addressed:
		return reception(o.compiled.policy, vp, e) != NotReceived
	}
	switch reception(o.compiled.policy, vp, e) {
	case Received:
		return true
	case NotReceived:
		return false
	default:
	}
	sees := func(id string) bool {
		return id == o.agent || o.Sees(id) || o.compiled.policy.Sees(vp, id)
	}
	if sees(e.SourceID) {
		return true
	}
	for _, name := range []string{"position", "to"} {
		if v, ok := e.Payload.Get(name); ok {
			if at, err := world.ParsePosition(v); err == nil && covers(o.compiled.policy, vp, at) {
				return true
			}
		}
	}
	for _, name := range []string{"entity_id", "target_id"} {
		if id, ok := jsonvalue.TextMember(e.Payload, name); ok && sees(id) {
			return true
		}
	}
	from, ok1 := jsonvalue.TextMember(e.Payload, "from_entity", "from")
	to, ok2 := jsonvalue.TextMember(e.Payload, "to_entity", "to")
	return ok1 && ok2 && sees(from) && sees(to)
}

// concerned returns the ids to evaluate again after a change. fresh reports whether
// the form of an entity may differ though the entity itself did not change.
func (o *Observer) concerned(vp *Viewpoint, c world.Changes) (ids []string, fresh bool) {
	deps := &o.compiled.deps
	whole := deps.Opaque || deps.Graph > 0 && len(c.Relations) > 0
	if !deps.Fixed && slices.ContainsFunc(c.Places, func(p world.PlaceChange) bool { return p.ID == o.agent }) {
		whole = true
	}
	fresh = deps.Opaque
	for _, e := range c.Entities {
		switch {
		case e.ID != o.agent:
		case world.TeamOf(e.Before) != world.TeamOf(e.After):
			whole, fresh = true, true // team messages are disclosed by team, whatever the policy
		case slices.ContainsFunc(e.Fields, func(f string) bool { return slices.Contains(deps.Fields, f) }):
			whole = true
		}
	}
	if !whole {
		return c.Touched(), fresh
	}
	return o.everything(vp), fresh || deps.Mixed
}

// everything returns the ids of all entities that can be visible and of all that
// are in the view.
func (o *Observer) everything(vp *Viewpoint) []string {
	ids := make([]string, 0, len(o.seen)+16)
	for _, s := range o.seen {
		ids = append(ids, s.id)
	}
	ids = append(ids, o.agent)
	index := vp.Index()
	deps := o.compiled.deps
	if deps.Everything {
		ids = slices.AppendSeq(ids, index.Entities())
	} else {
		if deps.Radius > 0 {
			ids = slices.AppendSeq(ids, index.Near(vp.At, deps.Radius))
		}
		if deps.Unplaced {
			ids = slices.AppendSeq(ids, index.Unplaced())
		}
		if deps.Team {
			ids = slices.AppendSeq(ids, index.Team(vp.Team))
		}
		if deps.Depth > 0 {
			ids = slices.AppendSeq(ids, maps.Keys(index.Hops([]string{o.agent}, deps.Depth, index.Neighbours)))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (o *Observer) find(id string) (int, bool) {
	return slices.BinarySearchFunc(o.seen, id, func(s *renderedEntity, id string) int { return strings.Compare(s.id, id) })
}

// look evaluates the policy for the ids, which are in order, updates the view and
// returns the patch that makes the same change. With fresh set it renders entities
// again that did not change. A nil c builds no patch.
func (o *Observer) look(vp *Viewpoint, ids []string, fresh bool, c *world.Changes) []jsondoc.Operation {
	var ops []jsondoc.Operation
	var turned []string        // entities that came into view or left it
	var next []*renderedEntity // what is shown now, of o.seen before done
	done := 0
	for _, id := range ids {
		i, had := slices.BinarySearchFunc(o.seen[done:], id, func(s *renderedEntity, id string) int { return strings.Compare(s.id, id) })
		i += done
		var old *renderedEntity
		if had {
			old = o.seen[i]
		}
		now := o.sight(vp, id, old, fresh)
		if now == nil {
			delete(o.memory, id)
		}
		if now == old {
			continue
		}
		if (old != nil && !old.gone) != (now != nil && !now.gone) {
			turned = append(turned, id)
		}
		if next == nil {
			next = make([]*renderedEntity, 0, len(o.seen)+len(ids))
		}
		next = append(next, o.seen[done:i]...)
		if done = i; had {
			done++
		}
		if now != nil {
			next = append(next, now)
		}
		if c != nil {
			ops = appendSight(ops, id, old, now)
		}
	}
	if next != nil {
		o.seen = append(next, o.seen[done:]...)
	}
	ops = o.forget(ops)
	return o.relate(vp, ops, turned, c)
}

func appendSight(ops []jsondoc.Operation, id string, old, now *renderedEntity) []jsondoc.Operation {
	switch {
	case now == nil:
		return append(ops, jsondoc.Operation{Op: "remove", Path: PathEntities + "/" + jsonpointer.Escape(id)})
	case old == nil:
		return append(ops, jsondoc.Operation{Op: "add", Path: PathEntities + "/" + jsonpointer.Escape(id), Value: now.value()})
	case ops == nil:
		return slices.Clip(now.since(old)) // shared, not copied
	default:
		return append(ops, now.since(old)...)
	}
}

// sight returns how an entity is shown now; nil if it is not, and old itself
// if nothing changed.
func (o *Observer) sight(vp *Viewpoint, id string, old *renderedEntity, fresh bool) *renderedEntity {
	e, exists := vp.Index().Entity(id)
	if exists && o.compiled.sees(vp, id) {
		delete(o.memory, id)
		if old != nil && !old.gone && !fresh && old.revision == e.Revision() {
			return old
		}
		return o.compiled.show(vp, id, e)
	}
	switch {
	case old == nil:
		return nil
	case old.gone:
		return old
	case !exists || o.compiled.config.Remember == 0:
		return nil // removed while the agent saw it, or the policy remembers nothing
	}
	o.memory[id] = o.number // the number of the delta that Update is making
	return old.remembered(o.number)
}

// show returns an entity with the fields that the agent may see. Agents that may
// see all of them share one form.
func (c *CompiledPolicy) show(vp *Viewpoint, id string, e *world.EntityRevision) *renderedEntity {
	if c.whole {
		if full := renderFull(vp.Index(), id, e); !full.confidential {
			return full
		}
	}
	shows := func(name string, m signal.Value) bool {
		return discloses(vp, id, name, m) && c.shows(vp, id, name)
	}
	at, placed := vp.Position(id)
	positioned := placed && c.shows(vp, id, world.FieldPosition)
	whole := !placed || positioned
	for name, m := range e.Object().Members() {
		if whole = whole && shows(name, m); !whole {
			break
		}
	}
	if whole {
		return renderFull(vp.Index(), id, e)
	}
	shown := make(jsonvalue.Fields, 0, e.Object().Len()+1)
	for name, m := range e.Object().Members() {
		if shows(name, m) {
			shown = append(shown, jsonvalue.NamedValue{name, m})
		}
	}
	if positioned {
		shown.Set(world.FieldPosition, at.Value())
	}
	return newRendered(id, shown.Sorted(), e.Revision())
}

// forget removes remembered entities, those hidden first, until the others fit.
func (o *Observer) forget(ops []jsondoc.Operation) []jsondoc.Operation {
	excess := len(o.memory) - o.compiled.config.Remember
	if excess <= 0 {
		return ops
	}
	oldest := slices.SortedFunc(maps.Keys(o.memory), func(a, b string) int {
		return cmp.Or(cmp.Compare(o.memory[a], o.memory[b]), strings.Compare(a, b))
	})[:excess]
	slices.Sort(oldest)
	for _, id := range oldest {
		delete(o.memory, id)
	}
	dropped := func(id string) bool {
		_, found := slices.BinarySearch(oldest, id)
		return found
	}
	o.seen = slices.DeleteFunc(o.seen, func(s *renderedEntity) bool { return s.gone && dropped(s.id) })
	for _, id := range oldest {
		ops = append(ops, jsondoc.Operation{Op: "remove", Path: PathEntities + "/" + jsonpointer.Escape(id)})
	}
	return ops
}

// relate brings the visible relationships up to date, for the ids that look turned
// and those whose relations changed.
func (o *Observer) relate(vp *Viewpoint, ops []jsondoc.Operation, turned []string, c *world.Changes) []jsondoc.Operation {
	ids := slices.Clone(turned)
	for _, id := range turned {
		for from := range vp.Index().Referrers(id) {
			ids = append(ids, from)
		}
	}
	if c == nil {
		ids = append(ids, o.Visible()...) // those that have lists and are no longer visible have turned
	} else {
		for _, r := range c.Relations {
			ids = append(ids, r.From)
		}
	}
	slices.Sort(ids)
	copied := false
	own := func() { // digests of the view before share the list
		if !copied {
			o.relations, copied = slices.Clone(o.relations), true
		}
	}
	for _, id := range slices.Compact(ids) {
		list := o.list(vp, id)
		i, had := slices.BinarySearchFunc(o.relations, id, func(t *relationList, id string) int { return strings.Compare(t.id, id) })
		path := PathRelations + "/" + jsonpointer.Escape(id)
		switch {
		case list == nil && !had:
		case list == nil:
			own()
			o.relations = slices.Delete(o.relations, i, i+1)
			ops = append(ops, jsondoc.Operation{Op: "remove", Path: path})
		case !had:
			own()
			o.relations = slices.Insert(o.relations, i, newRelationList(id, list))
			ops = append(ops, jsondoc.Operation{Op: "add", Path: path, Value: list})
		case !slices.Equal(o.relations[i].list, list):
			own()
			o.relations[i] = newRelationList(id, list)
			ops = append(ops, jsondoc.Operation{Op: "replace", Path: path, Value: list})
		}
	}
	return ops
}

func newRelationList(id string, list signal.Value) *relationList {
	json := append(jsondoc.AppendText(nil, id), ':')
	return &relationList{strings.Clone(id), list, jsondoc.AppendCanonical(json, list)}
}

// list returns the visible relations from an id, nil if there are none.
func (o *Observer) list(vp *Viewpoint, id string) signal.Value {
	if !o.Sees(id) {
		return nil
	}
	var list []signal.Value
	relations := vp.Relations(id)
	for i, r := range relations {
		if !o.Sees(r.To) {
			continue
		}
		if o.compiled.config.TypedRelationships {
			list = append(list, r.Value())
		} else if !slices.ContainsFunc(relations[:i], func(p world.Relation) bool { return p.To == r.To }) {
			list = append(list, jsonvalue.Text(r.To))
		}
	}
	if list == nil {
		return nil
	}
	return jsonvalue.Array(list)
}
