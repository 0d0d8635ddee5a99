package replay

import (
	"context"
	"fmt"
	"iter"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/postings"
)

// Indexes keeps derived tables of a session. They only save time: without one, a question
// is answered by a pass over the entries. Its methods may be called by several goroutines.
type Indexes interface {
	// Table returns the table of a part up to an entry near the end, built or continued
	// first if needed, or nil if there is none: then the session is short, or the table
	// cannot be kept. The error is that of ctx alone.
	Table(ctx context.Context, part IndexPart) (*postings.Table, error)

	// Discard drops the table of a part that turned out to be wrong.
	Discard(part IndexPart)
}

// IndexPart is one part of what can be asked about a session.
type IndexPart struct {
	Name    string // letters
	Version string // of all that the contents depend on beside the entries

	// Fill adds all about the entries behind one, up to the end of the session.
	Fill func(ctx context.Context, after eventlog.Seq, b *postings.TableBuilder) error
}

// UseIndexes makes r answer from tables where it can; nil for none. It must be called
// before r is used by several goroutines.
func (r *Replay) UseIndexes(ix Indexes) { r.indexes = ix }

// Table returns the table of a part, or nil if there is none; see [Indexes].
func (r *Replay) Table(ctx context.Context, part IndexPart) (*postings.Table, error) {
	if r.indexes == nil || len(r.set.Apart()) > 0 {
		return nil, nil
	}
	return r.indexes.Table(ctx, part)
}

// Discard drops the table of a part that turned out to be wrong.
func (r *Replay) Discard(part IndexPart) {
	if r.indexes != nil {
		r.indexes.Discard(part)
	}
}

// correlationIndex is the table of the entries with each correlation id.
func (r *Replay) correlationIndex(src CorrelationSource) IndexPart {
	return IndexPart{Name: "correlations", Version: "1", Fill: func(ctx context.Context, after eventlog.Seq, b *postings.TableBuilder) error {
		for e, err := range r.src.Entries(ctx, after+1) {
			if err != nil {
				return err
			}
			if id, ok := src.Correlation(&e); ok {
				b.Add(id, e.Seq)
			}
			if err := b.Done(e.Head()); err != nil {
				return err
			}
		}
		return ctx.Err()
	}}
}

// indexedCorrelation is findCorrelation by the table. It returns the nth entry, or 0, and
// the number of all; ok is false if the table does not answer.
func (r *Replay) indexedCorrelation(ctx context.Context, src CorrelationSource, a Address) (found eventlog.Seq, n int64, ok bool, err error) {
	part := r.correlationIndex(src)
	t, err := r.Table(ctx, part)
	if t == nil || err != nil {
		return 0, 0, false, err
	}
	all, err := t.Seqs(a.name)
	if err != nil {
		r.Discard(part)
		return 0, 0, false, nil
	}
	if after := t.Head().Seq; after < r.src.Head().Seq {
		for e, err := range r.src.Entries(ctx, after+1) {
			if err != nil {
				return 0, 0, false, fmt.Errorf("replay: look for %s: %w", a.text, err)
			}
			if id, has := src.Correlation(&e); has && id == a.name {
				all = append(all, e.Seq)
			}
		}
		if err := ctx.Err(); err != nil {
			return 0, 0, false, err
		}
	}
	found = nth(all, a.nth)
	if found > 0 {
		e, err := r.Entry(ctx, found)
		if err != nil {
			return 0, 0, false, err
		}
		if id, has := src.Correlation(&e); !has || id != a.name {
			r.Discard(part)
			return 0, 0, false, nil
		}
	}
	return found, int64(len(all)), true, nil
}

// nth returns the nth of a list, from 1, or from -1 backwards, and 0 if there is none.
func nth(list []eventlog.Seq, n int64) eventlog.Seq {
	if n < 0 {
		n += int64(len(list)) + 1
	}
	if n < 1 || n > int64(len(list)) {
		return 0
	}
	return list[n-1]
}

