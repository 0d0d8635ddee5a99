package provenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrNoSlice says that a value is of a projection whose causes are not followed.
var ErrNoSlice = errors.New("provenance: not a value of the stage, the world or the director")

// Precision says how the signals of a [Slice] were found.
type Precision uint8

// The precisions, from the finest.
const (
	// FromEdges: the edges of the graph name every signal.
	FromEdges Precision = iota
	// WithPerformances: and so do the interruptions and the takeovers of all performances
	// of these signals.
	WithPerformances
	// AllSignals: a replay with fewer signals gave another value, so all count.
	AllSignals
	// AsRecorded: the slice is of a value of the world or the director, and follows what
	// their entries record. No replay checks it, because a decision that is an entry does
	// not change when others are left out.
	AsRecorded
)

// String returns "edges", "performances", "all" or "recorded".
func (p Precision) String() string { return [...]string{"edges", "performances", "all", "recorded"}[p] }

// DependencyNode is a value, or something that it depends on.
type DependencyNode struct {
	Kind string // "value", "act", "performance", "entry", "intent" or "view"
	Text string
	// Seq is that of an entry, of an act and a performance that of their signal, of an
	// intent that of its effect, and of a view 0.
	Seq    eventlog.Seq
	Moment replay.Moment
}

// Dependency is an edge: From depends on To.
type Dependency struct {
	From, To int // indexes of nodes
	Reason   string
	// Exact reports that the fold took the value from there; otherwise From may depend on it.
	Exact bool
}

// Slice is the causal slice of a value: the graph of what it depends on. Node 0 is the
// value.
type Slice struct {
	Path   StatePath
	Moment replay.Moment
	Value  any
	Has    bool
	Nodes  []DependencyNode
	Edges  []Dependency // ordered by From

	// Signals are the numbers of the signals of the slice. Of a value of the stage, a replay
	// with these signals alone, and all other entries, gives the same value; that was
	// checked, unless Precision is AllSignals. Signals behind a decision of the director
	// are nodes only.
	Signals   []eventlog.Seq
	Of        int            // the number of signals up to the moment
	Entries   []eventlog.Seq // all entries of the slice, in order
	Precision Precision
	Cut       bool // the graph has more decisions than a slice can have

	// What is in the graph already. A slice can have as many nodes as the session has
	// signals, so a search through the lists would be quadratic.
	known      map[Dependency]bool
	entryNodes map[eventlog.Seq]int
}

