package mcp

import (
	"context"
	"errors"
	"strconv"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/session"
)

type listSessionsArgs struct {
	Cursor string `json:"cursor,omitempty" jsonschema:"the cursor of the answer before"`
}

type listEntriesArgs struct {
	Session      string   `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	Range        string   `json:"range,omitempty" jsonschema:"the entries A..B, both included, such as 30..40 or end-10..; default all"`
	Kinds        []string `json:"kinds,omitempty" jsonschema:"only entries of these kinds: signal, effect, beat, define, session"`
	Types        []string `json:"types,omitempty" jsonschema:"only signals of these types, such as tool_call or error"`
	Correlations []string `json:"correlations,omitempty" jsonschema:"only signals with one of these correlation ids"`
	Where        string   `json:"where,omitempty" jsonschema:"only entries at which this expression (CEL) is true"`
	Cursor       string   `json:"cursor,omitempty" jsonschema:"the cursor of the answer before"`
}

type inspectEntryArgs struct {
	Session string `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	At      string `json:"at" jsonschema:"the address of the entry, such as 36, end, corr:c-7 or perf:p-36-1"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"the cursor of the part before"`
}

type verifyArgs struct {
	Session string `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	Head    string `json:"head,omitempty" jsonschema:"a head SEQ:HASH that was noted before; the chain must contain it"`
}

func logTools() []*tool {
	return []*tool{
		newTool("list_sessions", "List sessions",
			"List the recorded sessions, oldest first: name, number of entries, span of session time in ms, head. Start here. A fork is a session that never happened; it has the member fork.",
			listSessions),
		newTool("list_entries", "List entries",
			"List the entries of a session in full, in order, by range and filter. An entry is a signal (what an agent or program did), a define (a choreography or scene that came into force), an effect (a decision of the agents' world), a beat (of a director) or a session record. A huge entry is replaced by its size; inspect_entry has it.",
			listEntries),
		newTool("inspect_entry", "Inspect an entry",
			"Return one entry in full, with its hash.",
			inspectEntry),
		newTool("verify", "Verify a session",
			"Recompute the hash chain of a session. It names the first entry that was altered, removed, moved or inserted; verified is true if there is none. With head it also proves that nothing was cut off or rewritten since that head was noted.",
			verifySession),
	}
}

func listSessions(ctx context.Context, c *call, args listSessionsArgs) (*reply, error) {
	names, err := c.engine.Sessions()
	if err != nil {
		return nil, err
	}
	first, err := c.number(args.Cursor, 0)
	if err != nil {
		return nil, err
	}
	list := items{c: c}
	n := uint64(0) // of the sessions that the caller may read
	for _, name := range names {
		if !c.rights.MayRead(name) {
			continue
		}
		if n++; n <= first {
			continue
		}
		var view any = map[string]any{"session": name, "damaged": true}
		log, err := c.engine.Log().Session(name)
		if err == nil {
			var bytes uint64
			if bytes, err = c.engine.Log().DiskSize(ctx, name); err == nil {
				view, _, err = viewListed(ctx, log, bytes)
			}
		}
		if err != nil && !errors.Is(err, eventlog.ErrCorrupt) {
			return nil, err
		}
		if ok, err := list.add(view, name); err != nil || !ok {
			return list.reply(strconv.FormatUint(n-1, 10)), err
		}
	}
	return list.reply(""), nil
}

func viewListed(ctx context.Context, log *eventlog.SessionReader, bytes uint64) (any, *session.Fork, error) {
	return answer.ViewListed(ctx, log, bytes)
}

// stretch is the number of entries that a search reads before it looks at the time.
const stretch = 10_000

// stretches calls search for the stretches of a range, in order or backwards. Search
// returns false when the answer is complete. The result is the first Seq that was not
// searched, or backwards the last one, and 0 if all were: the budget of entries is used
// up then, or the time, of which a part is kept so that an answer is sent.
func (c *call) stretches(ctx context.Context, from, to eventlog.Seq, backwards bool, search func(ctx context.Context, from, to eventlog.Seq) (bool, error)) (eventlog.Seq, error) {
	searched, size := 0, eventlog.Seq(min(stretch, c.box.cfg.MaxEntries))
	for from <= to {
		a, b := from, min(to, from+size-1)
		if backwards {
			a, b = from, to
			if to-from >= size {
				a = to - size + 1
			}
		}
		if searched > 0 && (searched+int(b-a)+1 > c.box.cfg.MaxEntries || c.late()) {
			if backwards {
				return to, nil
			}
			return from, nil
		}
		if more, err := search(ctx, a, b); err != nil || !more {
			return 0, err
		}
		searched += int(b-a) + 1
		if backwards {
			to = a - 1
		} else {
			from = b + 1
		}
		if to == 0 {
			break
		}
	}
	return 0, nil
}

// late reports whether three quarters of the time of the call are used up.
func (c *call) late() bool { return c.soft.Err() != nil }

// ended is the note of an answer that ends before its range does.
const ended = "The search was stopped by its budget of entries or time before the end of the range; the cursor continues it."

func listEntries(ctx context.Context, c *call, args listEntriesArgs) (*reply, error) {
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	filter := answer.EntryFilter{Types: args.Types, Corrs: args.Correlations, Where: args.Where}
	for _, name := range args.Kinds {
		kind, err := eventlog.ParseKind(name)
		if err != nil {
			return nil, badArgument(err)
		}
		filter.Kinds = append(filter.Kinds, kind)
	}
	keep, expression, err := filter.Compile()
	if err != nil {
		return nil, err
	}
	if err := s.readFor(expression); err != nil {
		return nil, err
	}
	from, to, err := answer.EntryRange(ctx, s.travel, args.Range)
	if err != nil {
		return nil, err
	}
	first, err := c.number(args.Cursor, uint64(from))
	if err != nil {
		return nil, err
	}
	list, late := items{c: c}, session.NewLateness(s.travel.Entries)
	next := eventlog.Seq(0)
	rest, err := c.stretches(ctx, max(from, eventlog.Seq(first)), to, false, func(ctx context.Context, a, b eventlog.Seq) (bool, error) {
		for hit, err := range s.travel.Scan(ctx, a, b, keep, replay.All) {
			if err != nil {
				return false, err
			}
			line, err := late.AppendEntryJSON(ctx, nil, &hit.Entry)
			if err != nil {
				return false, err
			}
			if ok, err := list.add(verbatim(line), briefEntry(&hit.Entry)); err != nil || !ok {
				next = hit.Entry.Seq
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return list.continued(next, rest), nil
}

// continued returns the list with the cursor of the entry that did not fit, or else of the
// one at which the budget was used up.
func (l *items) continued(next, rest eventlog.Seq) *reply {
	place := ""
	if n := max(next, rest); n > 0 {
		place = strconv.FormatUint(uint64(n), 10)
	}
	r := l.reply(place)
	if rest > 0 {
		r.notes = append(r.notes, ended)
	}
	return r
}

// verbatim is JSON that is marshalled as it is.
type verbatim []byte

func (v verbatim) MarshalJSON() ([]byte, error) { return v, nil }

// briefEntry is what a list tells of an entry that is too large for it.
func briefEntry(e *eventlog.Entry) any {
	return map[string]any{"seq": e.Seq, "kind": e.Kind.String()}
}

func inspectEntry(ctx context.Context, c *call, args inspectEntryArgs) (*reply, error) {
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	m, err := s.moment(ctx, args.At)
	if err != nil {
		return nil, err
	}
	if m.Seq == 0 {
		return nil, refuse(problem.NoMoment, "Entries are numbered from 1.", "0 is the moment before the first entry")
	}
	e, err := s.log.Entry(ctx, m.Seq)
	if err != nil {
		return nil, err
	}
	line, err := session.NewLateness(s.travel.Entries).AppendEntryJSON(ctx, nil, &e)
	if err != nil {
		return nil, err
	}
	return c.whole(verbatim(line), args.Cursor)
}

func verifySession(ctx context.Context, c *call, args verifyArgs) (*reply, error) {
	name, err := c.sessionName(args.Session)
	if err != nil {
		return nil, err
	}
	if !c.rights.MayRead(name) {
		return nil, noSession(name)
	}
	opts := verify.Options{Workers: 1}
	if args.Head != "" {
		if opts.Expect, err = eventlog.ParseHead(args.Head); err != nil {
			return nil, badArgument(err)
		}
	}
	report, err := c.engine.Log().Verify(ctx, name, opts)
	if deleted, ok := errors.AsType[*eventlog.DeletedError](err); ok {
		return c.whole(answer.ViewDeleted(&deleted.Tombstone), "")
	}
	if errors.Is(err, eventlog.ErrNoSession) || errors.Is(err, eventlog.ErrInvalid) {
		return nil, noSession(name)
	}
	if err != nil {
		return nil, err
	}
	view := answer.ViewVerified(&report)
	if log, err := c.engine.Log().Session(name); err == nil {
		if label, err := session.ReadFork(ctx, log); err == nil {
			view.Fork = answer.ViewFork(label, report.Head)
		}
	}
	return c.whole(view, "")
}