// ContinuedMarks is an optional interface of a [MarkSource] whose marks can be computed
// from any entry on. Without it, addresses of beats and turns take a pass.
type ContinuedMarks interface {
	// MarksAfter yields the marks behind the entry at which a fold stands, as Marks does.
	// It takes over the fold. It returns nil if the fold does not have the script.
	MarksAfter(ctx context.Context, f *projection.Fold) iter.Seq2[Mark, error]
}

// The keys of the table of marks.
func beatKey(name string) string   { return "beat:" + name }
func turnKey(number uint64) string { return fmt.Sprintf("turn:%d", number) }

// marksAfter yields the marks behind an entry, or returns nil.
func (r *Replay) marksAfter(ctx context.Context, script ContinuedMarks, after eventlog.Seq) (iter.Seq2[Mark, error], error) {
	f, err := r.foldTo(ctx, after, nil, nil)
	if err != nil {
		return nil, err
	}
	return script.MarksAfter(ctx, f), nil
}

// markIndex is the table of the entries at which beats landed and turns were opened.
func (r *Replay) markIndex(script ContinuedMarks) IndexPart {
	return IndexPart{Name: "marks", Version: r.versionOf(), Fill: func(ctx context.Context, after eventlog.Seq, b *postings.TableBuilder) error {
		head := r.src.Head()
		marks, err := r.marksAfter(ctx, script, after)
		if err != nil {
			return err
		}
		if marks == nil {
			return errNoTable
		}
		for m, err := range marks {
			if err != nil {
				return err
			}
			if m.Seq > head.Seq {
				break
			}
			addMark(m, func(key string) { b.Add(key, m.Seq) })
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return b.Done(head)
	}}
}

var errNoTable = fmt.Errorf("replay: the projections do not have what the table needs")

func addMark(m Mark, add func(key string)) {
	if m.Landed != "" {
		add(beatKey(m.Landed))
	}
	if m.Turn > 0 {
		add(turnKey(m.Turn))
	}
}

// versionOf returns the names and versions of the projections.
func (r *Replay) versionOf() string {
	text := ""
	for _, p := range r.set {
		text += fmt.Sprintf("%s/%d ", p.Name, p.Version)
	}
	return text
}

// indexedMark returns the entry that an address of a beat or a turn names by the table,
// or 0 if the table does not answer: a pass then finds the entry, or says why there is
// none.
func (r *Replay) indexedMark(ctx context.Context, script MarkSource, a Address) (eventlog.Seq, error) {
	continued, ok := script.(ContinuedMarks)
	if !ok {
		return 0, nil
	}
	part := r.markIndex(continued)
	t, err := r.Table(ctx, part)
	if t == nil || err != nil {
		return 0, err
	}
	key := beatKey(a.name)
	if a.kind == byTurn {
		key = turnKey(a.number)
	}
	all, err := t.Seqs(key)
	if err != nil {
		r.Discard(part)
		return 0, nil
	}
	last := r.src.Head().Seq
	if t.Head().Seq < last {
		marks, err := r.marksAfter(ctx, continued, t.Head().Seq)
		if err != nil || marks == nil {
			return 0, err
		}
		for m, err := range marks {
			if err != nil {
				return 0, err
			}
			addMark(m, func(of string) {
				if of == key && m.Seq <= last {
					all = append(all, m.Seq)
				}
			})
		}
	}
	found := nth(all, a.nth)
	if found == 0 {
		return 0, nil
	}
	// The entry is read, with the state before it.
	marks, err := r.marksAfter(ctx, continued, found-1)
	if err != nil || marks == nil {
		return 0, err
	}
	right := false
	for m, err := range marks {
		if err != nil {
			return 0, err
		}
		addMark(m, func(of string) { right = right || of == key && m.Seq == found })
		break
	}
	if !right {
		r.Discard(part)
		return 0, nil
	}
	return found, nil
}
