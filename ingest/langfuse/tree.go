package langfuse

import (
	"cmp"
	"slices"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/spans"
	"github.com/sajou-dev/sajou-go/signal"
)

// tree has the observations of one trace.
type tree struct {
	list     []*observation
	byID     map[string]*observation
	children map[string][]*observation // by start
	flushed  bool                      // the ends are when the exporter sent them: they are all the same
}

func newTree(list []*observation) *tree {
	const few = 3
	t := &tree{list, map[string]*observation{}, map[string][]*observation{}, len(list) >= few}
	for _, o := range list {
		if o.span.Open || o.span.End != list[0].span.End {
			t.flushed = false
		}
		t.byID[o.span.ID] = o
		t.children[o.span.Parent] = append(t.children[o.span.Parent], o)
	}
	for _, siblings := range t.children {
		slices.SortStableFunc(siblings, func(a, b *observation) int { return cmp.Compare(a.span.Start, b.span.Start) })
	}
	return t
}

// join makes one observation of those that a library writes for the start, the success and
// the finish of one call. They stand below one parent.
func (t *tree) join() {
	for _, siblings := range t.children {
		open := map[string][]*observation{} // by name, the oldest first
		for _, o := range siblings {
			switch o.phase {
			case "":
			case "start":
				open[o.base] = append(open[o.base], o)
				o.span.Name = o.base
				for _, p := range prefixes {
					if len(o.base) > len(p.prefix) && o.base[:len(p.prefix)] == p.prefix {
						o.span.Name = o.base[len(p.prefix):]
					}
				}
				o.span.Open = true
			default:
				if len(open[o.base]) == 0 {
					continue
				}
				first := open[o.base][0]
				o.joined = true
				first.span.End, first.span.Open = o.span.Start, false
				first.span.Failed = first.span.Failed || o.span.Failed || o.phase == "error"
				first.span.Message = firstText(first.span.Message, o.span.Message)
				output := o.v.Member("output")
				if k := output.Kind(); k != signal.KindAbsent && k != signal.KindNull {
					first.span.Attributes = spans.Joined(first.attr.Members(), session(first.meta), described(first.v, output), described(o.v, output))
				}
				if o.phase != "success" {
					open[o.base] = open[o.base][1:]
				}
			}
		}
	}
}

// ends finds the ends that the export does not have: that of the first part of a call is known, and
// of others it is the start of the next one.
func (t *tree) ends() {
	for _, siblings := range t.children {
		for i, o := range siblings {
			if !t.flushed && !o.span.Open || o.joined || o.phase == "start" && !o.span.Open {
				continue
			}
			for _, next := range siblings[i+1:] {
				if !next.joined && next.span.Start > o.span.Start {
					o.span.End, o.span.Open = next.span.Start, false
					break
				}
			}
		}
	}
}

// tools finds the spans that are tools by their place: those below the node of a graph that
// runs tools.
func (t *tree) tools() {
	runs := func(o *observation) bool {
		return o != nil && o.v.TextOf("type") == "SPAN" && o.meta.TextOf("langgraph_node") == "tools"
	}
	for _, o := range t.list {
		if above := t.byID[o.span.Parent]; runs(o) && runs(above) && above.span.Name == "tools" {
			o.span.Kind = spans.Tool
		}
	}
}

// root adds the trace itself as a workflow, if it has neither a root nor an agent.
func (t *tree) root(c *spans.Collection, doc recording.NativeRecord, trace signal.Value) error {
	var first, last recording.Instant
	for i, o := range t.list {
		if o.span.Parent == "" || o.span.Kind == spans.Agent {
			return nil
		}
		if i == 0 || o.span.Start < first {
			first = o.span.Start
		}
		last = max(last, o.span.Start, o.span.End)
	}
	id := trace.TextOf("id")
	if len(t.list) == 0 || id == "" {
		return nil
	}
	for _, o := range t.list {
		if t.byID[o.span.Parent] == nil {
			o.span.Parent = id
		}
	}
	rec := recording.NativeRecord{Place: doc.Place, Value: trace}
	rec.Place.Pointer = "/trace"
	return c.Add(spans.TraceSpan{
		Record: rec, Trace: firstText(t.list[0].span.Trace, id), ID: id, Name: firstText(trace.TextOf("name"), "trace"),
		Start: first, End: last, Timed: true, Kind: spans.Workflow, Strong: true,
		Attributes: described(signal.NewObject(1).Add("input", orNull(unquoted(trace.Member("input")))).Value(), unquoted(trace.Member("output"))),
	})
}

func orNull(v signal.Value) signal.Value {
	if v == nil {
		return signal.Null()
	}
	return v
}
