package provenance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

const (
	// maxNodes bounds the nodes of a slice that come from decisions.
	maxNodes = 10_000
	// maxParts bounds the parts of a value whose setters are told apart.
	maxParts = 10_000
	// maxCues bounds the signals of the director that are awaited.
	maxCues = 256
)

// decisionKey names a node of the graph of decisions: an entry, the intent that an effect
// comes from, or a view of an agent.
type decisionKey struct {
	kind  string       // "entry", "intent" or "view"
	seq   eventlog.Seq // of the entry; of an intent that of its effect
	agent string       // of a view
	view  uint64       // its view_seq
}

func entryKey(seq eventlog.Seq) decisionKey { return decisionKey{kind: "entry", seq: seq} }

// decisionLink says that a node depends on another one.
type decisionLink struct {
	to     decisionKey
	reason string
	exact  bool
}

// decisions are the dependencies of the entries that the agents' world and the director
// have recorded, from one pass over a session.
type decisions struct {
	t     *trial
	links map[decisionKey][]decisionLink
	texts map[decisionKey]string // of intents and views
	world worldCauses
	plays directorCauses
}

// link notes a dependency. One on entry 0, which does not exist, is ignored.
func (d *decisions) link(from, to decisionKey, reason string, exact bool) {
	if to == from || to.kind == "entry" && to.seq == 0 {
		return
	}
	l := decisionLink{to, reason, exact}
	if !slices.Contains(d.links[from], l) {
		d.links[from] = append(d.links[from], l)
	}
}

// readDecisions reads the entries of a trial, and notes in set, unless it is nil, which of
// them set the parts of a value.
func readDecisions(ctx context.Context, t *trial, set *setters) (*decisions, error) {
	d := &decisions{
		t: t, links: map[decisionKey][]decisionLink{}, texts: map[decisionKey]string{},
		world: newWorldCauses(), plays: directorCauses{state: &director.State{}, play: newPlay()},
	}
	f := projection.NewFold(slices.DeleteFunc(slices.Clone(t.set), func(p projection.Projection) bool {
		return p.Name != session.ProjectionSession && p.Name != session.ProjectionWorld && p.Name != session.ProjectionDirector
	}), t.genesis)
	var changed session.WorldChange
	session.ObserveWorld(f, func(c session.WorldChange) {
		changed = c
		d.worldEntry(&c)
	})
	if set != nil {
		set.note(f, 0)
	}
	for i := range t.entries {
		e := t.entries[i]
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if set != nil && set.timed() && e.Kind == eventlog.KindEffect {
			f.Advance(e.At)
			set.note(f, 0)
		}
		if err := f.Apply(&e); err != nil {
			return nil, fmt.Errorf("provenance: %w", err)
		}
		d.directorEntry(&e)
		if set != nil && set.concerns(&e, &changed) {
			set.note(f, e.Seq)
		}
	}
	if set != nil && set.timed() {
		f.Advance(t.at)
		set.note(f, 0)
	}
	return d, ctx.Err()
}

// setters notes which entry last set each part of a value.
type setters struct {
	path  StatePath
	parts map[string]setPart
	gone  setPart // the last part that there was and is not any more
}

type setPart struct {
	text string
	by   eventlog.Seq // 0: it is as it was before the first entry
	time bool         // time has changed it since
}

// concerns reports whether an entry can have set the value.
func (s *setters) concerns(e *eventlog.Entry, c *session.WorldChange) bool {
	if s.path.names[0] == session.ProjectionDirector {
		return e.Kind == eventlog.KindBeat || e.Kind == eventlog.KindDefine
	}
	if e.Kind != eventlog.KindEffect {
		return false
	}
	if c.Applied.Effect != nil && len(s.path.names) > 2 && s.path.names[1] == "entities" {
		return slices.Contains(c.Applied.Changes.Touched(), s.path.names[2])
	}
	return true
}

// timed reports whether time alone can change the value, as it ends generations.
func (s *setters) timed() bool {
	return s.path.names[0] == session.ProjectionWorld && (len(s.path.names) == 1 || s.path.names[1] == "agents")
}

// note compares the value with the one that was noted before. By is the entry that was
// applied since, 0 if only time passed.
func (s *setters) note(f *projection.Fold, by eventlog.Seq) {
	now := map[string]string{}
	if v, has := s.path.In(f); has {
		if partsOf("", v, now); len(now) > maxParts {
			now = map[string]string{"": string(text(v, true))}
		}
	}
	set := func(was setPart, text string) setPart {
		if by == 0 {
			return setPart{text, was.by, true}
		}
		return setPart{text, by, false}
	}
	for place, was := range s.parts {
		if _, is := now[place]; !is {
			if gone := set(was, ""); gone.by >= s.gone.by {
				s.gone = gone
			}
			delete(s.parts, place)
		}
	}
	for place, text := range now {
		if was, is := s.parts[place]; !is || was.text != text {
			s.parts[place] = set(was, text)
		}
	}
}

