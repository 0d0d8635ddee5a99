package answer

import (
	"context"

	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/imagetest"
)

// Measure compares the stage of a fold with the picture of a test.
func Measure(t *imagetest.ImageTest, f *projection.Fold) (imagetest.Measurement, error) {
	frame, err := film.FrameOf(f)
	if err != nil {
		return imagetest.Measurement{}, err
	}
	return t.Compare(frame)
}

// BadPicture returns the test of a bisection that finds a moment bad if its picture is
// wrong. Its input is the drawing, so pictures that look alike are painted once. Measure is
// that of t, perhaps with errors of the caller's own.
func BadPicture(t *imagetest.ImageTest, measure func(*projection.Fold) (imagetest.Measurement, error)) bisect.Test {
	return bisect.Test{
		Identity: t.Identity(),
		Input: func(_ context.Context, s *replay.ScanStep) (bisect.InputHash, error) {
			f, err := film.FrameOf(s.Fold)
			if err != nil {
				return bisect.InputHash{}, err
			}
			return t.Draw(f).Hash(), nil
		},
		Judge: func(_ context.Context, _ replay.Moment, f *projection.Fold) (bisect.TestResult, error) {
			m, err := measure(f)
			switch {
			case err != nil:
				return 0, err
			case t.Wrong(m):
				return bisect.Bad, nil
			}
			return bisect.Good, nil
		},
	}
}
