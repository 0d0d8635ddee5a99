package film

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/sajou-dev/sajou-go/stage/picture"
)

// Style holds the options of every picture.
type Style struct {
	Width   int  // pixels of one picture; 0 is the default of package picture
	Places  bool // show slots, waypoints and routes of the scene
	Caption bool // a line below with the session, the moment and its time
	Theme   picture.Theme
	Font    *picture.Font // of a GIF, for characters that the built-in fonts lack
}

// Draw lays out the picture of a shot.
func (r *Reel) Draw(at Shot, style Style) *picture.Drawing {
	opt := picture.Options{Width: style.Width, Places: style.Places, Theme: style.Theme}
	if style.Caption {
		opt.Title, opt.Address, opt.Clock = r.Name(), at.String(), true
	}
	return picture.Draw(at.Frame, opt)
}

// FitsPixels refuses n pictures of the size of the first if they have more than
// maxFilmPixels in all.
func (r *Reel) FitsPixels(ctx context.Context, over Interval, n int, style Style) error {
	first, err := r.Shot(ctx, over.First)
	if err != nil {
		return err
	}
	w, h := r.Draw(first, style).Size()
	if float64(n)*w*h > maxFilmPixels {
		return limited("%d pictures of %.0fx%.0f exceed the limit of %d million pixels", n, w, h, maxFilmPixels/1_000_000)
	}
	return nil
}

// GIF writes the pictures of an interval at some instants as an animation of rate
// pictures a second, and returns the last of them. Only a few of its pictures are in
// memory at a time. progress, unless nil, is called after each picture with the number of
// pictures done.
func (r *Reel) GIF(ctx context.Context, w io.Writer, over Interval, instants []time.Duration, rate int, style Style, progress func(done int)) (last Shot, err error) {
	var failed error
	done := 0
	cells := func(yield func(picture.Cell) bool) {
		for at, err := range r.At(ctx, over, instants) {
			if err != nil {
				failed = err
				return
			}
			last = at
			if done++; progress != nil {
				progress(done)
			}
			cell := picture.Cell{Frame: at.Frame}
			if style.Caption {
				cell.Caption = at.String()
			}
			if !yield(cell) {
				return
			}
		}
	}
	opt := picture.GIFOptions{Options: picture.Options{Width: style.Width, Places: style.Places, Theme: style.Theme}, Rate: rate, Font: style.Font}
	if style.Caption {
		opt.Title, opt.Clock = r.Name(), true
	}
	err = picture.Animate(w, cells, opt)
	return last, cmp.Or(failed, err)
}

// SheetConfig holds the options of a contact sheet.
type SheetConfig struct {
	Style
	Count    int                   // pictures, evenly over the time; 0 is one for each entry
	Columns  int                   // pictures side by side; 0 chooses
	Progress func(done, total int) // called after each picture, unless nil
}

// Sheet lays out a contact sheet of an interval, and returns its last picture and the
// number of pictures. The picture of an entry shows its effect, as [Reel.Effects] does.
func (r *Reel) Sheet(ctx context.Context, over Interval, cfg SheetConfig) (d *picture.Drawing, last Shot, n int, err error) {
	var shots iter.Seq2[Shot, error]
	total := cfg.Count
	if total > 0 {
		shots = r.At(ctx, over, over.Spread(total))
	} else {
		shots = r.Effects(ctx, over)
		entries := over.Last.Seq - over.First.Seq + 1
		if entries > MaxSheet {
			return nil, last, 0, limited("a picture for each of %d entries exceeds the limit of %d", entries, MaxSheet)
		}
		total = int(entries)
	}
	var cells []picture.Cell
	shown := 0 // figures and beams of all pictures, which are kept until the sheet is laid out
	for at, err := range shots {
		if err != nil {
			return nil, last, 0, err
		}
		if shown += len(at.Frame.Figures) + len(at.Frame.Beams); shown > maxSheetShown {
			return nil, last, 0, limited("the pictures show more than the limit of %d figures and beams in all", maxSheetShown)
		}
		caption := at.String()
		if cfg.Count == 0 {
			if caption, err = r.Caption(ctx, at.Moment); err != nil {
				return nil, last, 0, err
			}
		}
		cells = append(cells, picture.Cell{Frame: at.Frame, Caption: caption})
		last = at
		if cfg.Progress != nil {
			cfg.Progress(len(cells), total)
		}
	}
	opt := picture.Options{Width: cfg.Width, Places: cfg.Places, Theme: cfg.Theme, Clock: true}
	if cfg.Caption {
		opt.Title, opt.Address = r.Name(), fmt.Sprintf("%v..%v", over.First, over.Last)
	}
	return picture.Sheet(cells, cfg.Columns, opt), last, len(cells), nil
}

// CheckPNG refuses a drawing that has too many pixels as an image.
func CheckPNG(d *picture.Drawing) error {
	w, h := d.Size()
	if w > MaxWidth || w*h > MaxPixels {
		return limited("%.0fx%.0f pixels exceed the limit", w, h)
	}
	return nil
}
