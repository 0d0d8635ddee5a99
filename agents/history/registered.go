package history

import (
	"context"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay/postings"
	"github.com/sajou-dev/sajou-go/session"
)

// The keys of the table about registrations: the entry registers an agent; it is the first
// that does so, of those that were added in one pass.
func registeredKey(agent string) string { return "registered " + agent }

const newAgentKey = "new agent"

// addRegistration adds the registration of an agent, if the entry has one.
func addRegistration(b *postings.TableBuilder, s *query.FoldedEntry, before map[string]bool) {
	if s.Record.Word != agents.WordAgent {
		return
	}
	id, seq := agentID(s.Record), eventlog.Seq(s.Entry)
	b.Add(registeredKey(id), seq)
	if !before[id] {
		before[strings.Clone(id)] = true
		b.Add(newAgentKey, seq)
	}
}

// earlyEntries is the number of entries in which agents are looked for without the table.
// Most are registered there. The tests use fewer.
var earlyEntries eventlog.Seq = 4096

// maxKnownAgents is the number of ids that a [NoAgentError] lists.
const maxKnownAgents = 16

// registration looks for the registrations of agents.
type registration struct {
	wanted []string // not found yet
	known  []string // in order, at most maxKnownAgents
	more   bool
}

// add takes in an entry, and returns whether any agent is still wanted.
func (r *registration) add(e *eventlog.Entry) (more bool) {
	if e.Kind != eventlog.KindEffect {
		return true
	}
	record, err := session.WorldRecordOf(e)
	if err != nil || record.Word != agents.WordAgent {
		return true // a record that the world cannot read registers no agent
	}
	id := agentID(record)
	r.wanted = slices.DeleteFunc(r.wanted, func(s string) bool { return s == id })
	if i, ok := slices.BinarySearch(r.known, id); !ok {
		r.known = slices.Insert(r.known, i, strings.Clone(id))
		if len(r.known) > maxKnownAgents {
			r.known, r.more = r.known[:maxKnownAgents], true
		}
	}
	return len(r.wanted) > 0
}

// checkRegistered returns a [*NoAgentError] unless all agents were registered at some time.
// It folds nothing. It reads up to the last of the registrations, which is usually near the
// beginning, and beyond the first entries asks the table.
func (q *pass) checkRegistered(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	r := &registration{wanted: slices.Clone(ids)}
	visit := func(e *eventlog.Entry) (bool, error) { return r.add(e), nil }
	early := min(q.head.Seq, earlyEntries)
	err := q.entries(ctx, 1, early, visit)
	if err == nil && len(r.wanted) > 0 && early < q.head.Seq {
		var from eventlog.Seq
		if from, err = q.tableRegistrations(ctx, r, early); err == nil && len(r.wanted) > 0 {
			err = q.entries(ctx, from+1, q.head.Seq, visit)
		}
	}
	if err != nil || len(r.wanted) == 0 {
		return err
	}
	return &NoAgentError{q.replay.Name(), r.wanted[0], r.known, r.more}
}

// tableRegistrations reads the registrations that the table names, and returns the last entry
// that the table covers. Without a table it returns after.
func (q *pass) tableRegistrations(ctx context.Context, r *registration, after eventlog.Seq) (eventlog.Seq, error) {
	part, table, err := q.viewsTable(ctx)
	if table == nil || err != nil {
		return after, err
	}
	seqs, err := registrationsIn(table, r.wanted, q.head.Seq)
	for _, seq := range seqs {
		if err != nil {
			break
		}
		var e eventlog.Entry
		if e, err = q.replay.Entry(ctx, seq); err == nil {
			r.add(&e)
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			q.replay.Discard(part)
		}
		return after, ctx.Err() // a damaged table is dropped, and the pass answers instead
	}
	return max(after, min(table.Head().Seq, q.head.Seq)), nil
}

// registrationsIn returns the entries up to one that a table names as registrations of some
// agents, and if one of these has none, the first of each agent.
func registrationsIn(table *postings.Table, wanted []string, upTo eventlog.Seq) (list []eventlog.Seq, err error) {
	missing := false
	for _, id := range wanted {
		seqs, err := table.Last(registeredKey(id), upTo, maxKnownAgents)
		if err != nil {
			return nil, err
		}
		missing = missing || len(seqs) == 0
		list = append(list, seqs...)
	}
	if !missing {
		return list, nil
	}
	all, err := table.Seqs(newAgentKey)
	n, _ := slices.BinarySearch(all, upTo+1)
	return append(list, all[:n]...), err
}
