package stagecmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// readFont reads the file of --font.
func (r *rendering) readFont(ctx context.Context) error {
	if r.font == "" {
		return nil
	}
	data, err := cli.ReadFile(ctx, r.font, picture.MaxFont)
	if err != nil {
		return err
	}
	if r.letters, err = picture.ParseFont(data); err != nil {
		return cli.Misuse("--font %s: %w; name a TrueType or OpenType file", r.font, err)
	}
	return nil
}

// encode writes a drawing in the format of the result, and notes the characters that an
// image cannot show.
func (r *rendering) encode(d *picture.Drawing) func(io.Writer) error {
	if r.format != "png" {
		return cli.Encode(d, r.format)
	}
	for _, c := range d.Missing(r.letters) {
		if r.missing == nil {
			r.missing = map[rune]bool{}
		}
		r.missing[c] = true
	}
	return func(w io.Writer) error {
		painter := picture.NewRasterizer()
		painter.SetFont(r.letters)
		return picture.EncodePNG(w, painter.Image(d, 0))
	}
}

// remarkMissing tells which characters are boxes in the images.
func (r *rendering) remarkMissing(a *cli.App) {
	if len(r.missing) == 0 {
		return
	}
	const most = 10
	all, more := slices.Sorted(maps.Keys(r.missing)), ""
	if len(all) > most {
		all, more = all[:most], "…"
	}
	remedy := "name a font that has them with --font FILE, or write SVG"
	if r.letters != nil {
		remedy = "the font of --font lacks them too"
	}
	fmt.Fprintf(a.Stderr, "sajou-replay: no glyph for %s (%s): boxes stand for them; %s\n",
		cli.Plural(len(r.missing), "character", "characters"), termtext.Printable(string(all)+more), remedy)
}
