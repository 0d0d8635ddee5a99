// Package fork makes of a recorded session another one that never happened: the same
// history up to an entry, a change there, and of what the parent recorded behind it
// whatever is still possible.
//
// [New] plans a [Counterfactual], whose batches ([Counterfactual.Batches]) a log takes as a
// new session. Its first entry carries a label with the name and the Head of the parent
// (see [session.Fork]). Every entry keeps its number, except behind inserted ones: where
// an entry is left out, one stands that says so.
//
// # What is applied again
//
// The changes are those of package replay/variant. What follows the first change is:
//
//   - Signals and declarations, as they were recorded.
//   - Decisions of the world of agents. They are kept as they are until one of them
//     changes. From there on each recorded request is decided again, by the rules and at
//     the time of the recording; the context that it names is the same delivery of the
//     new history. A request that the new state refuses is left out and reported. A
//     refused request is left out too, because a recording does not hold its text.
//   - Answers of models, while the view that they answered is the same (its digest is
//     recorded). The fork stops in front of the first generation with another view.
//   - Events of the director. They are kept as they are until one of them changes, or its
//     rules react otherwise. From there on it is played again with the recorded lines and
//     choices of the user, the recorded responses of the character while it is shown the
//     same scene, and the recorded verdicts while their questions are the same. Other
//     responses and verdicts come from [Models], or the fork stops in front of the first;
//     see [history.Continuation]. The director may then make fewer or more events than
//     recorded: the places of missing ones say so, and the entries behind additional ones
//     get higher numbers.
//
// Nothing is invented: each entry of a fork is a recorded one, one that was given, or the
// decision of this program's rules about a recorded input or the answer of a model that
// was named. A generation of an agent cannot be asked for again, because a log does not
// hold how its program makes a prompt of a view, and an intent of an answer.
//
// # Cost
//
// New folds the world and the director once over the whole session, and Batches once more.
// So a fork that was interrupted is continued at that cost again.
// The memory of decided requests grows with their number; entries are not kept.
//
// docs/glossary.md has the nouns of all packages.
package fork

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
)

// Config says what is forked, and how.
type Config struct {
	// At is the entry of the parent at which the fork begins: no entry in front of it may be
	// set, dropped, swapped or inserted before. 0 is the first changed entry.
	At eventlog.Seq

	Edits variant.Edits

	// World is what the program adds to the agents' world.
	World agents.Options

	Models Models
}

// Models answer where a recording has no answer for a fork. New asks them, one question at
// a time; Batches repeats their answers. With none the fork ends there.
type Models struct {
	// Judge is asked the questions of a director that were not recorded word for word.
	Judge director.Judge
	// Answer returns the character's response in a turn in which it is shown something
	// else than in the recording.
	Answer func(ctx context.Context, turn history.CharacterTurn) (string, error)
}

// Counterfactual is a planned fork. It is immutable, and safe for concurrent use if the
// source of the parent is.
type Counterfactual struct {
	parent  replay.Source
	variant *variant.Variant
	world   agents.Options
	models  Models
	label   session.Fork
	report  Reapplied
	answers []liveAnswer // of the models
	planned bool         // report and answers are complete
}

// Reapplied says what became of the entries behind the first change.
type Reapplied struct {
	Entries int       // of the fork
	Decided int       // requests that were decided again
	Played  int       // inputs of the director that were played again
	Asked   int       // questions to live models
	Left    []LeftOut // the first MaxLeftOut entries that were left out without being asked for
	More    int       // further ones
	Stopped *Stopped  // nil: the fork goes as far as the parent, or as was asked
}

// MaxLeftOut bounds the list of a [Reapplied].
const MaxLeftOut = 1000

// LeftOut is an entry of the parent that could not be applied again.
type LeftOut struct {
	Seq    eventlog.Seq // in the fork
	Parent eventlog.Seq // in the parent
	What   string       // such as `Speak of "ann"`
	Reason string
}

// Stopped says why a fork ends before the parent does.
type Stopped struct {
	Parent eventlog.Seq // the first entry of the parent that the fork does not have
	Reason string
}

func (s *Stopped) Error() string {
	return fmt.Sprintf("the fork stops in front of entry %d of its parent: %s", s.Parent, s.Reason)
}

