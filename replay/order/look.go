package order

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
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
	views := [2]map[string]any{}
	for i, f := range t.folds {
		if views[i], err = viewOf(f, apart); err != nil {
			return false, err
		}
	}
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

// viewOf returns the views of some projections as JSON has them, without the lists that are
// no part of a comparison.
func viewOf(f *projection.Fold, names []string) (map[string]any, error) {
	all := map[string]any{}
	for _, name := range names {
		text, err := json.Marshal(f.State(name).View())
		if err != nil {
			return nil, fmt.Errorf("order: the view of %s: %w", name, err)
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var view any
		if err := d.Decode(&view); err != nil {
			return nil, fmt.Errorf("order: the view of %s: %w", name, err)
		}
		if members, ok := view.(map[string]any); ok {
			omit(members, name)
		}
		all[name] = view
	}
	return all, nil
}

// omit removes what is no part of a comparison from the view of a projection.
func omit(view map[string]any, name string) {
	switch name {
	case session.ProjectionSession:
		delete(view, "origin")
	case session.ProjectionStage:
		delete(view, "sounds")
		if remarks, ok := view["diagnostics"].(map[string]any); ok {
			delete(remarks, "recent")
			delete(remarks, "unresolved")
		}
	}
}

// exchange exchanges the numbers of an entry and the one behind it in a view of
// performances: in their ids, which are p-ENTRY-NUMBER, and in the numbers of their
// signals.
func exchange(view map[string]any, first eventlog.Seq) {
	all, ok := view[session.ProjectionPerformances].(map[string]any)
	if !ok {
		return
	}
	a, b := strconv.FormatUint(uint64(first), 10), strconv.FormatUint(uint64(first)+1, 10)
	other := map[string]string{a: b, b: a}
	renamed := make(map[string]any, len(all))
	for id, one := range all {
		parts := strings.Split(id, "-")
		if len(parts) == 3 {
			if to, ok := other[parts[1]]; ok {
				id = parts[0] + "-" + to + "-" + parts[2]
			}
		}
		if members, ok := one.(map[string]any); ok {
			if n, ok := members["signal"].(json.Number); ok && other[n.String()] != "" {
				members["signal"] = json.Number(other[n.String()])
			}
		}
		renamed[id] = one
	}
	view[session.ProjectionPerformances] = renamed
}
