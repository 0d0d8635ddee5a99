// Package graph draws the structure of an episode: its beats along the turns,
// the requirements of each beat, the choice points that a beat opens, and the
// flags that options set. Programs read a [Graph]; [Graph.Text] and
// [Graph.AppendSVG] draw it. The same episode always gives the same bytes.
package graph

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/director/episode"
)

// Graph is the structure of an episode: its nodes and the edges between them.
type Graph struct {
	Episode    string          `json:"episode"`
	Title      string          `json:"title,omitempty"`
	Budget     int             `json:"turn_budget"`
	Turns      int             `json:"turns"` // the last turn that the episode names
	Beats      []BeatNode      `json:"beats"`
	Choices    []ChoiceNode    `json:"choice_points"`
	Objectives []ObjectiveNode `json:"objectives"`
	Flags      []FlagNode      `json:"flags"`
	Edges      []Edge          `json:"edges"`
}

// BeatNode is a beat of a [Graph].
type BeatNode struct {
	ID           string `json:"id"`
	Description  string `json:"description,omitempty"`
	Target       int    `json:"target_turn"`
	Deadline     int    `json:"deadline_turn"`
	Detection    string `json:"detection_type"`
	RequiresBeat string `json:"requires_beat,omitempty"`
	RequiresFlag string `json:"requires_flag,omitempty"`
	ChoicePoint  string `json:"choice_point,omitempty"`
	MaxOverdue   int    `json:"max_overdue_turns,omitempty"`
	OnMiss       string `json:"on_miss,omitempty"`
}

// ChoiceNode is a choice point of a [Graph].
type ChoiceNode struct {
	ID      string       `json:"id"`
	Beat    string       `json:"beat,omitempty"` // the beat that opens it when it lands
	Turn    int          `json:"turn,omitempty"` // the turn that opens it, for a choice point of the episode
	After   string       `json:"after_objective,omitempty"`
	Prompt  string       `json:"prompt,omitempty"`
	Options []OptionNode `json:"choices"`
}

// OptionNode is an option of a [ChoiceNode].
type OptionNode struct {
	ID         string `json:"id"`
	Label      string `json:"label"`
	SetsFlag   string `json:"sets_flag,omitempty"`
	ClearsFlag string `json:"clears_flag,omitempty"`
}

// ObjectiveNode is an objective of a [Graph].
type ObjectiveNode struct {
	ID      string `json:"id"`
	Success string `json:"success_condition,omitempty"`
	Failure string `json:"failure_condition,omitempty"`
	Won     int    `json:"success_turn,omitempty"`
	Lost    int    `json:"failure_turn,omitempty"`
}

// FlagNode is a flag of a [Graph]. The nodes that set, clear and read it are written as
// in [Edge].
type FlagNode struct {
	Name   string   `json:"name"`
	Given  bool     `json:"given,omitempty"` // an earlier episode may have set it
	Set    []string `json:"set_by"`
	Clear  []string `json:"cleared_by,omitempty"`
	ReadBy []string `json:"read_by"`
}

// Edge leads from a node to one that depends on it. A node is "beat:ID",
// "choice:POINT/OPTION", "point:ID", "flag:NAME", "objective:ID",
// "context:INDEX", or "signal:TYPE" and "effect:WORD" for entries of a log.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Kind string `json:"kind"` // "requires_beat", "requires_flag", "opens", "sets", "clears" or "reads"
}

