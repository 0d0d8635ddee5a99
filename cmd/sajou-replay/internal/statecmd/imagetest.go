package statecmd

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

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// imageTest holds --image and the flags that refine it.
type imageTest struct {
	image, mask string
	maxDiff     string
	width       int
	same        bool
	tolerance   int
}

// imageTestHelp is the part of the help that describes --image. The text of the
// command goes on with the meaning of a difference.
const imageTestHelp = `With --image, the stage is drawn at the width of the PNG and compared with it.
The picture differs if more than --max-diff of the pixels differ, a share such as
0.01 or 1%; by default one pixel is enough. --tolerance is the permitted
difference of a color channel, of 255. --mask is a PNG of the same size; pixels
where it is opaque are not compared.`

func (l *imageTest) flags(cmd *cobra.Command, same string) {
	f := cmd.Flags()
	f.StringVar(&l.image, "image", "", "compare the stage with this `PNG`")
	f.StringVar(&l.maxDiff, "max-diff", "0", "permitted `SHARE` of differing pixels, as in 0.01 or 1%")
	f.StringVar(&l.mask, "mask", "", "`PNG` whose opaque pixels are not compared")
	f.IntVar(&l.width, "width", 0, "require the PNG to be `N` pixels wide")
	f.IntVar(&l.tolerance, "tolerance", 0, "permitted difference `N` of a color channel, of 255")
	f.BoolVar(&l.same, "same", false, same)
	_ = cmd.MarkFlagFilename("image", "png")
	_ = cmd.MarkFlagFilename("mask", "png")
}

// check refuses flags without --image that refine it.
func (l *imageTest) check(cmd *cobra.Command) error {
	for _, name := range []string{"max-diff", "mask", "width", "tolerance", "same"} {
		if l.image == "" && cmd.Flags().Changed(name) {
			return cli.Misuse("--%s needs --image PNG", name)
		}
	}
	if l.tolerance < 0 || l.tolerance > 255 {
		return cli.Misuse("--tolerance %d: must be from 0 to 255", l.tolerance)
	}
	return nil
}

// referenceImage is the PNG of --image and its mask, decoded.
type referenceImage struct {
	want, mask image.Image
	most       float64
	tolerance  int
	same       bool
	painter    *picture.Rasterizer
}

// load reads the pictures.
func (l *imageTest) load(ctx context.Context) (*referenceImage, error) {
	c := &referenceImage{tolerance: l.tolerance, same: l.same, painter: picture.NewRasterizer()}
	var err error
	if c.most, err = share(l.maxDiff); err != nil {
		return nil, err
	}
	if c.want, err = readPNG(ctx, l.image); err != nil {
		return nil, err
	}
	size := c.want.Bounds().Size()
	if size.X < film.MinWidth || size.X > film.MaxWidth {
		return nil, cli.Misuse("%s is %d pixels wide; a picture of the stage has from %d to %d", l.image, size.X, film.MinWidth, film.MaxWidth)
	}
	if l.width != 0 && l.width != size.X {
		return nil, cli.Misuse("%s is %d pixels wide, not %d", l.image, size.X, l.width)
	}
	if l.mask == "" {
		return c, nil
	}
	if c.mask, err = readPNG(ctx, l.mask); err != nil {
		return nil, err
	}
	if m := c.mask.Bounds().Size(); m != size {
		return nil, cli.Misuse("%s is %dx%d, but %s is %dx%d; a mask must have the size of the picture", l.mask, m.X, m.Y, l.image, size.X, size.Y)
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
		return 0, cli.Misuse("--max-diff %s: must be a share from 0 to 1, or from 0%% to 100%%", text)
	}
	return f, nil
}

// maxPNG bounds the file of a picture. Its pixels are bounded like those of a
// drawn picture.
const maxPNG = 64 << 20

// readPNG reads a picture. It checks the size in the header before it allocates
// the pixels.
func readPNG(ctx context.Context, file string) (image.Image, error) {
	data, err := cli.ReadFile(ctx, file, maxPNG)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, cli.Misuse("%w", err)
	}
	cfg, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, cli.Misuse("%s is not a PNG", file)
	}
	if cfg.Width > film.MaxWidth || cfg.Width*cfg.Height > film.MaxPixels {
		return nil, cli.Misuse("%s is %dx%d, which is larger than any picture of a stage", file, cfg.Width, cfg.Height)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, cli.Misuse("%s is not a complete PNG: %s", file, strings.TrimPrefix(err.Error(), "png: "))
	}
	return img, nil
}

// differ returns the share in which the stage differs from the reference.
func (c *referenceImage) differ(fold *projection.Fold) (float64, error) {
	f, err := film.FrameOf(fold)
	if err != nil {
		return 0, err
	}
	size := c.want.Bounds().Size()
	img := c.painter.Image(picture.Draw(f, picture.Options{Width: size.X}), 0)
	diff, err := picture.DiffImages(c.want, img, c.mask, c.tolerance)
	if wrong, ok := errors.AsType[*picture.SizeError](err); ok {
		return 0, cli.Misuse("the PNG is %dx%d, but the stage at entry %d is %dx%d at that width; use a PNG that render made of this scene", wrong.A.X, wrong.A.Y, fold.Head().Seq, wrong.B.X, wrong.B.Y)
	}
	if err != nil {
		return 0, cli.Fail(cli.ExitCannotRun, "the picture at entry %d cannot be compared: %v", fold.Head().Seq, err)
	}
	return diff.Share, nil
}

// wrong reports whether a share of differing pixels is a hit: too large, or with
// --same small enough.
func (c *referenceImage) wrong(share float64) bool { return (share > c.most) != c.same }

// test is c as a test of a bisection.
func (c *referenceImage) test(_ context.Context, _ replay.Moment, f *projection.Fold) (replay.TestResult, error) {
	share, err := c.differ(f)
	if err != nil {
		return 0, err
	}
	if c.wrong(share) {
		return replay.Bad, nil
	}
	return replay.Good, nil
}

// percent writes a share. A share above zero never reads as 0.00%.
func percent(share float64) string {
	if share > 0 && share < 0.0001 {
		return "<0.01%"
	}
	return strconv.FormatFloat(share*100, 'f', 2, 64) + "%"
}