// New plans the fork of a session. The error wraps [variant.ErrChange] for a change that is
// not possible, among them an effect or an event that cannot happen where it is set; other
// errors are those of reading and of ctx.
func New(ctx context.Context, parent replay.Source, cfg Config) (*Counterfactual, error) {
	if err := checkBegin(cfg.At, &cfg.Edits); err != nil {
		return nil, err
	}
	v, err := variant.New(ctx, parent, cfg.Edits)
	if err != nil {
		return nil, err
	}
	at := cfg.At
	if at == 0 {
		at = min(v.Shared()+1, parent.Head().Seq)
	}
	if at > parent.Head().Seq {
		return nil, fmt.Errorf("%w: there is no entry %d to fork at: the last one is %d", variant.ErrChange, at, parent.Head().Seq)
	}
	c := &Counterfactual{
		parent: parent, variant: v, world: cfg.World, models: cfg.Models,
		label: session.Fork{Parent: parent.Name(), Head: parent.Head(), At: at},
	}
	w := c.walk()
	for _, err := range w.steps(ctx) {
		if err != nil {
			return nil, err
		}
	}
	c.report, c.planned = w.report, true
	c.label.Entries = eventlog.Seq(w.report.Entries)
	return c, nil
}

// checkBegin refuses changes in front of the entry at which a fork begins.
func checkBegin(at eventlog.Seq, e *variant.Edits) error {
	first := eventlog.Seq(math.MaxUint64)
	for seq := range e.Set {
		first = min(first, seq)
	}
	for _, seq := range e.Drop {
		first = min(first, seq)
	}
	for _, seq := range e.Swap {
		first = min(first, seq)
	}
	for i := range e.Insert {
		first = min(first, e.Insert[i].Before)
	}
	if e.Until > 0 && e.Until < at {
		return fmt.Errorf("%w: the fork begins at entry %d and cannot end at %d", variant.ErrChange, at, e.Until)
	}
	if first < at {
		return fmt.Errorf("%w: entry %d is in front of entry %d, at which the fork begins", variant.ErrChange, first, at)
	}
	return nil
}

// Label returns the label of the fork.
func (c *Counterfactual) Label() session.Fork { return c.label }

// Report returns what became of the recorded entries. It must not be changed.
func (c *Counterfactual) Report() Reapplied { return c.report }

// Batches yields the batches of the fork, in the groups in which the parent recorded them
// and with their idempotency keys. The first one expects a session without entries. After
// an error the sequence ends.
func (c *Counterfactual) Batches(ctx context.Context, name string) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		w := c.walk()
		batch := eventlog.Batch{Expect: eventlog.Head{Hash: eventlog.Genesis(name)}}
		left, written := 0, 0
		for s, err := range w.steps(ctx) {
			if err != nil {
				yield(eventlog.Batch{}, err)
				return
			}
			if (left <= 0 || s.batch > 0 || len(batch.Drafts) == eventlog.MaxBatchEntries) && len(batch.Drafts) > 0 {
				if !yield(batch, nil) {
					return
				}
				batch, left = eventlog.Batch{}, 0
			}
			if s.batch > 0 {
				left = s.batch
			}
			if len(batch.Drafts) == 0 {
				batch.Key = s.key
			}
			batch.Drafts = append(batch.Drafts, s.draft)
			left--
			written++
		}
		if written != c.report.Entries {
			yield(eventlog.Batch{}, fmt.Errorf("fork: %w: the second reading of %q has %d entries, the first had %d", eventlog.ErrCorrupt, c.parent.Name(), written, c.report.Entries))
			return
		}
		if len(batch.Drafts) > 0 {
			yield(batch, nil)
		}
	}
}

// step is an entry of the fork.
type step struct {
	draft eventlog.Draft
	key   string
	batch int // see [eventlog.Entry]
}

// errStopped ends a walk that has set report.Stopped.
var errStopped = errors.New("stopped")

// parentEntry reads one entry of the parent.
func (c *Counterfactual) parentEntry(ctx context.Context, seq eventlog.Seq) (eventlog.Entry, error) {
	for e, err := range c.parent.Entries(ctx, seq) {
		if err != nil {
			return e, fmt.Errorf("fork: read entry %d: %w", seq, err)
		}
		return e, nil
	}
	return eventlog.Entry{}, fmt.Errorf("fork: read entry %d: %w", seq, cmp.Or(ctx.Err(), eventlog.ErrCorrupt))
}
