package main

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// looks is a test by picture, as --image and the flags beside it say it.
type looks struct {
	image, mask string
	maxDiff     string
	width       int
	same        bool
	tolerance   int
}

const looksHelp = `With --image the stage is drawn at the width of that PNG and compared with it. The
picture is another when more than --max-diff of it differs, a share of the pixels
such as 0.01 or 1%; without it one pixel is enough. Where --mask, a PNG of the
same size, is not transparent, nothing is compared. --tolerance lets each colour
channel differ by so many of 255.`

func (l *looks) flags(cmd *cobra.Command, same string) {
	f := cmd.Flags()
	f.StringVar(&l.image, "image", "", "PNG that the stage is compared with")
	f.StringVar(&l.maxDiff, "max-diff", "0", "share of the picture that may differ, as in 0.01 or 1%")
	f.StringVar(&l.mask, "mask", "", "PNG: what is not transparent in it is not compared")
	f.IntVar(&l.width, "width", 0, "width that the PNG has to have; default whatever it has")
	f.IntVar(&l.tolerance, "tolerance", 0, "how much a colour channel may differ, of 255")
	f.BoolVar(&l.same, "same", false, same)
	_ = cmd.MarkFlagFilename("image", "png")
	_ = cmd.MarkFlagFilename("mask", "png")
}

// check finds flags that have no meaning without --image.
func (l *looks) check(cmd *cobra.Command) error {
	for _, name := range []string{"max-diff", "mask", "width", "tolerance", "same"} {
		if l.image == "" && cmd.Flags().Changed(name) {
			return misuse("--%s says how to compare with --image, which is missing", name)
		}
	}
	if l.tolerance < 0 || l.tolerance > 255 {
		return misuse("--tolerance %d: it is from 0 to 255", l.tolerance)
	}
	return nil
}

// comparison is a looks that has been read.
type comparison struct {
	want, mask image.Image
	most       float64
	tolerance  int
	same       bool
	painter    *picture.Rasterizer
}

// load reads the pictures.
func (l *looks) load() (*comparison, error) {
	c := &comparison{tolerance: l.tolerance, same: l.same, painter: picture.NewRasterizer()}
	var err error
	if c.most, err = share(l.maxDiff); err != nil {
		return nil, err
	}
	if c.want, err = readPNG(l.image); err != nil {
		return nil, err
	}
	size := c.want.Bounds().Size()
	if size.X < leastWidth || size.X > mostWidth {
		return nil, misuse("%s is %d wide, and pictures are from %d to %d", l.image, size.X, leastWidth, mostWidth)
	}
	if l.width != 0 && l.width != size.X {
		return nil, misuse("%s is %d wide, not %d", l.image, size.X, l.width)
	}
	if l.mask == "" {
		return c, nil
	}
	if c.mask, err = readPNG(l.mask); err != nil {
		return nil, err
	}
	if m := c.mask.Bounds().Size(); m != size {
		return nil, misuse("%s is %dx%d, and %s is %dx%d; a mask has the size of the picture", l.mask, m.X, m.Y, l.image, size.X, size.Y)
	}
	return c, nil
}

// share reads a share of something, as a number up to 1 or in percent.
func share(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if percent {
		f /= 100
	}
	if err != nil || math.IsNaN(f) || f < 0 || f > 1 {
		return 0, misuse("--max-diff %s: it is a share from 0 to 1, or from 0%% to 100%%", text)
	}
	return f, nil
}

const (
	// maxPNG bounds the file of a picture, and maxPixels what comes of it.
	maxPNG    = 64 << 20
	maxPixels = 8192 * 4608
)

// readPNG reads a picture. Its size is looked at before there is room made for
// it.
func readPNG(file string) (image.Image, error) {
	data, err := readBounded(file, maxPNG)
	if err != nil {
		return nil, misuse("%w", err)
	}
	cfg, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, misuse("%s is no PNG: %v", file, err)
	}
	if cfg.Width > mostWidth || cfg.Width*cfg.Height > maxPixels {
		return nil, misuse("%s is %dx%d, which is more than a picture of a stage has", file, cfg.Width, cfg.Height)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, misuse("%s is no whole PNG: %v", file, err)
	}
	return img, nil
}

// differ returns the share in which the stage differs from the reference.
func (c *comparison) differ(fold *projection.Fold) (float64, error) {
	f, err := frameOf(fold)
	if err != nil {
		return 0, err
	}
	size := c.want.Bounds().Size()
	img := c.painter.Image(picture.Draw(f, picture.Options{Width: size.X}), 0)
	diff, err := picture.DiffImages(c.want, img, c.mask, c.tolerance)
	if wrong, ok := errors.AsType[*picture.SizeError](err); ok {
		return 0, misuse("the picture to compare with is %dx%d, and the stage at entry %d is %dx%d when it is as wide", wrong.A.X, wrong.A.Y, fold.Head().Seq, wrong.B.X, wrong.B.Y)
	}
	if err != nil {
		return 0, fail(exitCannotRun, "the picture at entry %d cannot be compared: %v", fold.Head().Seq, err)
	}
	return diff.Share, nil
}

// wrong reports whether the stage is what the flags ask for: another picture,
// or with --same this one.
func (c *comparison) wrong(share float64) bool { return (share > c.most) != c.same }

// test is c as a test of a bisection.
func (c *comparison) test(_ context.Context, _ replay.Moment, f *projection.Fold) (replay.Verdict, error) {
	share, err := c.differ(f)
	if err != nil {
		return 0, err
	}
	if c.wrong(share) {
		return replay.Bad, nil
	}
	return replay.Good, nil
}

// finder is a scan for pictures. A hit is told with the share that differs.
func (l *looks) finder(mode replay.Mode) (*finder, error) {
	c, err := l.load()
	if err != nil {
		return nil, err
	}
	var now, hit float64 // of the entry asked about last, and of the last that was right
	return &finder{
		mode: mode,
		dear: true,
		predicate: replay.Predicate{Needs: replay.NeedsState, Test: func(_ context.Context, s *replay.Step) (bool, error) {
			share, err := c.differ(s.Fold)
			if err != nil {
				return false, err
			}
			now = share
			if c.wrong(share) {
				hit = share
				return true, nil
			}
			return false, nil
		}},
		write: func(o *output, e *eventlog.Entry) error {
			share := now
			if mode == replay.Last {
				share = hit
			}
			value, err := marshal(share)
			if err != nil {
				return err
			}
			line := sajou.AppendEntryJSON(nil, e)
			line = append(line[:len(line)-1], `,"differs":`...)
			line = append(append(line, value...), '}')
			return o.item(entryText(e)+"  differs "+percent(share), line)
		},
	}, nil
}

// percent writes a share. What is not nothing does not look like nothing.
func percent(share float64) string {
	if share > 0 && share < 0.0001 {
		return "<0.01%"
	}
	return strconv.FormatFloat(share*100, 'f', 2, 64) + "%"
}