// Why returns the causal slice of a value of the stage, the world or the director at a
// moment. The signals of a value of the stage are checked by a replay: if the edges do not
// suffice, further signals are added, as Precision says. The error is [ErrNoSlice] for a
// path of another projection, and [ErrNever] for a value that the state never had up to the
// moment.
func Why(ctx context.Context, r *replay.Replay, path StatePath, at replay.Moment) (*Slice, error) {
	switch path.names[0] {
	case session.ProjectionStage, session.ProjectionWorld, session.ProjectionDirector:
	default:
		return nil, fmt.Errorf("%w: %v; blame names the entry that has set it", ErrNoSlice, path)
	}
	end, err := r.At(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := path.existed(ctx, r, end, at); err != nil {
		return nil, err
	}
	t, err := newTrial(ctx, r, at)
	if err != nil {
		return nil, err
	}
	if path.names[0] != session.ProjectionStage {
		return whyDecided(ctx, t, path, at, end)
	}
	s, err := whyStaged(ctx, r, t, path, at, end)
	if err != nil {
		return nil, err
	}
	return s, s.withDecisions(ctx, t)
}

// whyStaged returns the slice of a value of the stage up to its signals.
func whyStaged(ctx context.Context, r *replay.Replay, t *trial, path StatePath, at replay.Moment, end *projection.Fold) (*Slice, error) {
	same, err := Same(ctx, r, path, at)
	if err != nil {
		return nil, err
	}
	st, all := session.StageOf(end), t.signals()
	var wanted []cell
	if id, member, ok := path.entity(); ok {
		wanted = []cell{{id, groupOf(member)}}
	} else {
		for _, id := range entityIDs(st) {
			wanted = append(wanted, cell{id, everything})
		}
		wanted = append(wanted, cell{"", home})
	}
	for precision := FromEdges; ; precision++ {
		s := newSlice(path, at, precision, len(all))
		s.Value, s.Has = path.In(end)
		if precision < AllSignals {
			if err := s.resolve(ctx, r, t, wanted); err != nil {
				return nil, err
			}
		} else {
			s.node(DependencyNode{Kind: "value", Text: path.String(), Moment: at})
			for _, seq := range all {
				s.edge(0, s.entry(t, seq), "may depend on it", false)
			}
		}
		s.collect(t)
		if precision == AllSignals {
			return s, nil // nothing is left out, so there is nothing to check
		}
		f, err := t.fold(ctx, setOf(s.Signals))
		if err != nil {
			return nil, err
		}
		if ok, err := same(ctx, f); err != nil || ok {
			return s, err
		}
	}
}

func newSlice(path StatePath, at replay.Moment, precision Precision, signals int) *Slice {
	return &Slice{
		Path: path, Moment: at, Precision: precision, Of: signals,
		known: map[Dependency]bool{}, entryNodes: map[eventlog.Seq]int{},
	}
}

func entityIDs(st interface{ Member(string) (any, bool) }) []string {
	list, _ := st.Member("entities")
	return list.(members).Names()
}

// collect fills Signals from the nodes.
func (s *Slice) collect(t *trial) {
	seen := map[eventlog.Seq]bool{}
	for _, n := range s.Nodes {
		if n.Seq > 0 && t.entries[n.Seq-1].Kind == eventlog.KindSignal {
			seen[n.Seq] = true
		}
	}
	s.Signals = slices.Sorted(maps.Keys(seen))
	s.order()
}

// order orders the edges by their first node, and fills Entries.
func (s *Slice) order() {
	slices.SortStableFunc(s.Edges, func(a, b Dependency) int { return a.From - b.From })
	s.Entries = slices.Sorted(maps.Keys(s.entryNodes))
}

func (s *Slice) node(n DependencyNode) int {
	s.Nodes = append(s.Nodes, n)
	return len(s.Nodes) - 1
}

func (s *Slice) edge(from, to int, reason string, exact bool) {
	e := Dependency{from, to, reason, exact}
	if from != to && !s.known[e] {
		s.known[e] = true
		s.Edges = append(s.Edges, e)
	}
}

// entry returns the node of an entry.
func (s *Slice) entry(t *trial, seq eventlog.Seq) int {
	if n, ok := s.entryNodes[seq]; ok {
		return n
	}
	e := &t.entries[seq-1]
	text := fmt.Sprintf("entry %d", seq)
	if sig, err := session.SignalOf(e); err == nil {
		text += ", " + sig.Type
	} else if word, v, err := session.WordOf(e); err == nil {
		text += ", " + wordText(e.Kind, word, v)
	}
	n := s.node(DependencyNode{Kind: "entry", Text: text, Seq: seq, Moment: replay.Moment{Seq: seq}})
	s.entryNodes[seq] = n
	return n
}

// wordText names the content of any entry but a signal, as in "beatLanded salary".
func wordText(kind eventlog.Kind, word string, v signal.Value) string {
	members := []string{"id", "name", "title"}
	switch kind {
	case eventlog.KindEffect:
		members = []string{"kind", "source_id", "agent_id", "req_id"}
	case eventlog.KindBeat:
		members = []string{"beat", "choice_point", "choice", "flag", "objective", "prop", "episode", "verdict", "role"}
	default:
	}
	text, found := word, false
	for _, member := range members {
		if name := v.TextOf(member); name != "" && !(found && kind == eventlog.KindDefine) {
			text += " " + name
			found = true
		}
	}
	if turn := v.IntOf("turn"); turn > 0 && kind == eventlog.KindBeat {
		text += fmt.Sprintf(", turn %d", turn)
	}
	return text
}

// performance is the key of a performance.
type performance struct {
	seq   uint64
	index uint32
}

func performanceOf(k choreography.ActKey) performance { return performance{k.Seq, k.Index} }

// need is a node that depends on the value that a cell had before.
type need struct {
	node   int
	reason string
	exact  bool
}

// resolver walks back over the events of a session, from the moment of a question, and
// follows what is needed to where it was set.
type resolver struct {
	*Slice
	t     *trial
	wide  bool // with all performances of the signals
	needs map[cell][]need

	performances map[performance]int  // those in the slice, and their nodes
	entries      map[eventlog.Seq]int // the signals in the slice
	completed    map[choreography.ActKey]bool
	interrupted  map[performance]traced
	last         map[cell]traced // the next event in time that set a cell
}

func (s *Slice) resolve(ctx context.Context, r *replay.Replay, t *trial, wanted []cell) error {
	v := &resolver{
		Slice: s, t: t, wide: s.Precision == WithPerformances, needs: map[cell][]need{},
		performances: map[performance]int{}, entries: map[eventlog.Seq]int{}, completed: map[choreography.ActKey]bool{},
		interrupted: map[performance]traced{}, last: map[cell]traced{},
	}
	root := s.node(DependencyNode{Kind: "value", Text: s.Path.String(), Moment: s.Moment})
	for _, c := range wanted {
		v.want(c, need{root, "was set by", true})
	}
	source, err := openStageTable(ctx, r)
	if err != nil {
		return err
	}
	for stretch, to := eventlog.Seq(firstStretch), s.Moment; ; stretch *= 2 {
		events, from, err := source.before(ctx, to, stretch)
		if err != nil {
			return err
		}
		for i := range slices.Backward(events) {
			v.event(&events[i])
		}
		if from == 0 || !v.open(from) {
			break
		}
		to = replay.Moment{Seq: from}
	}
	v.definitions()
	return nil
}

// open reports whether an event up to entry from may be part of the slice: something is
// needed, or a signal of the slice is still to be passed.
func (v *resolver) open(from eventlog.Seq) bool {
	if len(v.needs) > 0 {
		return true
	}
	for seq := range v.entries {
		if seq <= from {
			return true
		}
	}
	return false
}

// want notes that a node depends on the value of a cell before.
func (v *resolver) want(c cell, n need) {
	for g := group(1); g <= home; g <<= 1 {
		if one := (cell{c.entity, g}); c.group&g != 0 && !slices.Contains(v.needs[one], n) {
			v.needs[one] = append(v.needs[one], n)
		}
	}
}

// wantSignal adds a signal, whose decisions are part of the slice from then on.
func (v *resolver) wantSignal(seq eventlog.Seq) int {
	n := v.entry(v.t, seq)
	if _, ok := v.entries[seq]; !ok {
		v.entries[seq] = n
	}
	return n
}

// wantPerformance adds a performance with its signal and its interruption.
func (v *resolver) wantPerformance(k choreography.ActKey, definition string) int {
	p := performanceOf(k)
	if n, ok := v.performances[p]; ok {
		if definition != "" && !strings.Contains(v.Nodes[n].Text, " of ") {
			v.Nodes[n].Text += " of " + definition // it was found as the holder of a guard
		}
		return n
	}
	text := "performance " + performanceID(p.seq, p.index)
	if definition != "" {
		text += " of " + definition
	}
	n := v.node(DependencyNode{Kind: "performance", Text: text, Seq: eventlog.Seq(p.seq), Moment: replay.Moment{Seq: eventlog.Seq(p.seq)}})
	v.performances[p] = n
	v.edge(n, v.wantSignal(eventlog.Seq(p.seq)), "was begun by", true)
	if by, ok := v.interrupted[p]; ok {
		v.edge(n, v.wantSignal(by.by), "was ended by", true)
	}
	return n
}

func (v *resolver) event(e *traced) {
	p := performanceOf(e.key)
	switch e.kind {
	case traceCompleted:
		v.completed[e.key] = true
	case traceInterrupt:
		v.interrupted[p] = *e
	case traceAct, traceSignal:
		v.set(e)
	case traceAsked:
		n, ok := v.performances[p]
		if e.by > 0 {
			n, ok = v.entries[e.by]
		}
		if ok {
			for _, c := range e.reads {
				v.want(c, need{n, "has a condition on a value set by", true})
			}
		}
	case traceBlocked:
		if n, ok := v.entries[e.by]; ok {
			v.edge(n, v.wantPerformance(e.key, ""), "met the guard held by", true)
		}
	case traceHandler:
		if n, ok := v.performances[p]; ok {
			v.edge(n, v.wantSignal(e.by), "handles the end of a performance of", true)
		}
	}
}

// set follows the needs for the cells that an event sets.
func (v *resolver) set(e *traced) {
	var cells []cell
	for _, id := range e.entities {
		for g := group(1); g <= everything; g <<= 1 {
			if e.writes&g != 0 {
				cells = append(cells, cell{id, g})
			}
		}
	}
	free := cell{"", home}
	if e.writes&home != 0 {
		cells = append(cells, free)
	}
	var own []cell
	var taken []need
	for _, c := range cells {
		for _, n := range v.needs[c] {
			if !slices.Contains(taken, n) {
				taken = append(taken, n)
			}
		}
		if c != free && len(v.needs[c]) > 0 { // the free places depend on all that came before
			own = append(own, c)
			delete(v.needs, c)
		}
	}
	wanted := len(taken) > 0
	if v.wide && e.kind == traceAct && v.has(e) {
		wanted = true
		for _, c := range cells {
			if by, ok := v.last[c]; ok && by.key != e.key && c != free {
				v.takenOver(e, &by)
			}
		}
	}
	for _, c := range cells {
		v.last[c] = *e
	}
	if !wanted {
		return
	}
	n := v.setter(e)
	for _, from := range taken {
		v.edge(from.node, n, from.reason, from.exact)
	}
	for _, c := range e.reads {
		v.want(c, need{n, "went by a value set by", c.entity != ""})
	}
	if e.created {
		return
	}
	if e.own || e.until && !v.completed[e.key] {
		for _, c := range own {
			v.want(c, need{n, "began from a value set by", true})
		}
	}
}

// has reports whether the performance of an act, or its signal, is in the slice.
func (v *resolver) has(e *traced) bool {
	_, performs := v.performances[performanceOf(e.key)]
	_, signals := v.entries[eventlog.Seq(e.key.Seq)]
	return performs || signals
}

// takenOver adds the event that took a value from an act of the slice, which would
// have gone on to set it.
func (v *resolver) takenOver(e, by *traced) {
	n := v.wantPerformance(e.key, e.definition)
	if by.kind == traceSignal {
		v.edge(n, v.wantSignal(by.by), "may have been replaced by", false)
	} else {
		v.edge(n, v.wantPerformance(by.key, by.definition), "may have been replaced by", false)
	}
}

// setter returns the node of an event that sets values.
func (v *resolver) setter(e *traced) int {
	if e.kind == traceSignal {
		return v.wantSignal(e.by)
	}
	target := ""
	if len(e.entities) > 0 {
		target = " " + e.entities[0]
	}
	n := v.node(DependencyNode{
		Kind: "act", Text: fmt.Sprintf("step %s of %s: %s%s", e.step, e.definition, e.action, target),
		Seq: eventlog.Seq(e.key.Seq), Moment: e.moment,
	})
	v.edge(n, v.wantPerformance(e.key, e.definition), "is a step of", true)
	return n
}

// definitions adds the declarations in force for the performances, and the scene.
func (v *resolver) definitions() {
	type declared struct {
		seq        eventlog.Seq
		word, name string
	}
	var all []declared
	scene := eventlog.Seq(0)
	for i := range v.t.entries {
		e := &v.t.entries[i]
		if e.Kind != eventlog.KindDefine {
			continue
		}
		word, d, err := session.WordOf(e)
		if err != nil {
			continue // it is not in force
		}
		name := d.TextOf("id")
		if name == "" {
			name = d.TextOf("on")
		}
		all = append(all, declared{e.Seq, word, name})
		if word == session.WordScene {
			scene = e.Seq
		}
	}
	if scene > 0 {
		v.edge(0, v.entry(v.t, scene), "is seen in", true)
	}
	keys := slices.SortedFunc(maps.Keys(v.performances), func(a, b performance) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.index, b.index))
	})
	for _, p := range keys {
		n := v.performances[p]
		for _, d := range slices.Backward(all) {
			switch {
			case uint64(d.seq) >= p.seq:
			case d.word == definition.Word && d.name != "" && strings.HasSuffix(v.Nodes[n].Text, " of "+d.name):
				v.edge(n, v.entry(v.t, d.seq), "performs", true)
			case d.word == "sequence" || d.word == "easing" || d.word == "binding":
				v.edge(n, v.entry(v.t, d.seq), "may use", false)
			}
		}
	}
}
