package agents

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sajou-dev/sajou-go/signal"
)

// Lens is how one agent looks at the world: its policy and the form of what it
// gets. A Lens is immutable and may be shared.
type Lens struct {
	policy Policy
	reach  Reach
	config LensConfig
}

// LensConfig is the form of what an agent gets.
type LensConfig struct {
	// MaxPatchOps bounds the operations of a delta; 0 means [DefaultMaxPatchOps].
	MaxPatchOps int
	// HidePositions leaves out the member position, which otherwise every
	// visible entity with a position has.
	HidePositions bool
	// TypedRelationships shows relations that have a type or a strength as
	// objects; otherwise all are plain ids.
	TypedRelationships bool
	// Remember is how many entities stay in the view, as last seen, when they
	// are no longer visible; 0 means that they are removed. See [Memory].
	Remember int
}

// MaxRemember bounds [LensConfig.Remember].
const MaxRemember = 10_000

// NewLens returns a lens; a nil policy is [Everything].
func NewLens(p Policy, config LensConfig) *Lens {
	if p == nil {
		p = Everything()
	}
	config.Remember = min(max(config.Remember, 0), MaxRemember)
	return &Lens{p, p.Reach(), config}
}

// View is all that an agent has been shown.
type View struct {
	AgentID              string
	ViewSeq              uint64
	VisibleEntities      signal.Value
	VisibleRelationships signal.Value
	ContextDigest        string
}

// Value returns the view as JSON.
func (v View) Value() signal.Value {
	return object{
		{"agent_id", textValue(v.AgentID)},
		{"view_seq", integerValue(v.ViewSeq)},
		{"visible_entities", v.VisibleEntities},
		{"visible_relationships", v.VisibleRelationships},
		{"context_digest", textValue(v.ContextDigest)},
	}.value()
}

// Digest returns what the context digest of the view must be: the hexadecimal
// SHA-256 of the canonical JSON of the view without view_seq and context_digest.
func (v View) Digest() string {
	sum := sha256.Sum256(AppendCanonical(nil, object{
		{"agent_id", textValue(v.AgentID)},
		{"visible_entities", v.VisibleEntities},
		{"visible_relationships", v.VisibleRelationships},
	}.value()))
	return hex.EncodeToString(sum[:])
}

// Observer keeps what one agent has been shown, up to the last delta made for
// it, whether that has been fetched or not.
//
// A delta costs what changed and, when the agent itself moved, who is near. The
// digest is that of the document, over the whole view: the JSON of each entity
// is kept, so that it costs one pass of SHA-256 over what is visible, some
// microseconds for ordinary views. A digest made of digests would be cheaper for views of
// thousands of entities, but only who knows its rule could check it.
type Observer struct {
	agent  string
	lens   *Lens
	seq    uint64
	seen   []*sight // in the order of ids
	ties   []*tie   // in the order of ids
	memory Memory
	digest string
}

// tie is one list of visible relationships.
type tie struct {
	id   string
	list signal.Value
	json []byte
}

// Memory is what an agent remembers of entities that it no longer sees: each
// as it was shown last, with the member last_seen_seq, the number of the effect that
// hid it. It is forgotten when it is seen again, when it is removed before the
// agent's eyes, or when there is no more room: then the longest unseen goes first.
type Memory map[string]uint64

// Memory returns which of the entities in the view are remembered, with the
// number of the effect that hid each.
func (o *Observer) Memory() Memory { return maps.Clone(o.memory) }

// NewObserver returns an observer that has been shown nothing yet.
func NewObserver(agent string, lens *Lens) *Observer {
	o := &Observer{agent: agent, lens: lens, memory: Memory{}}
	o.digest = o.sum()
	return o
}

// Agent returns whose observer it is.
func (o *Observer) Agent() string { return o.agent }

// Lens returns how it looks at the world.
func (o *Observer) Lens() *Lens { return o.lens }

// ViewSeq returns the number of the newest effect that the agent has been
// shown something of.
func (o *Observer) ViewSeq() uint64 { return o.seq }

// Digest returns the context digest of the view.
func (o *Observer) Digest() string { return o.digest }

// Sees reports whether the agent's view has an entity, and shows it as it is now.
func (o *Observer) Sees(id string) bool {
	i, ok := o.find(id)
	return ok && !o.seen[i].gone
}