// Of returns the graph of an episode.
func Of(e *episode.Episode) Graph {
	g := Graph{
		Episode: e.ID, Title: e.Title, Budget: e.Budget, Turns: max(e.Budget, 1),
		Beats: []BeatNode{}, Choices: []ChoiceNode{}, Objectives: []ObjectiveNode{}, Flags: []FlagNode{}, Edges: []Edge{},
	}
	flags := map[string]*FlagNode{}
	flag := func(name string) *FlagNode {
		if flags[name] == nil {
			flags[name] = &FlagNode{Name: name, Set: []string{}, ReadBy: []string{}}
		}
		return flags[name]
	}
	edge := func(from, to, kind string) { g.Edges = append(g.Edges, Edge{from, to, kind}) }
	sets := func(node, name string) {
		if name != "" {
			f := flag(name)
			f.Set = append(f.Set, node)
			edge(node, "flag:"+name, "sets")
		}
	}
	clears := func(node, name string) {
		if name != "" {
			f := flag(name)
			f.Clear = append(f.Clear, node)
			edge(node, "flag:"+name, "clears")
		}
	}
	reads := func(node, name, kind string) {
		if name != "" {
			f := flag(name)
			f.ReadBy = append(f.ReadBy, node)
			edge("flag:"+name, node, kind)
		}
	}
	for _, name := range e.Flags {
		flag(name).Given = true
	}
	for i := range e.Beats {
		b := &e.Beats[i]
		node := BeatNode{ID: b.ID, Description: b.Description, Target: b.Target, Deadline: b.Deadline, Detection: b.Detection.String(), RequiresFlag: b.RequiresFlag}
		if b.MaxOverdue > 0 && b.OnMiss != episode.Keep {
			node.MaxOverdue, node.OnMiss = b.MaxOverdue, b.OnMiss.String()
		}
		if b.RequiresBeat >= 0 {
			node.RequiresBeat = e.Beats[b.RequiresBeat].ID
			edge("beat:"+node.RequiresBeat, "beat:"+b.ID, "requires_beat")
		}
		reads("beat:"+b.ID, b.RequiresFlag, "requires_flag")
		if b.Choice >= 0 {
			node.ChoicePoint = e.Choices[b.Choice].ID
			edge("beat:"+b.ID, "point:"+node.ChoicePoint, "opens")
		}
		g.Beats = append(g.Beats, node)
		g.Turns = max(g.Turns, b.Target, b.Deadline)
	}
	for i := range e.Choices {
		p := &e.Choices[i]
		node := ChoiceNode{ID: p.ID, Prompt: p.Prompt, Turn: p.Trigger.Turn, Options: []OptionNode{}}
		switch {
		case p.Beat >= 0:
			node.Beat = e.Beats[p.Beat].ID
		case p.Trigger.Objective >= 0:
			node.After = e.Objectives[p.Trigger.Objective].ID
			edge("objective:"+node.After, "point:"+p.ID, "opens")
		}
		for _, o := range p.Options {
			node.Options = append(node.Options, OptionNode{o.ID, o.Label, o.SetsFlag, o.ClearsFlag})
			at := "choice:" + p.ID + "/" + o.ID
			sets(at, o.SetsFlag)
			clears(at, o.ClearsFlag)
		}
		g.Choices = append(g.Choices, node)
		g.Turns = max(g.Turns, p.Trigger.Turn)
	}
	for i := range e.Objectives {
		o := &e.Objectives[i]
		node := ObjectiveNode{ID: o.ID, Success: condition(&o.Success), Failure: condition(&o.Failure), Won: o.Success.Turn, Lost: o.Failure.Turn}
		at := "objective:" + o.ID
		reads(at, o.Success.Flag, "reads")
		reads(at, o.Failure.Flag, "reads")
		sets(at, o.OnSuccess.SetFlag)
		sets(at, o.OnFailure.SetFlag)
		if o.Failure.Kind == episode.ByBudget && e.Budget > 0 {
			node.Lost = e.Budget + 1
		}
		g.Objectives = append(g.Objectives, node)
		g.Turns = max(g.Turns, node.Won, o.Failure.Turn)
	}
	for i := range e.FlagRules {
		r := &e.FlagRules[i]
		at := r.Kind.String() + ":" + r.Name
		sets(at, r.Set)
		clears(at, r.Clear)
	}
	for i, rule := range e.Contexts {
		reads("context:"+strconv.Itoa(i), rule.Flag, "reads")
	}
	for _, f := range flags {
		g.Flags = append(g.Flags, *f)
	}
	slices.SortFunc(g.Flags, func(a, b FlagNode) int { return strings.Compare(a.Name, b.Name) })
	return g
}

func condition(c *episode.ObjectiveCondition) string {
	switch c.Kind {
	case episode.BySemantic:
		return "semantic:" + c.Criteria
	case episode.ByKeyword:
		return "keyword:" + c.Criteria
	case episode.ByTurn:
		return "turn:" + strconv.Itoa(c.Turn)
	case episode.ByFlag:
		return "flag:" + c.Flag
	case episode.ByBudget:
		return "turn_budget_exceeded"
	default:
		return ""
	}
}