// partsOf adds the parts of a value that have no parts themselves, by their places.
func partsOf(place string, v any, parts map[string]string) {
	if len(parts) > maxParts {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			partsOf(place+"/"+strconv.Quote(name), member, parts)
		}
		if len(v) == 0 {
			parts[place] = "{}"
		}
	case []any:
		for i := range v {
			partsOf(place+"/"+strconv.Itoa(i), v[i], parts)
		}
		if len(v) == 0 {
			parts[place] = "[]"
		}
	default:
		b, err := json.Marshal(v)
		if err != nil {
			b = text(v, true)
		}
		parts[place] = string(b)
	}
}

// all returns the last setting of each part, of each entry one, in order.
func (s *setters) all() []setPart {
	list := []setPart{s.gone}
	for part := range maps.Values(s.parts) {
		list = append(list, part)
	}
	for i := range list {
		list[i].text = ""
	}
	slices.SortFunc(list, func(a, b setPart) int {
		if c := cmp.Compare(a.by, b.by); c != 0 || a.time == b.time {
			return c
		}
		if a.time {
			return 1
		}
		return -1
	})
	list = slices.CompactFunc(list, func(a, b setPart) bool { return a.by == b.by })
	return slices.DeleteFunc(list, func(p setPart) bool { return p.by == 0 })
}

// whyDecided returns the slice of a value of the world or the director.
func whyDecided(ctx context.Context, t *trial, path StatePath, at replay.Moment, end *projection.Fold) (*Slice, error) {
	set := &setters{path: path, parts: map[string]setPart{}}
	d, err := readDecisions(ctx, t, set)
	if err != nil {
		return nil, err
	}
	s := newSlice(path, at, AsRecorded, len(t.signals()))
	s.Value, s.Has = path.In(end)
	root := s.node(DependencyNode{Kind: "value", Text: path.String(), Moment: at})
	var from []eventlog.Seq
	for _, part := range slices.Backward(set.all()) {
		reason := "was set by"
		if part.time {
			reason = "was changed by the time after"
		}
		s.edge(root, s.entry(t, part.by), reason, !part.time)
		from = append(from, part.by)
	}
	s.follow(d, from)
	s.collect(t)
	return s, nil
}

// withDecisions follows the signals of a slice of the stage that the director has made,
// because an episode makes them of its events.
func (s *Slice) withDecisions(ctx context.Context, t *trial) error {
	var cues []eventlog.Seq
	for _, seq := range s.Signals {
		if sig, err := session.SignalOf(&t.entries[seq-1]); err == nil && sig.Source == session.CueSource && sig.ID == session.CueID(seq) {
			cues = append(cues, seq)
		}
	}
	if len(cues) > 0 {
		d, err := readDecisions(ctx, t, nil)
		if err != nil {
			return err
		}
		s.follow(d, cues)
	}
	s.order()
	return nil
}

// follow adds what entries depend on.
func (s *Slice) follow(d *decisions, from []eventlog.Seq) {
	own := map[decisionKey]int{} // the nodes of intents and views
	node := func(k decisionKey) (int, bool) {
		if k.kind == "entry" {
			if n, ok := s.entryNodes[k.seq]; ok || len(s.Nodes) < maxNodes {
				if !ok {
					n = s.entry(d.t, k.seq)
				}
				return n, true
			}
		} else if n, ok := own[k]; ok {
			return n, true
		} else if len(s.Nodes) < maxNodes {
			own[k] = s.node(DependencyNode{Kind: k.kind, Text: d.texts[k], Seq: k.seq, Moment: replay.Moment{Seq: k.seq}})
			return own[k], true
		}
		s.Cut = true
		return 0, false
	}
	var queue []decisionKey
	for _, seq := range from {
		queue = append(queue, entryKey(seq))
	}
	seen := map[decisionKey]bool{}
	views := map[string][]uint64{} // by agent, those in the slice
	for len(queue) > 0 {
		k := queue[0]
		queue = queue[1:]
		if seen[k] {
			continue
		}
		seen[k] = true
		n, ok := node(k)
		if !ok {
			continue
		}
		if k.kind == "view" {
			views[k.agent] = append(views[k.agent], k.view)
			for _, delta := range d.world.deltas[k.agent] {
				if delta.view <= k.view && !seen[entryKey(delta.seq)] {
					queue = append(queue, entryKey(delta.seq))
				}
			}
			continue
		}
		for _, l := range d.links[k] {
			if to, ok := node(l.to); ok {
				s.edge(n, to, l.reason, l.exact)
				queue = append(queue, l.to)
			}
		}
	}
	// A view goes on from the one before it, so that a delta that many views contain is
	// an edge of one of them only.
	for _, agent := range slices.Sorted(maps.Keys(views)) {
		list, low := slices.Sorted(slices.Values(views[agent])), uint64(0)
		for i, view := range list {
			n := own[decisionKey{kind: "view", agent: agent, view: view}]
			for _, delta := range slices.Backward(d.world.deltas[agent]) {
				if delta.view <= view && (i == 0 || delta.view > low) {
					if to, ok := node(entryKey(delta.seq)); ok {
						s.edge(n, to, "shows the outcome of", true)
					}
				}
			}
			if i > 0 {
				s.edge(n, own[decisionKey{kind: "view", agent: agent, view: low}], "goes on from", true)
			}
			low = view
		}
	}
}
