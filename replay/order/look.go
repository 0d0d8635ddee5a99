package order

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/compare"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
)

// look compares both sides at the present moment. It reports false when nothing can become
// different or alike any more.
func (t *trial) look() (more bool, err error) {
	t.stats.Compared++
	now := replay.Moment{Seq: t.folds[0].Head().Seq, Offset: t.folds[0].At() - t.entry}
	if t.swap != nil && t.swap.Picture != nil {
		// The frames are compared first, because making a view takes longer. How they
		// differ was told before.
		if frames := t.frames(); !sameFigures(frames[0], frames[1]) {
			t.swap.Until, t.swap.Healed = now, false
			return true, nil
		}
	}
	apart, remarks := t.apart()
	if t.equal = len(apart) == 0 && !remarks; t.equal {
		if t.swap != nil {
			t.alike(now)
			t.swap.Equal, t.swap.Until = true, now
		}
		return false, nil
	}
	if remarks {
		apart = append(apart, session.ProjectionStage)
	}
	views := [2]map[string]any{viewOf(t.folds[0], apart), viewOf(t.folds[1], apart)}
	exchange(views[1], t.first)
	differs := !reflect.DeepEqual(views[0], views[1])
	// Drawing takes much longer than the view, so a picture is compared only where it can
	// tell more.
	if !differs || t.swap == nil && !t.once || t.swap != nil && t.swap.Picture == nil {
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
		if t.once {
			return false, nil
		}
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
	// The counts of diagnostics alone differ for ever.
	return !remarks || len(apart) > 1, nil
}

// apart returns the projections that differ, the stage without its remarks, and if that
// does not differ, whether the counts of its diagnostics do.
func (t *trial) apart() (names []string, remarks bool) {
	set := t.folds[0].Set()
	for i := range set {
		name := set[i].Name
		if name != session.ProjectionStage {
			if t.differs(t.folds[0].State(name).Append, t.folds[1].State(name).Append) {
				names = append(names, name)
			}
			continue
		}
		ours, theirs := session.StageOf(t.folds[0]), session.StageOf(t.folds[1])
		if t.differs(ours.AppendWithoutRemarks, theirs.AppendWithoutRemarks) {
			names = append(names, name)
		} else {
			remarks = !reflect.DeepEqual(diagnosticCounts(ours), diagnosticCounts(theirs))
		}
	}
	return names, remarks
}

// diagnosticCounts returns the diagnostics of a stage without their lists.
func diagnosticCounts(s *stage.Stage) map[string]any {
	view, _ := s.Member("diagnostics")
	counts, _ := view.(map[string]any)
	return without(counts, "recent", "unresolved")
}

// differs reports whether two functions append different bytes.
func (t *trial) differs(ours, theirs func([]byte) []byte) bool {
	t.buf[0], t.buf[1] = ours(t.buf[0][:0]), theirs(t.buf[1][:0])
	return !bytes.Equal(t.buf[0], t.buf[1])
}

// sameFigures reports whether the figures and beams of two frames are equal.
func sameFigures(a, b *stage.Frame) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.Figures, b.Figures) && slices.Equal(a.Beams, b.Beams)
}

// frames returns the frames of both sides, without sounds; nil without a stage.
func (t *trial) frames() (frames [2]*stage.Frame) {
	for i, f := range t.folds {
		if frames[i] = session.StageOf(f).Frame(); frames[i] != nil {
			frames[i].Sounds = nil
		}
	}
	return frames
}

// pictures reports whether the pictures differ, and keeps the first that do. Sounds are not
// compared.
func (t *trial) pictures(now replay.Moment) (differ bool, err error) {
	frames := t.frames()
	if compare.SameFrame(frames[0], frames[1]) {
		return false, nil
	}
	if t.picture == nil && !t.once {
		if t.picture, err = t.paint.Compare(frames[0], frames[1]); err != nil {
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
				rest["diagnostics"] = diagnosticCounts(session.StageOf(f))
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
