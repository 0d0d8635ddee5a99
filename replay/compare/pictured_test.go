package compare_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay/compare"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

func TestFirstPicture(t *testing.T) {
	near, far := `[`+walks(100, 400, "linear")+`, `+fmt.Sprintf(hears, "bell")+`]`, `[`+walks(160, 400, "linear")+`, `+fmt.Sprintf(hears, "bell")+`]`
	left := played(t, near, "go", 100, "quiet", 1000, "stop", 1500) // entries 4 to 6
	for _, c := range []struct {
		name          string
		right         *enginetest.Tape
		most          int
		left, rightAt string
		differs       bool
		moments       int
		ended         bool
	}{
		{"no difference", left, 99, "0", "0", false, 0, true},
		{ // the walk ends elsewhere, which begins at the same place: entries 2 to 4, and the end of the walk
			"other definition", played(t, far, "go", 100, "quiet", 1000, "stop", 1500), 99, "4+400ms", "4+400ms", true, 4, false,
		},
		{ // the same, half a second later
			"later", played(t, far, "go", 600, "quiet", 1500, "stop", 2000), 99, "4+400ms", "4+400ms", true, 4, false,
		},
		{"only so far", played(t, far, "go", 100, "quiet", 1000, "stop", 1500), 3, "4", "4", false, 3, false},
		{ // nothing answers either; the bell comes later, and its note is as old in both
			"another signal", played(t, near, "go", 100, "hush", 1000, "stop", 1600), 99, "6+600ms", "6+600ms", false, 3, true,
		},
		{ // the bell is heard in one recording alone
			"one less", played(t, near, "go", 100, "quiet", 1000), 99, "6", "5+500ms", true, 1, false,
		},
		{ // the bell after both other entries
			"one less in between", played(t, near, "go", 100, "stop", 1000), 99, "5", "5", true, 1, false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := replayOf(left), replayOf(c.right)
			d, err := compare.Recordings(bg, a, b, compare.BySignal)
			require.NoError(t, err)
			found, err := compare.FirstPicture(bg, a, b, d, c.most)
			require.NoError(t, err)
			assert.Equal(t, c.left, found.Left.String())
			assert.Equal(t, c.rightAt, found.Right.String())
			assert.Equal(t, c.differs, found.Picture != nil)
			assert.Equal(t, c.moments, found.Moments)
			assert.Equal(t, c.ended, found.Ended)
		})
	}
}

// TestSameFrameSounds: a sound is compared while its note is shown, with its age.
func TestSameFrameSounds(t *testing.T) {
	frame := func(at time.Duration, sounds ...stage.Sound) *stage.Frame {
		return &stage.Frame{At: at, Scene: scene.Default(), Sounds: sounds}
	}
	bell := stage.Sound{At: time.Second, Sound: "bell"}
	early, late := stage.Sound{Sound: "gong"}, stage.Sound{At: 1100 * ms, Sound: "bell"}
	heard := bell.At + stage.SoundLasts
	assert.True(t, compare.SameFrame(frame(heard, bell), frame(heard)), "its note is gone")
	assert.False(t, compare.SameFrame(frame(heard-1, bell), frame(heard-1)))
	assert.False(t, compare.SameFrame(frame(heard-1), frame(heard-1, bell)))
	assert.True(t, compare.SameFrame(frame(heard-ms, early, bell), frame(heard-ms, bell)))
	assert.False(t, compare.SameFrame(frame(heard-200*ms, bell), frame(heard-200*ms, late)), "another age")
	assert.False(t, compare.SameFrame(frame(heard-200*ms, bell), frame(heard-300*ms, bell)), "another age at another time")
	assert.True(t, compare.SameFrame(frame(heard, bell), frame(heard+time.Second, late)))
}
