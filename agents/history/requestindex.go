package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay/postings"
	"github.com/sajou-dev/sajou-go/session"
)

// The keys of the table about requests: an entry is about a request or ends a generation
// for it; makes a delta for an agent, with one of viewStep view_seqs; interrupts a stale
// generation of an agent.
func requestKey(agent, reqID string) string { return "request " + agent + "\x00" + reqID }
func deliveredKey(agent string) string      { return "delivered " + agent }
func interruptedKey(agent string) string    { return "interrupted " + agent }
func viewKey(agent string, viewSeq uint64) string {
	return fmt.Sprintf("view %s\x00%d", agent, viewSeq/viewStep)
}

// viewStep view_seqs have one key: postings of one key take less space than those of many.
const viewStep = 16

// addRequests adds what an entry is to requests.
func addRequests(b *postings.TableBuilder, s *query.FoldedEntry) {
	seq := eventlog.Seq(s.Entry)
	if agent, reqID, ok := requestOf(s); ok {
		b.Add(requestKey(agent, reqID), seq)
	}
	s.Cancelled(func(gone agents.Cancellation, end query.GenerationEnd) {
		b.Add(requestKey(gone.Agent, gone.ReqID), seq)
		if end == query.EndStale {
			b.Add(interruptedKey(gone.Agent), seq)
		}
	})
	for _, d := range s.Applied.Deliveries {
		b.Add(deliveredKey(d.Agent), seq)
		b.Add(viewKey(d.Agent, d.Delta.ViewSeq), seq)
	}
}

// requestOf returns the request that a record is about.
func requestOf(s *query.FoldedEntry) (agent, reqID string, ok bool) {
	switch s.Record.Word {
	case agents.WordToken, agents.WordGenerated:
		agent = agentID(s.Record)
		v, _ := s.Record.Value.Get("req_id")
		reqID, _ = v.Text()
		return agent, reqID, true
	}
	agent, reqID, _, ok = agents.FinalOutcomeOf(s.Record)
	return agent, reqID, ok
}

// requestCandidates returns the entries that [query.RequestWatch] needs for a request: those
// about it, the deltas beyond the context of each of its generations until that ends, the
// interruptions of the agent before, and its departures. It returns false if no table says
// them.
func (q *pass) requestCandidates(ctx context.Context, agent, reqID string) (list []eventlog.Seq, ok bool, err error) {
	part, table, err := q.viewsTable(ctx)
	if table == nil || err != nil {
		return nil, false, err
	}
	r := requestIndex{q, table, agent, reqID}
	if list, err = r.candidates(ctx); err != nil {
		if ctx.Err() == nil {
			q.replay.Discard(part)
		}
		return nil, false, ctx.Err() // a damaged table is dropped, and the pass answers instead
	}
	return q.withTail(list, table), true, nil
}

// requestIndex looks for one request in the table.
type requestIndex struct {
	*pass
	table        *postings.Table
	agent, reqID string
}

