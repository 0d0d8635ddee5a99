package compare

import (
	"errors"

	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// PictureDiff is the difference between the pictures of two states.
type PictureDiff struct {
	Figures []picture.FrameDifference // what is seen to differ

	// Share of the pixels that differ, 0 to 1, where both are drawn at 480 pixels
	// width. It is 1 if the scenes have other proportions.
	Share float64
}

// Equal reports whether nothing is seen to differ.
func (d *PictureDiff) Equal() bool { return len(d.Figures) == 0 && d.Share == 0 }

// pictureWidth is the width at which pictures are compared, in pixels.
const pictureWidth = 480

// Pictures compares the pictures of the stage at two folds. It returns nil if neither
// has a stage that can be drawn.
func Pictures(left, right *projection.Fold) (*PictureDiff, error) {
	a, b := session.StageOf(left).Frame(), session.StageOf(right).Frame()
	if a == nil && b == nil {
		return nil, nil
	}
	for _, f := range []*stage.Frame{a, b} {
		if f != nil {
			f.Mark = "" // it differs between a session and its fork, whatever happens
		}
	}
	return Frames(a, b)
}

// Frames compares the pictures of two frames, of which one may be nil.
func Frames(a, b *stage.Frame) (*PictureDiff, error) { return new(FrameComparer).Compare(a, b) }

// FrameComparer is [Frames] for many frames: it keeps what their pictures have in common,
// such as backgrounds. The zero value is ready. It is not safe for concurrent use.
type FrameComparer struct {
	// Two, because an image is valid until the next one of its rasterizer.
	before, after *picture.Rasterizer
}

// Compare compares the pictures of two frames, of which one may be nil.
func (c *FrameComparer) Compare(a, b *stage.Frame) (*PictureDiff, error) {
	if a == nil || b == nil {
		return &PictureDiff{Share: 1}, nil
	}
	if c.before == nil {
		c.before, c.after = picture.NewRasterizer(), picture.NewRasterizer()
	}
	d := &PictureDiff{Figures: picture.Differences(a, b, 0)}
	before := c.before.Image(picture.Draw(a, picture.Options{Width: pictureWidth}), 0)
	after := c.after.Image(picture.Draw(b, picture.Options{Width: pictureWidth}), 0)
	diff, err := picture.DiffImages(before, after, nil, 0)
	if _, ok := errors.AsType[*picture.SizeError](err); ok {
		d.Share = 1
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	d.Share = diff.Share
	return d, nil
}
