package answer

import (
	"maps"
	"slices"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/provenance"
)

// SetterView is an event that set a value.
type SetterView struct {
	Kind         string         `json:"kind"`
	Entry        uint64         `json:"entry,omitempty"`
	Performance  string         `json:"performance,omitempty"`
	Choreography string         `json:"choreography,omitempty"`
	Step         string         `json:"step,omitempty"`
	Action       string         `json:"action,omitempty"`
	Entity       string         `json:"entity,omitempty"`
	Params       map[string]any `json:"params,omitempty"`
	Candidates   []SetterView   `json:"candidates,omitempty"`
}

// ViewSetter returns the view of an event.
func ViewSetter(o *provenance.Setter) SetterView {
	v := SetterView{
		Kind: string(o.Kind), Entry: uint64(o.Entry), Performance: o.Performance, Choreography: o.Definition,
		Step: o.Step, Action: o.Action, Entity: o.Entity, Params: maps.Clone(o.Params),
	}
	for i := range o.Candidates {
		v.Candidates = append(v.Candidates, ViewSetter(&o.Candidates[i]))
	}
	return v
}

// SettingView is a setting for JSON.
type SettingView struct {
	MomentView
	At     float64    `json:"at"`
	Old    any        `json:"old"`
	Had    bool       `json:"existed"`
	New    any        `json:"new"`
	Has    bool       `json:"exists"`
	Setter SetterView `json:"by"`
}

// ViewSetting returns the view of a setting.
func ViewSetting(s *provenance.Setting) SettingView {
	return SettingView{ViewMoment(s.Moment), projection.Millis(s.At), s.Old, s.Had, s.New, s.Has, ViewSetter(&s.Setter)}
}

// NodeView is a value, or something that it depends on.
type NodeView struct {
	Kind   string     `json:"kind"`
	Text   string     `json:"text"`
	Seq    uint64     `json:"seq,omitempty"`
	Moment MomentView `json:"moment"`
}

// EdgeView says that one node depends on another; both are indexes from 0.
type EdgeView struct {
	From   int    `json:"from"`
	To     int    `json:"to"`
	Reason string `json:"reason"`
	Exact  bool   `json:"exact"`
}

// BlamedView is the answer to the question what set a value last.
type BlamedView struct {
	Path    string      `json:"path"`
	Moment  MomentView  `json:"moment"`
	Value   any         `json:"value"`
	Exists  bool        `json:"exists"`
	Moving  bool        `json:"moving"`
	Setting SettingView `json:"setting"`
}

// ViewBlamed returns the view of an answer of [provenance.Blame].
func ViewBlamed(b *provenance.Blamed) BlamedView {
	return BlamedView{b.Path.String(), ViewMoment(b.Moment), b.Value, b.Has, b.Moving, ViewSetting(&b.Setting)}
}

// SliceView is the causal slice of a value.
type SliceView struct {
	Path      string         `json:"path"`
	Moment    MomentView     `json:"moment"`
	Value     any            `json:"value"`
	Exists    bool           `json:"exists"`
	Nodes     []NodeView     `json:"nodes"`
	Edges     []EdgeView     `json:"edges"`
	Signals   []eventlog.Seq `json:"signals"`
	Of        int            `json:"of"`
	Entries   []eventlog.Seq `json:"entries"` // all of the slice
	Precision string         `json:"precision"`
	Cut       bool           `json:"cut,omitempty"` // the graph has more nodes than it can have
}

// ViewSlice returns the view of an answer of [provenance.Why].
func ViewSlice(s *provenance.Slice) SliceView {
	v := SliceView{
		Path: s.Path.String(), Moment: ViewMoment(s.Moment), Value: s.Value, Exists: s.Has, Nodes: []NodeView{}, Edges: []EdgeView{},
		Signals: append([]eventlog.Seq{}, s.Signals...), Of: s.Of, Entries: append([]eventlog.Seq{}, s.Entries...), Precision: s.Precision.String(), Cut: s.Cut,
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		v.Nodes = append(v.Nodes, NodeView{n.Kind, n.Text, uint64(n.Seq), ViewMoment(n.Moment)})
	}
	for _, e := range s.Edges {
		v.Edges = append(v.Edges, EdgeView(e))
	}
	return v
}

// MinimalView is a set of signals of which none can be left out.
type MinimalView struct {
	Moment  MomentView     `json:"moment"`
	Signals []eventlog.Seq `json:"signals"`
	Of      int            `json:"of"`
	Runs    int            `json:"replays"`
	Files   []string       `json:"files,omitempty"` // that were written
}

// ViewMinimal returns the view of an answer of [provenance.Minimize].
func ViewMinimal(m *provenance.Minimal) MinimalView {
	v := MinimalView{ViewMoment(m.Moment), slices.Clone(m.Signals), m.Of, m.Runs, nil}
	if v.Signals == nil {
		v.Signals = []eventlog.Seq{}
	}
	return v
}
