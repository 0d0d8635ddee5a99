package stagecmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// writeStage writes the stage as a sequence of texts.
func writeStage(ctx context.Context, a *cli.App, s *film.Reel, first, last replay.Moment, p Pace) error {
	cfg := replay.PlayerConfig{From: first, To: last, Frame: p.frame()}
	texts := stageTexts{app: a, name: s.Name(), pace: p}
	texts.cols, texts.rows = textSize()
	cfg.Screen = &texts
	texts.ctx = ctx
	player, err := replay.NewPlayer(ctx, s.Travel(), cfg)
	for more := err == nil; more; {
		more, err = player.Next(ctx)
	}
	return err
}

// stageTexts writes the frames of a player as texts, each at its time, and leaves out
// those that equal the one before.
type stageTexts struct {
	ctx        context.Context // of writeStage; the method of a screen receives none
	app        *cli.App
	name       string
	pace       Pace
	cols, rows int

	text    string // the last one
	at      time.Duration
	written bool
}

var _ replay.Screen = (*stageTexts)(nil)

// Show implements [replay.Screen].
func (s *stageTexts) Show(fold *projection.Fold, m replay.Moment) (changed bool, err error) {
	f, err := film.FrameOf(fold)
	if err != nil {
		return false, err
	}
	text := strings.TrimRight(picture.Terminal(f, s.cols, s.rows, false), "\n") + "\n"
	between := ""
	if s.written {
		if text == s.text {
			return false, nil
		}
		if err := s.pace.wait(s.ctx, f.At-s.at); err != nil {
			return false, err
		}
		between = "\n"
	}
	s.text, s.at, s.written = text, f.At, true
	_, err = io.WriteString(s.app.Stdout, between+stageHead(s.name, m, f.At)+text)
	return true, err
}

// stageHead is the line above a frame in text.
func stageHead(name string, m replay.Moment, at time.Duration) string {
	return termtext.Printable(fmt.Sprintf("%s %v  %s", name, m, cli.ClockText(at))) + "\n"
}

// textSize returns the size of a frame in text: COLUMNS by LINES, without the two
// lines around a frame.
func textSize() (cols, rows int) {
	size := func(name string, otherwise int) int {
		n, err := strconv.Atoi(os.Getenv(name))
		if err != nil || n < 1 || n > 1000 {
			return otherwise
		}
		return n
	}
	return size("COLUMNS", 80), size("LINES", 24) - 2
}