// Visible returns the ids of all entities in the view, remembered ones too, in order.
func (o *Observer) Visible() []string {
	ids := make([]string, len(o.seen))
	for i, s := range o.seen {
		ids[i] = s.id
	}
	return ids
}

// View returns all that the agent has been shown.
func (o *Observer) View() View {
	entities, relations := o.values()
	return View{o.agent, o.seq, entities, relations, o.digest}
}

func (o *Observer) values() (entities, relations signal.Value) {
	shown := make(object, len(o.seen))
	for i, s := range o.seen {
		shown[i] = member{s.id, s.value()}
	}
	ties := make(object, len(o.ties))
	for i, t := range o.ties {
		ties[i] = member{t.id, t.list}
	}
	return shown.value(), ties.value()
}

// Begin shows the agent the world as it is at seq: the first observation, and
// what starts a client over. The delta replaces the whole view.
func (o *Observer) Begin(w Reader, seq uint64) Delta {
	o.rebuild(newEye(w, o.agent), seq)
	return o.delta(wholeView(o.values()))
}

// rebuild makes the view anew; only what is remembered stays.
func (o *Observer) rebuild(eye *Eye, seq uint64) {
	o.look(eye, o.everything(eye), seq, true, nil)
	o.seq = seq
	o.digest = o.sum()
}

// Update shows the agent what an effect changed. The world is the one after the
// effect, c what [World.Apply] returned. It returns false, and nothing changes,
// if the agent neither sees a change nor observes the effect. A delta for an effect
// that is observed but changes nothing visible has no operations.
//
// An observer must be given every effect for which [Audience.Follow] names it.
func (o *Observer) Update(w Reader, e Effect, c Changes) (Delta, bool) {
	eye := newEye(w, o.agent)
	observed := o.observes(eye, e) // asks what was seen before, too
	ids, fresh := o.concerned(eye, c)
	ops := o.look(eye, ids, c.Seq, fresh, &c)
	if !observed && len(ops) == 0 {
		return Delta{}, false
	}
	o.seq = c.Seq
	if len(ops) > 0 {
		o.digest = o.sum()
	}
	size := 0
	for _, s := range o.seen {
		size += s.size()
	}
	for _, t := range o.ties {
		size += len(t.json)
	}
	if tooMuch(ops, o.lens.config.MaxPatchOps, size) {
		ops = wholeView(o.values())
	}
	return o.delta(ops), true
}

func (o *Observer) delta(ops []Operation) Delta {
	return Delta{o.seq, ops, o.digest, SchemaVersion}
}

// Observes reports whether an effect is one that the agent observes, by the
// world as it is and by what the agent has been shown so far:
//
//   - its own effects always; what is said in private if it is the target, else
//     not; what is said to a team only if it is of the team. The payload's channel says
//     which it is, whatever the kind
//   - else as the policy says, if it is a [Listener] with a say
//   - else if the source is visible; or if a point of the payload (position, to)
//     is in view; or the payload's entity_id or target_id is visible; or both
//     of its from_entity and to_entity (from and to) are.
func (o *Observer) Observes(w Reader, e Effect) bool {
	return o.observes(newEye(w, o.agent), e)
}

func (o *Observer) observes(eye *Eye, e Effect) bool {
	if e.SourceID == o.agent && o.agent != "" {
		return true
	}
	switch hidden, addressed := confidential(eye, e); {
	case hidden:
		return false
	case addressed:
		return hears(o.lens.policy, eye, e) != Unheard
	}
	switch hears(o.lens.policy, eye, e) {
	case Heard:
		return true
	case Unheard:
		return false
	default:
	}
	sees := func(id string) bool {
		return id == o.agent || o.Sees(id) || o.lens.policy.Sees(eye, id)
	}
	if sees(e.SourceID) {
		return true
	}
	for _, name := range []string{"position", "to"} {
		if v, ok := e.Payload.Get(name); ok {
			if at, err := ParsePoint(v); err == nil && covers(o.lens.policy, eye, at) {
				return true
			}
		}
	}
	for _, name := range []string{"entity_id", "target_id"} {
		if id, ok := textMember(e.Payload, name); ok && sees(id) {
			return true
		}
	}
	from, ok1 := textMember(e.Payload, "from_entity", "from")
	to, ok2 := textMember(e.Payload, "to_entity", "to")
	return ok1 && ok2 && sees(from) && sees(to)
}

