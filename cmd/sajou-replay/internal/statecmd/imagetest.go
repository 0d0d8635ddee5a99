package statecmd

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/stage/imagetest"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// imageTest holds --image and the flags that refine it.
type imageTest struct {
	image, mask string
	region      string
	entity      string
	maxDiff     string
	width       int
	same        bool
	maxColor    int
	tolerance   int // the former name of maxColor

	loaded *referenceImage // by load
}

// imageTestHelp is the part of the help that describes --image. The text of the
// command goes on with the meaning of a difference.
const imageTestHelp = `With --image, the stage is drawn at the width of the PNG and compared with it.
The picture differs if more than --max-diff of the compared pixels differ, a share
such as 0.01 or 1%; by default one pixel is enough. A pixel differs if its color
distance is above --max-color: the greatest difference of its red, green, blue and
alpha, from 0 to 255; by default 0. All pixels are compared, or only those
  --region x,y,w,h   in this rectangle of the PNG, in pixels
  --entity ID        where this figure, its label and its speech are drawn; a
                     picture without the figure differs; a remark tells if it
                     was in none of them
  --mask PNG         where this PNG of the same size is fully transparent`

// imageTestFlags are the flags that need --image.
var imageTestFlags = []string{"max-diff", "max-color", "tolerance", "mask", "region", "entity", "width", "same"}

func (l *imageTest) flags(cmd *cobra.Command, same string) {
	f := cmd.Flags()
	f.StringVar(&l.image, "image", "", "compare the stage with this `PNG`")
	f.StringVar(&l.maxDiff, "max-diff", "0", "permitted `SHARE` of differing pixels, as in 0.01 or 1%")
	f.IntVar(&l.maxColor, "max-color", 0, "permitted color distance `N` of a pixel, 0 to 255")
	f.StringVar(&l.mask, "mask", "", "`PNG` whose transparent pixels alone are compared")
	f.StringVar(&l.region, "region", "", "compare only the rectangle `x,y,w,h` of the PNG")
	f.StringVar(&l.entity, "entity", "", "compare only where the figure `ID` and its speech are")
	f.IntVar(&l.width, "width", 0, "require the PNG to be `N` pixels wide")
	f.IntVar(&l.tolerance, "tolerance", 0, "permitted difference `N` of a color channel, of 255")
	f.BoolVar(&l.same, "same", false, same)
	_ = f.MarkHidden("tolerance")
	_ = cmd.MarkFlagFilename("image", "png")
	_ = cmd.MarkFlagFilename("mask", "png")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		l.remarkAbsent(cmd.ErrOrStderr())
		return err
	}
}

// remarkAbsent writes that the figure of --entity was in no picture: every picture then
// differs, as it would with a misspelt id.
func (l *imageTest) remarkAbsent(w io.Writer) {
	if c := l.loaded; l.entity != "" && c != nil && c.compared.Load() && !c.FigureSeen() {
		fmt.Fprintf(w, "sajou-replay: the figure %q of --entity is in none of the pictures that were compared\n", l.entity)
	}
}

// check refuses flags without --image that refine it.
func (l *imageTest) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	for _, name := range imageTestFlags {
		if l.image == "" && changed(name) {
			return cli.Misuse("--%s needs --image PNG", name)
		}
	}
	if changed("entity") && l.entity == "" {
		return cli.Misuse("--entity is empty; name a figure")
	}
	if changed("tolerance") {
		if changed("max-color") {
			return cli.Misuse("--tolerance is the former name of --max-color; give one of them")
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "sajou-replay: --tolerance is deprecated; --max-color %d means the same\n", l.tolerance)
		l.maxColor = l.tolerance
	}
	if l.maxColor < 0 || l.maxColor > 255 {
		return cli.Misuse("--max-color %d: must be from 0 to 255", l.maxColor)
	}
	return nil
}

// referenceImage is the test of --image.
type referenceImage struct {
	*imagetest.ImageTest
	compared atomic.Bool // a picture was compared
}

// load reads the pictures.
func (l *imageTest) load(ctx context.Context) (*referenceImage, error) {
	opt := imagetest.Options{Entity: l.entity, MaxColor: l.maxColor, Same: l.same}
	var err error
	if opt.MaxDiff, err = imagetest.ParseShare(l.maxDiff); err != nil {
		return nil, cli.Misuse("--max-diff %s", reason(err))
	}
	if l.region != "" {
		if opt.Region, err = imagetest.ParseRegion(l.region); err != nil {
			return nil, cli.Misuse("--region %s", reason(err))
		}
	}
	want, err := readPNG(ctx, l.image)
	if err != nil {
		return nil, err
	}
	if width := want.Bounds().Dx(); l.width != 0 && l.width != width {
		return nil, cli.Misuse("%s is %d pixels wide, not %d", l.image, width, l.width)
	}
	if l.mask != "" {
		if opt.Mask, err = readPNG(ctx, l.mask); err != nil {
			return nil, err
		}
	}
	t, err := imagetest.New(want, opt)
	if size, ok := errors.AsType[*picture.SizeError](err); ok {
		return nil, cli.Misuse("%s is %dx%d, but %s is %dx%d; a mask must have the size of the picture", l.mask, size.B.X, size.B.Y, l.image, size.A.X, size.A.Y)
	}
	if err != nil {
		return nil, cli.Misuse("%s: %s", l.image, reason(err))
	}
	l.loaded = &referenceImage{ImageTest: t}
	return l.loaded, nil
}

// reason returns an error of package imagetest without its name.
func reason(err error) string { return strings.TrimPrefix(err.Error(), "imagetest: ") }

// maxPNG bounds the file of a picture. Its pixels are bounded like those of a
// drawn picture.
const maxPNG = 64 << 20

// readPNG reads a picture from a file.
func readPNG(ctx context.Context, file string) (image.Image, error) {
	data, err := cli.ReadFile(ctx, file, maxPNG)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, cli.Misuse("%w", err)
	}
	img, err := imagetest.ReadPNG(data)
	if err != nil {
		return nil, cli.Misuse("%s: %s", file, reason(err))
	}
	return img, nil
}

// measure compares the stage with the reference.
func (c *referenceImage) measure(fold *projection.Fold) (imagetest.Measurement, error) {
	m, err := answer.Measure(c.ImageTest, fold)
	c.compared.Store(true)
	if wrong, ok := errors.AsType[*picture.SizeError](err); ok {
		return m, cli.Misuse("the PNG is %dx%d, but the stage at entry %d is %dx%d at that width; use a PNG that render made of this scene", wrong.A.X, wrong.A.Y, fold.Head().Seq, wrong.B.X, wrong.B.Y)
	}
	return m, err
}

// bisectTest is c as a test of a bisection.
func (c *referenceImage) bisectTest() bisect.Test { return answer.BadPicture(c.ImageTest, c.measure) }
