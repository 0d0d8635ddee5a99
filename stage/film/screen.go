package film

import (
	"slices"

	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage"
)

// Screen shows the stage of a [replay.Player] to a sink of frames, such as the method
// Frame of one that is attached to running sessions too. The frames belong to the sink.
func Screen(show func(*stage.Frame)) replay.Screen { return &screen{show: show} }

type screen struct {
	show   func(*stage.Frame)
	before *stage.Frame
}

// Show implements [replay.Screen]. Its error is a [*NoStageError].
func (s *screen) Show(fold *projection.Fold, _ replay.Moment) (changed bool, err error) {
	f, err := FrameOf(fold)
	if err != nil {
		return false, err
	}
	changed = s.before == nil || differ(s.before, f)
	kept := *f // the sink may change its frame
	kept.Figures, kept.Beams, kept.Sounds = slices.Clone(f.Figures), slices.Clone(f.Beams), slices.Clone(f.Sounds)
	s.before = &kept
	s.show(f)
	return changed, nil
}

// differ reports whether two frames show different pictures.
func differ(a, b *stage.Frame) bool {
	return a.Scene != b.Scene || !slices.Equal(a.Figures, b.Figures) || !slices.Equal(a.Beams, b.Beams) || !slices.Equal(a.Sounds, b.Sounds)
}
