package imagetest

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/stage/film"
)

// ReadPNG decodes a PNG. It reads the size from the header first, and refuses an image that
// is wider or has more pixels than any picture of package film, before it allocates the
// pixels. An image of 16 bits a channel may have half as many. The error is an
// [*OptionError].
func ReadPNG(data []byte) (image.Image, error) {
	cfg, err := png.DecodeConfig(bytes.NewReader(data))
	if unsupported, ok := errors.AsType[png.UnsupportedError](err); ok {
		return nil, invalid("it cannot be decoded: %s", string(unsupported))
	}
	if err != nil {
		return nil, invalid("it is not a PNG")
	}
	most := film.MaxPixels
	switch cfg.ColorModel {
	case color.RGBA64Model, color.NRGBA64Model, color.Gray16Model:
		most /= 2
	}
	// The sides have 31 bits, so their product fits.
	if cfg.Width > film.MaxWidth || int64(cfg.Width)*int64(cfg.Height) > int64(most) {
		return nil, invalid("it is %dx%d, which is larger than any picture of a stage", cfg.Width, cfg.Height)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, invalid("it is not a complete PNG: %s", strings.TrimPrefix(err.Error(), "png: "))
	}
	return img, nil
}

// ParseRegion reads a rectangle as "x,y,width,height", in whole pixels. The width and the
// height are at least 1. The error is an [*OptionError].
func ParseRegion(text string) (image.Rectangle, error) {
	parts := strings.Split(text, ",")
	var n [4]int
	ok := len(parts) == len(n)
	for i := 0; ok && i < len(n); i++ {
		v, err := strconv.ParseUint(strings.TrimSpace(parts[i]), 10, 20)
		n[i], ok = int(v), err == nil
	}
	if !ok || n[2] == 0 || n[3] == 0 {
		return image.Rectangle{}, invalid("%q is not a region; write x,y,width,height in pixels, such as 100,50,200,120", text)
	}
	return image.Rect(n[0], n[1], n[0]+n[2], n[1]+n[3]), nil
}

// ParseShare reads a share from 0 to 1, as a number or in percent, such as 0.01 or 1%. The
// error is an [*OptionError].
func ParseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, invalid("%s: must be a share from 0 to 1, or from 0%% to 100%%", text)
	}
	return f, nil
}
