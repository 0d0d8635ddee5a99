package replay

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// MarkSource is an optional interface of a [Source] with beats and turns. Without it,
// addresses of beats and turns do not resolve.
type MarkSource interface {
	// Marks yields the marks of the session in order, up to its Head. After an error
	// the sequence ends. Its memory is bounded by the size of the script.
	Marks(ctx context.Context) iter.Seq2[Mark, error]
}

// Mark is an entry that addresses can name by its event. One of the fields beside Seq
// names the event.
type Mark struct {
	Seq    eventlog.Seq
	Turn   uint64   // this turn was opened, from 1
	Landed string   // this beat landed
	Beats  []string // these are the beats that can land from here on
}

// findMark returns the entry that an address of a beat or a turn names.
func (r *Replay) findMark(ctx context.Context, a Address) (eventlog.Seq, error) {
	script, ok := r.src.(MarkSource)
	if !ok {
		return 0, noAddress(a.text, "%s has no script", r.src.Name())
	}
	if seq, err := r.indexedMark(ctx, script, a); err != nil {
		return 0, fmt.Errorf("replay: look for %s: %w", a.text, err)
	} else if seq > 0 {
		return seq, nil
	}
	s := search{of: a, nth: a.nth}
	if err := s.run(ctx, script); err != nil {
		return 0, fmt.Errorf("replay: look for %s: %w", a.text, err)
	}
	if back := -a.nth; back > 0 && s.found < back {
		return 0, noAddress(a.text, "%s", s.why(r.src.Name()))
	} else if back > 0 {
		// The first pass counted the occurrences, so the wanted one is known now.
		s = search{of: a, nth: s.found - back + 1}
		if err := s.run(ctx, script); err != nil {
			return 0, fmt.Errorf("replay: look for %s: %w", a.text, err)
		}
	}
	if s.seq == 0 {
		return 0, noAddress(a.text, "%s", s.why(r.src.Name()))
	}
	return s.seq, nil
}

// search is one pass over the marks. It keeps a count, not the marks.
type search struct {
	of    Address
	nth   int64        // the wanted occurrence; less than 1 counts all
	seq   eventlog.Seq // the entry found; 0: none
	found int64        // the number of occurrences so far
	beats []string     // of the newest script, for the message
	known bool         // a script has the beat
	turns uint64       // the highest turn that was opened
}

func (s *search) run(ctx context.Context, script MarkSource) error {
	for m, err := range script.Marks(ctx) {
		if err != nil {
			return err
		}
		s.turns = max(s.turns, m.Turn)
		if m.Beats != nil {
			s.beats = m.Beats
			s.known = s.known || slices.Contains(m.Beats, s.of.name)
		}
		if s.of.kind == byBeat && m.Landed != s.of.name || s.of.kind == byTurn && m.Turn != s.of.number {
			continue
		}
		if s.found++; s.found == s.nth {
			s.seq = m.Seq
			return nil
		}
	}
	return ctx.Err()
}

// why explains why the search found no entry.
func (s *search) why(session string) string {
	const most = 12
	switch {
	case s.beats == nil:
		return session + " plays no episode"
	case s.of.kind == byTurn && s.found > 0:
		return fmt.Sprintf("turn %d was opened %s", s.of.number, times(s.found))
	case s.of.kind == byTurn && s.turns == 0:
		return "no turn was opened yet"
	case s.of.kind == byTurn:
		return "the last turn is " + strconv.FormatUint(s.turns, 10)
	case s.found > 0:
		return "it landed " + times(s.found)
	case s.known:
		return "the beat has not landed"
	case len(s.beats) == 0:
		return "the episode has no beats"
	}
	names := s.beats
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "…")
	}
	return "the episode has no such beat; it has " + strings.Join(names, ", ")
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