// concerned returns the ids that must be looked at again after a change, and
// whether what is shown of them may differ though they have not changed.
func (o *Observer) concerned(eye *Eye, c Changes) (ids []string, fresh bool) {
	reach := o.lens.reach
	whole := reach.Opaque || reach.Graph > 0 && len(c.Relations) > 0
	if !reach.Fixed && slices.ContainsFunc(c.Places, func(p PlaceChange) bool { return p.ID == o.agent }) {
		whole = true
	}
	fresh = reach.Opaque
	for _, e := range c.Entities {
		switch {
		case e.ID != o.agent:
		case teamOf(e.Before) != teamOf(e.After):
			whole, fresh = true, true // what a team was told is shown by no policy's leave
		case slices.ContainsFunc(e.Fields, func(f string) bool { return slices.Contains(reach.Fields, f) }):
			whole = true
		}
	}
	if !whole {
		return c.Touched(), fresh
	}
	return o.everything(eye), fresh || reach.Mixed
}

// everything returns the ids of all that can be visible and of all that is in
// the view.
func (o *Observer) everything(eye *Eye) []string {
	ids := make([]string, 0, len(o.seen)+16)
	for _, s := range o.seen {
		ids = append(ids, s.id)
	}
	ids = append(ids, o.agent)
	s := eye.s
	reach := o.lens.reach
	if reach.Everything {
		ids = slices.AppendSeq(ids, maps.Keys(s.entities))
	} else {
		if reach.Radius > 0 {
			ids = slices.AppendSeq(ids, s.places.within(eye.At, reach.Radius))
		}
		if reach.Unplaced {
			ids = slices.AppendSeq(ids, maps.Keys(s.unplaced))
		}
		if reach.Team {
			ids = slices.AppendSeq(ids, maps.Keys(s.teams[eye.Team]))
		}
		if reach.Depth > 0 {
			ids = slices.AppendSeq(ids, maps.Keys(eye.reach([]string{o.agent}, reach.Depth, everyWay)))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (o *Observer) find(id string) (int, bool) {
	return slices.BinarySearchFunc(o.seen, id, func(s *sight, id string) int { return strings.Compare(s.id, id) })
}

// look looks at the ids, which are in order, changes the view and returns the
// patch that makes the same change. fresh says that what is shown of an
// entity is made anew although the entity is unchanged.
func (o *Observer) look(eye *Eye, ids []string, seq uint64, fresh bool, c *Changes) []Operation {
	var ops []Operation
	var turned []string // came into view or left it
	next := make([]*sight, 0, max(len(o.seen)+1, len(ids)))
	rest := o.seen
	for _, id := range ids {
		i, had := slices.BinarySearchFunc(rest, id, func(s *sight, id string) int { return strings.Compare(s.id, id) })
		next = append(next, rest[:i]...)
		rest = rest[i:]
		var old *sight
		if had {
			old, rest = rest[0], rest[1:]
		}
		now := o.sight(eye, id, old, seq, fresh)
		if (old != nil && !old.gone) != (now != nil && !now.gone) {
			turned = append(turned, id)
		}
		if now != nil {
			next = append(next, now)
		}
		if now == nil {
			delete(o.memory, id)
		}
		if c != nil {
			ops = appendSight(ops, id, old, now)
		}
	}
	o.seen = append(next, rest...)
	ops = o.forget(ops)
	return o.relate(eye, ops, turned, c)
}

func appendSight(ops []Operation, id string, old, now *sight) []Operation {
	switch {
	case old == now:
		return ops
	case now == nil:
		return append(ops, Operation{Op: "remove", Path: pathEntities + "/" + escape(id)})
	case old == nil:
		return append(ops, Operation{Op: "add", Path: pathEntities + "/" + escape(id), Value: now.value()})
	default:
		return append(ops, now.since(old)...)
	}
}

// sight returns how an entity is shown now; nil if it is not, and old itself
// if nothing changed.
func (o *Observer) sight(eye *Eye, id string, old *sight, seq uint64, fresh bool) *sight {
	e, exists := eye.s.entities[id]
	if exists && (id == o.agent || o.lens.policy.Sees(eye, id)) {
		delete(o.memory, id)
		if old != nil && !old.gone && !fresh && old.revision == e.revision {
			return old
		}
		return o.show(eye, id, e)
	}
	switch {
	case old == nil:
		return nil
	case old.gone:
		return old
	case !exists || o.lens.config.Remember == 0:
		return nil // gone before its eyes, or from its mind
	}
	o.memory[id] = seq
	return old.remembered(seq)
}

// show returns an entity with the fields that the agent may know. Those who may
// know all of them share it.
func (o *Observer) show(eye *Eye, id string, e *entity) *sight {
	shows := func(name string, m signal.Value) bool {
		return discloses(eye, id, name, m) && o.lens.policy.Shows(eye, id, name)
	}
	at, placed := eye.Position(id)
	whole := !placed || !o.lens.config.HidePositions && o.lens.policy.Shows(eye, id, "position")
	positioned := placed && whole
	for name, m := range e.object.Members() {
		if whole = whole && shows(name, m); !whole {
			break
		}
	}
	if whole {
		return eye.s.whole(id, e)
	}
	shown := make(object, 0, e.object.Len()+1)
	for name, m := range e.object.Members() {
		if shows(name, m) {
			shown = append(shown, member{name, m})
		}
	}
	if positioned {
		shown.set("position", at.Value())
	}
	return newSight(id, shown.sorted(), e.revision)
}

// forget drops what was unseen longest until the rest has room.
func (o *Observer) forget(ops []Operation) []Operation {
	excess := len(o.memory) - o.lens.config.Remember
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
	o.seen = slices.DeleteFunc(o.seen, func(s *sight) bool { return s.gone && dropped(s.id) })
	for _, id := range oldest {
		ops = append(ops, Operation{Op: "remove", Path: pathEntities + "/" + escape(id)})
	}
	return ops
}

// relate brings the visible relationships up to date.
func (o *Observer) relate(eye *Eye, ops []Operation, turned []string, c *Changes) []Operation {
	ids := slices.Clone(turned)
	for _, id := range turned {
		for from := range eye.s.in[id] {
			ids = append(ids, from)
		}
	}
	if c == nil {
		ids = append(ids, o.Visible()...)
		for _, t := range o.ties {
			ids = append(ids, t.id)
		}
	} else {
		for _, r := range c.Relations {
			ids = append(ids, r.From)
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		list := o.list(eye, id)
		i, had := slices.BinarySearchFunc(o.ties, id, func(t *tie, id string) int { return strings.Compare(t.id, id) })
		path := pathRelations + "/" + escape(id)
		switch {
		case list == nil && !had:
		case list == nil:
			o.ties = slices.Delete(o.ties, i, i+1)
			ops = append(ops, Operation{Op: "remove", Path: path})
		case !had:
			o.ties = slices.Insert(o.ties, i, newTie(id, list))
			ops = append(ops, Operation{Op: "add", Path: path, Value: list})
		case !slices.Equal(o.ties[i].list, list):
			o.ties[i] = newTie(id, list)
			ops = append(ops, Operation{Op: "replace", Path: path, Value: list})
		}
	}
	return ops
}

func newTie(id string, list signal.Value) *tie {
	json := append(appendText(nil, id), ':')
	return &tie{strings.Clone(id), list, AppendCanonical(json, list)}
}

// list returns the visible relations from an id, nil if there are none.
func (o *Observer) list(eye *Eye, id string) signal.Value {
	if !o.Sees(id) {
		return nil
	}
	var list []signal.Value
	relations := eye.Relations(id)
	for i, r := range relations {
		if !o.Sees(r.To) {
			continue
		}
		if o.lens.config.TypedRelationships {
			list = append(list, r.Value())
		} else if !slices.ContainsFunc(relations[:i], func(p Relation) bool { return p.To == r.To }) {
			list = append(list, textValue(r.To))
		}
	}
	if list == nil {
		return nil
	}
	return arrayValue(list)
}

// sum returns the digest of the view from the pieces that are kept.
func (o *Observer) sum() string {
	at := buffers.Get().(*[]byte)
	b := append((*at)[:0], `{"agent_id":`...)
	b = appendText(b, o.agent)
	b = append(b, `,"visible_entities":{`...)
	for i, s := range o.seen {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.appendJSON(b)
	}
	b = append(b, `},"visible_relationships":{`...)
	for i, t := range o.ties {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, t.json...)
	}
	sum := sha256.Sum256(append(b, `}}`...))
	if cap(b) <= maxBuffer {
		*at = b
		buffers.Put(at)
	}
	return hex.EncodeToString(sum[:])
}

// Views are put together before they are digested, which is quicker than to
// digest each piece, in memory that is used anew.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxBuffer = 1 << 20
