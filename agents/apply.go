package agents

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// Changes is what one effect wrote: nothing else of the world differs from
// before, except its metadata.
type Changes struct {
	Seq       uint64
	Entities  []EntityChange   // in the order of ids
	Places    []PlaceChange    // in the order of ids
	Relations []RelationChange // in the order of From; removals before additions
}

// EntityChange is one entity that was written.
type EntityChange struct {
	ID            string
	Before, After signal.Value // nil: there was, there is, no such entity
	Fields        []string     // that were written, in order; all of them if the entity was put or removed
}

// PlaceChange is one position that was written.
type PlaceChange struct {
	ID            string
	Before, After Position
}

// Position is where something is, if it is anywhere.
type Position struct {
	Point
	Placed bool
}

// RelationChange is one relation that was added or removed; one that got
// another strength was both.
type RelationChange struct {
	From string
	Relation
	Added bool
}

// Touched returns the ids of everything that was written, in order, each once:
// of relations both ends.
func (c Changes) Touched() []string {
	ids := make([]string, 0, len(c.Entities)+len(c.Places)+2*len(c.Relations))
	for _, e := range c.Entities {
		ids = append(ids, e.ID)
	}
	for _, p := range c.Places {
		ids = append(ids, p.ID)
	}
	for _, r := range c.Relations {
		ids = append(ids, r.From, r.To)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Paths returns what was written as JSON pointers into the world's document,
// in order, each once: /entities/ID for an entity that appeared or went,
// /entities/ID/FIELD, /spatial_index/ID, /relationships/FROM/TO. It is the
// write set of a conflict test.
func (c Changes) Paths() []string {
	var paths []string
	for _, e := range c.Entities {
		at := "/entities/" + escape(e.ID)
		if e.Before == nil || e.After == nil {
			paths = append(paths, at)
		}
		for _, f := range e.Fields {
			paths = append(paths, at+"/"+escape(f))
		}
	}
	for _, p := range c.Places {
		paths = append(paths, "/spatial_index/"+escape(p.ID))
	}
	for _, r := range c.Relations {
		paths = append(paths, "/relationships/"+escape(r.From)+"/"+escape(r.To))
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Check says whether e can be applied, as an [*EffectError] if not. After nil,
// Apply of the same effect to the same world does not fail.
func (w *World) Check(e Effect) error {
	_, err := w.plan(e)
	return err
}

// Apply does what e says and returns what was written. If Check would refuse
// e, it returns that error and changes nothing.
func (w *World) Apply(e Effect) (Changes, error) {
	t, err := w.plan(e)
	if err != nil {
		return Changes{}, err
	}
	return t.commit(nil), nil
}

// plan works out what e would write.
func (w *World) plan(e Effect) (*transaction, error) {
	t := &transaction{s: w.s, head: head{seq: e.GlobalSeq, time: e.SimTime, kind: strings.Clone(e.Kind)}}
	err := func() error {
		if err := checkEnvelope(e); err != nil {
			return err
		}
		var changes []Change
		var err error
		if plan := planners[e.Kind]; plan != nil {
			changes, err = plan(w.Reader, e)
		} else if h, ok := w.handlers[e.Kind]; ok {
			if changes, err = h.plan(w.Reader, e); err != nil {
				err = &EffectError{Reason: err.Error(), Err: fmt.Errorf("%w: %w", ErrRefused, err)}
			}
		}
		if err == nil && len(changes) > MaxChanges {
			err = limit("", "%d changes by one effect", len(changes))
		}
		for i := 0; i < len(changes) && err == nil; i++ {
			err = t.stage(changes[i])
		}
		if err == nil {
			err = t.check()
		}
		return err
	}()
	if err == nil {
		return t, nil
	}
	if effectErr, ok := errors.AsType[*EffectError](err); ok {
		effectErr.Kind = e.Kind
	}
	return nil, err
}

func checkEnvelope(e Effect) error {
	switch {
	case e.Kind == "" || len(e.Kind) > MaxID:
		return malformed("/kind", "want 1 to %d bytes", MaxID)
	case len(e.SourceID) > MaxID:
		return malformed("/source_id", "more than %d bytes", MaxID)
	case e.Payload != nil && e.Payload.Kind() != signal.KindObject:
		return malformed("/payload", "%v, want an object", e.Payload.Kind())
	case len(e.Payload) > MaxPayload:
		return limit("/payload", "more than %d bytes", MaxPayload)
	case !finite(e.SimTime):
		return malformed("/sim_time", "no finite number")
	}
	return nil
}

func malformed(path, format string, args ...any) error {
	return &EffectError{Path: path, Reason: fmt.Sprintf(format, args...), Err: ErrPayload}
}

func limit(path, format string, args ...any) error {
	return &EffectError{Path: path, Reason: fmt.Sprintf(format, args...), Err: ErrLimit}
}

func unknown(path, id string) error {
	return &EffectError{Path: path, Reason: fmt.Sprintf("%q", id), Err: ErrUnknownEntity}
}
