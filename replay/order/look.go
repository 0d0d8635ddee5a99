package order

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/compare"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
)

// look compares both sides at the present moment. It reports false when the states are
// equal, so that nothing can differ any more.
func (t *trial) look() (more bool, err error) {
	t.stats.Compared++
	now := replay.Moment{Seq: t.folds[0].Head().Seq, Offset: t.folds[0].At() - t.entry}
	var apart []string // the projections that differ
	ours, theirs := t.folds[0].Digests(), t.folds[1].Digests()
	for i := range ours {
		if ours[i] != theirs[i] {
			apart = append(apart, ours[i].Name)
		}
	}
	if t.equal = len(apart) == 0; t.equal {
		if t.swap != nil {
			t.alike(now)
			t.swap.Equal, t.swap.Until = true, now
		}
		return false, nil
	}
	views := [2]map[string]any{viewOf(t.folds[0], apart), viewOf(t.folds[1], apart)}
	exchange(views[1], t.first)
	differs := !reflect.DeepEqual(views[0], views[1])
	// Drawing takes much longer than the view, so a picture is compared only where it can
	// tell more.
	if !differs || t.swap == nil || t.swap.Picture == nil {
		seen, err := t.pictures(now)
		if err != nil {
			return false, err
		}
		differs = differs || seen
	}
	switch {
	case t.swap == nil && !differs:
		return true, nil
	case t.swap == nil:
		t.swap = &Swap{Seq: t.first, First: now, Picture: t.picture, Pictured: t.pictured}
		if t.swap.Patch, err = replay.Diff(views[0], views[1]); err != nil {
			return false, err
		}
	case t.swap.Picture == nil:
		t.swap.Picture, t.swap.Pictured = t.picture, t.pictured
	}
	t.swap.Until = now
	if differs {
		t.swap.Healed = false
	} else {
		t.alike(now)
	}
	return true, nil
}

// pictures reports whether the pictures differ, and keeps the first that do. Sounds are not
// compared.
func (t *trial) pictures(now replay.Moment) (differ bool, err error) {
	var frames [2]*stage.Frame
	for i, f := range t.folds {
		if frames[i] = session.StageOf(f).Frame(); frames[i] != nil {
			frames[i].Sounds = nil
		}
	}
	if compare.SameFrame(frames[0], frames[1]) {
		return false, nil
	}
	if t.picture == nil {
		if t.picture, err = compare.Frames(frames[0], frames[1]); err != nil {
			return false, fmt.Errorf("order: %w", err)
		}
		t.pictured = now
	}
	return true, nil
}

// alike notes that nothing is seen to differ from now on.
func (t *trial) alike(now replay.Moment) {
	if !t.swap.Healed {
		t.swap.Healed, t.swap.Heals = true, now
	}
}

// viewOf returns the views of some projections, without the members that are not compared.
// The caller must not change them, because the projections own parts of them.
func viewOf(f *projection.Fold, names []string) map[string]any {
	all := map[string]any{}
	for _, name := range names {
		view := f.State(name).View()
		if members, ok := view.(map[string]any); ok {
			switch name {
			case session.ProjectionSession:
				view = without(members, "origin")
			case session.ProjectionStage:
				rest := without(members, "sounds")
				if remarks, ok := rest["diagnostics"].(map[string]any); ok {
					rest["diagnostics"] = without(remarks, "recent", "unresolved")
				}
				view = rest
			}
		}
		all[name] = view
	}
	return all
}

// without returns a copy of an object without some members.
func without(object map[string]any, names ...string) map[string]any {
	rest := maps.Clone(object)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}

// exchange exchanges the numbers of an entry and the one behind it in a view of
// performances: in their ids, which are p-ENTRY-NUMBER, and in the numbers of their
// signals.
func exchange(view map[string]any, first eventlog.Seq) {
	all, ok := view[session.ProjectionPerformances].(map[string]any)
	if !ok {
		return
	}
	a, b := int64(first), int64(first)+1
	names := strings.NewReplacer(fmt.Sprintf("p-%d-", a), fmt.Sprintf("p-%d-", b), fmt.Sprintf("p-%d-", b), fmt.Sprintf("p-%d-", a))
	numbers := map[int64]int64{a: b, b: a}
	renamed := make(map[string]any, len(all))
	for id, one := range all {
		if members, ok := one.(map[string]any); ok {
			if n, ok := members["signal"].(int64); ok && numbers[n] != 0 {
				changed := maps.Clone(members)
				changed["signal"] = numbers[n]
				one = changed
			}
		}
		renamed[names.Replace(id)] = one
	}
	view[session.ProjectionPerformances] = renamed
}
