package picture_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// The clock shows session time to the millisecond, on both sides of each carry.
func TestClock(t *testing.T) {
	for at, want := range map[time.Duration]string{
		0:                                     "0:00.000",
		time.Millisecond - 1:                  "0:00.000",
		59*time.Second + 999*time.Millisecond: "0:59.999",
		time.Minute:                           "1:00.000",
		time.Minute + time.Millisecond:        "1:00.001",
		time.Hour - time.Millisecond:          "59:59.999",
		time.Hour:                             "1:00:00.000",
		25*time.Hour + 61*time.Second:         "25:01:01.000",
		-1500 * time.Millisecond:              "-0:01.500",
	} {
		f := &stage.Frame{At: at, Scene: &scene.Scene{Width: 400, Height: 300}}
		svg := string(picture.Draw(f, picture.Options{Clock: true}).AppendSVG(nil))
		require.Contains(t, svg, `aria-label="`+want+`"`, at)
	}
}
