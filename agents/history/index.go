package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/postings"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// viewsVersion changes with what the table of the views and requests holds.
const viewsVersion = 2

// jumpEntries is the number of entries between two of interest from which a pass jumps
// over those between them: it then begins at a snapshot. The tests use fewer.
var jumpEntries eventlog.Seq = snapshot.DefaultInterval

// errNoWorld ends the building of a table for projections without the agents' world.
var errNoWorld = errors.New("sajou: the projections have no world")

// The keys of the table: a delta for an agent has an entity or its relationships, or is a
// whole view; the agent left.
func shownKey(agent, entity string) string { return "shown " + agent + "\x00" + entity }
func wholeKey(agent string) string         { return "whole " + agent }
func leftKey(agent string) string          { return "left " + agent }

// viewsIndex is the table of the entries that changed what the views of agents show of
// each entity, of those about requests, and of the agents' registrations.
func (h *History) viewsIndex(ctx context.Context) (replay.IndexPart, error) {
	zero, err := h.replay.Fold(ctx, 0)
	if err != nil {
		return replay.IndexPart{}, err
	}
	return replay.IndexPart{Name: "views", Version: fmt.Sprint(viewsVersion, session.Rules, zero.Digests()), Fill: h.fillViews}, nil
}

func (h *History) fillViews(ctx context.Context, after eventlog.Seq, b *postings.TableBuilder) error {
	quiet := *h
	quiet.progress = nil // the builder reports it
	q := &pass{History: &quiet}
	var head eventlog.Head
	q.look = func(e *eventlog.Entry) { head = e.Head() }
	core, err := q.worldAfter(ctx, after)
	if err != nil {
		return err
	}
	registered := map[string]bool{}
	return q.fold(ctx, core, after+1, h.replay.Head().Seq, func(_ *agents.Core, s *query.FoldedEntry) (bool, error) {
		addRequests(b, s)
		addRegistration(b, s, registered)
		seq := eventlog.Seq(s.Entry)
		if s.Record.Word == agents.WordLeft {
			b.Add(leftKey(agentID(s.Record)), seq)
		}
		for _, d := range s.Applied.Deliveries {
			for _, op := range d.Delta.Patches {
				if err := addShown(b, d.Agent, op, seq); err != nil {
					return false, err
				}
			}
		}
		return true, b.Done(head)
	})
}

// worldAfter returns the world after an entry, which the caller owns.
func (q *pass) worldAfter(ctx context.Context, seq eventlog.Seq) (*agents.Core, error) {
	if seq == 0 {
		return nil, nil // a fold begins with an empty world
	}
	f, err := q.replay.Fold(ctx, seq)
	if err != nil {
		return nil, err
	}
	if core := session.WorldOf(f); core != nil {
		return core, nil
	}
	return nil, errNoWorld
}

// addShown adds the entities that an operation on a view is about.
func addShown(b *postings.TableBuilder, agent string, op jsondoc.Operation, seq eventlog.Seq) error {
	at, err := jsondoc.ParsePointer(op.Path)
	switch {
	case err != nil:
		return err
	case len(at) > 1:
		b.Add(shownKey(agent, at[1]), seq)
		return nil
	case len(at) == 1:
		for id := range op.Value.Members() {
			b.Add(shownKey(agent, id), seq)
		}
	default:
		for _, part := range op.Value.Members() {
			for id := range part.Members() {
				b.Add(shownKey(agent, id), seq)
			}
		}
	}
	b.Add(wholeKey(agent), seq)
	return nil
}

// candidates returns the entries that can change a path in the view of an agent, in
// order, and the last one of the pass. It returns false if no table says them.
func (q *pass) candidates(ctx context.Context, agent string, path jsondoc.Pointer) (list []eventlog.Seq, ok bool, err error) {
	if len(path) < 2 || path[0] != view.PathEntities[1:] && path[0] != view.PathRelations[1:] {
		return nil, false, nil
	}
	part, table, err := q.viewsTable(ctx)
	if table == nil || err != nil {
		return nil, false, err
	}
	for _, key := range []string{shownKey(agent, path[1]), wholeKey(agent), leftKey(agent)} {
		seqs, err := table.Seqs(key)
		if err != nil {
			q.replay.Discard(part)
			return nil, false, nil //nolint:nilerr // a damaged table is dropped, and the pass answers instead
		}
		if key != shownKey(agent, path[1]) && len(list) > 0 {
			first, _ := slices.BinarySearch(seqs, list[0])
			seqs = seqs[first:] // before, there was nothing that could disappear
		} else if key != shownKey(agent, path[1]) {
			continue
		}
		list = append(list, seqs...)
		slices.Sort(list)
	}
	return q.withTail(list, table), true, nil
}

// viewsTable returns the table of the views, or nil if there is none.
func (q *pass) viewsTable(ctx context.Context) (part replay.IndexPart, table *postings.Table, err error) {
	if q.rules != nil {
		return part, nil, nil //nolint:nilerr // the pass itself reports q.rules
	}
	if part, err = q.viewsIndex(ctx); err == nil {
		table, err = q.replay.Table(ctx, part)
	}
	return part, table, err
}

// withTail returns entries that a table names, in order, with all behind the table and with
// the last one of the pass.
func (q *pass) withTail(list []eventlog.Seq, table *postings.Table) []eventlog.Seq {
	for seq := table.Head().Seq + 1; seq <= q.head.Seq; seq++ {
		list = append(list, seq)
	}
	list = append(list, q.head.Seq)
	slices.Sort(list)
	list = slices.Compact(list)
	n, _ := slices.BinarySearch(list, q.head.Seq)
	return list[:n+1] // the session grows meanwhile
}

// foldAt is fold over the given entries and, where they are near each other, those between
// them. They are in order. Where it leaves entries out, it calls resume, unless that is nil,
// with the world after them.
func (q *pass) foldAt(ctx context.Context, at []eventlog.Seq, resume func(*agents.Core), visit func(*agents.Core, *query.FoldedEntry) (bool, error)) error {
	for more := true; more && len(at) > 0 && at[len(at)-1] > 0; {
		n := 1
		for n < len(at) && at[n]-at[n-1] <= jumpEntries {
			n++
		}
		core, err := q.worldAfter(ctx, at[0]-1)
		if err == nil {
			if core != nil && resume != nil {
				resume(core)
			}
			err = q.fold(ctx, core, at[0], at[n-1], func(c *agents.Core, s *query.FoldedEntry) (bool, error) {
				var err error
				more, err = visit(c, s)
				return more, err
			})
		}
		if err != nil {
			return err
		}
		at = at[n:]
	}
	return nil
}
