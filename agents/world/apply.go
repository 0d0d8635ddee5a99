package world

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/signal"
)

// Changes is the write set of one effect. Everything else in the world but the metadata
// is as before.
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
	Before, After Placement
}

// RelationChange is one relation that was added or removed. A new strength is a removal
// and an addition.
type RelationChange struct {
	From string
	Relation
	Added bool
}

// Touched returns the ids of everything that was written, in order, each once:
// of relations both ends.
func (c Changes) Touched() []string {
	if len(c.Entities) == 1 && len(c.Places)+len(c.Relations) == 0 {
		return []string{c.Entities[0].ID} // as most effects do
	}
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

// Paths returns the write set as JSON pointers into [ReadOnly.Value],
// in order, each once: /entities/ID for an entity that was created or
// removed, /entities/ID/FIELD, /spatial_index/ID, /relationships/FROM/TO. Conflicts are
// tested against it.
func (c Changes) Paths() []string {
	var paths []string
	for _, e := range c.Entities {
		at := "/entities/" + jsonpointer.Escape(e.ID)
		if e.Before == nil || e.After == nil {
			paths = append(paths, at)
		}
		for _, f := range e.Fields {
			paths = append(paths, at+"/"+jsonpointer.Escape(f))
		}
	}
	for _, p := range c.Places {
		paths = append(paths, "/spatial_index/"+jsonpointer.Escape(p.ID))
	}
	for _, r := range c.Relations {
		paths = append(paths, "/relationships/"+jsonpointer.Escape(r.From)+"/"+jsonpointer.Escape(r.To))
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Apply applies e and returns its write set. If e cannot be applied, Apply returns the
// error of Plan and changes nothing.
func (w *World) Apply(e Effect) (Changes, error) {
	t, err := w.Plan(e)
	if err != nil {
		return Changes{}, err
	}
	return t.commit(nil), nil
}

// CheckAs returns an error if e cannot be applied to the world as sight shows it, by the
// rules of its kind alone: it does not check the bounds of the world. A handler's error is
// returned only if the handler gives it for the whole world and for sight alike, because
// an error about the whole world could reveal what sight hides.
func (w *World) CheckAs(sight ReadOnly, e Effect) error {
	if err := checkEnvelope(e); err != nil {
		return err
	}
	if plan := planners[e.Kind]; plan != nil {
		_, err := plan(sight, e)
		return err
	}
	h, ok := w.handlers[e.Kind]
	if !ok {
		return nil
	}
	_, err := h.plan(w.ReadOnly, e)
	if err == nil {
		return nil
	}
	if _, same := h.plan(sight, e); same == nil || same.Error() != err.Error() {
		return nil
	}
	return refusedBy(err)
}

func refusedBy(err error) error {
	return &EffectError{Reason: err.Error(), Err: fmt.Errorf("%w: %w", ErrRefused, err)}
}

// Plan computes the write set of e, or returns an [*EffectError] if e cannot be applied.
// The plan is valid until the world changes.
func (w *World) Plan(e Effect) (*Plan, error) {
	t := &Plan{s: w.s, head: head{seq: e.GlobalSeq, time: e.SimTime, kind: strings.Clone(e.Kind)}}
	err := func() error {
		if err := checkEnvelope(e); err != nil {
			return err
		}
		var changes []Change
		var err error
		if plan := planners[e.Kind]; plan != nil {
			changes, err = plan(w.ReadOnly, e)
		} else if h, ok := w.handlers[e.Kind]; ok {
			if changes, err = h.plan(w.ReadOnly, e); err != nil {
				err = refusedBy(err)
			}
		}
		if err == nil && len(changes) > MaxChanges {
			err = limit("", "%d changes by one effect", len(changes))
		}
		t.changes = changes
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
		return malformed("/kind", textKind, MaxID)
	case len(e.SourceID) > MaxID:
		return malformed("/source_id", textSource, MaxID)
	case e.Payload != nil && e.Payload.Kind() != signal.KindObject:
		return malformed("/payload", textWantObject, e.Payload.Kind())
	case len(e.Payload) > MaxPayload:
		return limit("/payload", textPayloadSize, MaxPayload)
	case !jsonvalue.Finite(e.SimTime):
		return malformed("/sim_time", textSimTime)
	}
	return nil
}
