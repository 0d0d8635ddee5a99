package history

import (
	"context"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// ViewStep is the number of view_seqs that have one key of the index.
const ViewStep = viewStep

// Jumps sets the distance between two entries from which a pass jumps, and returns the
// function that sets it back.
func Jumps(entries eventlog.Seq) func() {
	before := jumpEntries
	jumpEntries = entries
	return func() { jumpEntries = before }
}

// Early sets the number of entries in which agents are looked for without the table, and
// returns the function that sets it back.
func Early(entries eventlog.Seq) func() {
	before := earlyEntries
	earlyEntries = entries
	return func() { earlyEntries = before }
}

// RequestCandidates returns the entries that the index names for a request.
func (h *History) RequestCandidates(ctx context.Context, agent, reqID string) ([]eventlog.Seq, bool, error) {
	q := &pass{History: h, head: h.replay.Head()}
	return q.requestCandidates(ctx, agent, reqID)
}

// PathCandidates returns the entries that the index names for a path of a view.
func (h *History) PathCandidates(ctx context.Context, agent string, path jsondoc.Pointer) ([]eventlog.Seq, bool, error) {
	q := &pass{History: h, head: h.replay.Head()}
	return q.candidates(ctx, agent, path)
}

// Registrations returns the entries up to one that the index names as registrations of agents.
func (h *History) Registrations(ctx context.Context, upTo eventlog.Seq, agents ...string) ([]eventlog.Seq, error) {
	q := &pass{History: h, head: h.replay.Head()}
	_, table, err := q.viewsTable(ctx)
	if err != nil || table == nil {
		return nil, err
	}
	return registrationsIn(table, agents, upTo)
}