func (r *requestIndex) candidates(ctx context.Context) ([]eventlog.Seq, error) {
	about, err := r.table.Seqs(requestKey(r.agent, r.reqID))
	if err != nil {
		return nil, err
	}
	list := slices.Clone(about)
	// Behind the table all entries are folded. Those about the request may need earlier
	// ones, and the first stands for all that may end a generation.
	last := min(r.table.Head().Seq, r.head.Seq)
	var tail []eventlog.Seq
	if last < r.head.Seq {
		tail = append(tail, last+1)
	}
	var spans [][2]eventlog.Seq // the first and last entry of what is needed together
	running, from := false, eventlog.Seq(0)
	end := func(at eventlog.Seq) error {
		if !running {
			return nil
		}
		running = false
		deltas, err := r.deltas(from, min(at, last))
		if len(deltas) > 0 {
			list = append(list, deltas...)
			spans = append(spans, [2]eventlog.Seq{deltas[0], at})
		}
		return err
	}
	visit := func(e *eventlog.Entry) error {
		word, token, mine := r.recordOf(e)
		if mine && word == agents.WordGenerated {
			return nil
		}
		if err := end(e.Seq); err != nil || word != agents.WordToken || !mine {
			return err
		}
		var err error
		running = true
		from, err = r.contextEntry(token.ContextSeq, min(e.Seq, last))
		return err
	}
	for _, seq := range about {
		if seq > r.head.Seq {
			break
		}
		e, err := r.replay.Entry(ctx, seq)
		if err == nil {
			err = visit(&e)
		}
		if err != nil {
			return nil, err
		}
	}
	err = r.entries(ctx, last+1, r.head.Seq, func(e *eventlog.Entry) (bool, error) {
		if _, _, mine := r.recordOf(e); mine {
			return true, visit(e)
		}
		return true, nil
	})
	if err == nil {
		err = end(r.head.Seq)
	}
	if err != nil {
		return nil, err
	}
	for _, seq := range slices.Concat(about, tail) {
		before, err := r.interruptions(ctx, min(seq, last))
		if err != nil {
			return nil, err
		}
		if len(before) > 0 {
			list = append(list, before...)
			spans = append(spans, [2]eventlog.Seq{before[0], seq})
		}
	}
	left, err := r.table.Seqs(leftKey(r.agent))
	for _, seq := range left {
		if slices.ContainsFunc(spans, func(s [2]eventlog.Seq) bool { return s[0] <= seq && seq <= s[1] }) {
			list = append(list, seq)
		}
	}
	return list, err
}

// recordOf returns the word of an entry, whether it is a record of the request, and the
// token of one that begins a generation.
func (r *requestIndex) recordOf(e *eventlog.Entry) (word string, token agents.Token, mine bool) {
	if e.Kind != eventlog.KindEffect {
		return "", token, false
	}
	record, err := session.WorldRecordOf(e)
	if err != nil {
		return "", token, false
	}
	agent, reqID, ok := requestOf(&query.FoldedEntry{Record: record})
	if mine = ok && agent == r.agent && reqID == r.reqID; mine && record.Word == agents.WordToken {
		token = agents.ParseToken(record.Value)
	}
	return record.Word, token, mine
}

// contextEntry returns an entry before which the agent got no delta that is later than a
// context. The generation with that context begins at the entry upTo.
func (r *requestIndex) contextEntry(contextSeq uint64, upTo eventlog.Seq) (eventlog.Seq, error) {
	// The view_seqs of an agent never fall, so the deltas of the same key come before those
	// of higher ones.
	list, err := r.table.Seqs(viewKey(r.agent, contextSeq))
	if len(list) == 0 || list[0] > upTo {
		return 0, err
	}
	return list[0], nil
}

// deltas returns the entries from one on with the deltas of the agent that a generation
// needs which ends at the entry upTo. It asks for twice as many, since some entries can be
// wrong.
func (r *requestIndex) deltas(from, upTo eventlog.Seq) ([]eventlog.Seq, error) {
	list, err := r.table.Last(deliveredKey(r.agent), upTo, 2*query.MaxRecalled)
	first, _ := slices.BinarySearch(list, from)
	return list[first:], err
}

// interruptions returns the entries of the last interruptions of the agent up to one: those
// of so many different times that they include all of the last two interruptions.
func (r *requestIndex) interruptions(ctx context.Context, upTo eventlog.Seq) ([]eventlog.Seq, error) {
	const times = 5
	for most := times + 1; ; most *= 4 {
		list, err := r.table.Last(interruptedKey(r.agent), upTo, most)
		if err != nil || len(list) < most {
			return list, err
		}
		different, at := 0, time.Duration(-1)
		for i, seq := range slices.Backward(list) {
			e, err := r.replay.Entry(ctx, seq)
			if err != nil {
				return nil, err
			}
			if e.At != at {
				at, different = e.At, different+1
			}
			if different > times {
				return list[i:], nil
			}
		}
	}
}
