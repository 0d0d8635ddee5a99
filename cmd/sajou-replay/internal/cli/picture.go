package cli

import (
	"io"

	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Reel returns the stage of the session. A scene that is not nil replaces the
// recorded ones.
func (t *OpenedSession) Reel(sc *scene.Scene) *film.Reel {
	if sc == nil {
		return film.Open(t.Travel, t.Travel)
	}
	return film.OpenWith(t.Log, sc)
}

// Encode writes a drawing as SVG or PNG.
func Encode(d *picture.Drawing, format string) func(io.Writer) error {
	return func(w io.Writer) error {
		if format == "png" {
			return picture.EncodePNG(w, d.Image(0))
		}
		_, err := w.Write(d.AppendSVG(nil))
		return err
	}
}
