package stagecmd

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/overview"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// wholeSession is the range of an overview without an address.
const wholeSession = "..end"

// renderOverview draws a range as a timeline, or as the pages of a sequence diagram.
func renderOverview(ctx context.Context, a *cli.App, s *film.Reel, first, last replay.Moment, r *rendering) error {
	over, err := s.Interval(ctx, first, last)
	if err != nil {
		return err
	}
	o, err := s.Overview(ctx, over)
	if err != nil {
		return err
	}
	opt := overview.Options{Title: s.Name(), Width: r.width, Theme: picture.Theme(r.theme), PerPage: r.perPage}
	at := film.Shot{Moment: last, At: over.To}
	if r.timeline {
		return writeOverview(a, o.Timeline(opt), at, r)
	}
	pages := o.Pages(opt)
	if !r.many() {
		if r.page > pages {
			return cli.Misuse("--page %d: the diagram has %s", r.page, cli.Plural(pages, "page", "pages"))
		}
		if pages > 1 && r.page == 0 {
			fmt.Fprintf(a.Stderr, "sajou-replay: page 1 of %d; draw another with --page N, or all with -O pages/%%02d.svg\n", pages)
		}
		return writeOverview(a, o.Sequence(max(r.page, 1), opt), at, r)
	}
	dir := r.out
	if number.MatchString(filepath.Base(r.out)) {
		dir = filepath.Dir(r.out)
	}
	if err := cli.MakeDirectory(dir); err != nil {
		return err
	}
	var result rendered
	for n := 1; n <= pages; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		d := o.Sequence(n, opt)
		if err := r.fits(d); err != nil {
			return err
		}
		if err := cli.WriteFile(r.file(n), r.encode(d)); err != nil {
			return err
		}
		result = made(r, d, at, n)
	}
	result.File = r.file(1)
	if pages > 1 {
		result.File += " to " + filepath.Base(r.file(pages))
	}
	return reportRendered(a, r, result)
}

// writeOverview writes one drawing and tells about it.
func writeOverview(a *cli.App, d *picture.Drawing, at film.Shot, r *rendering) error {
	if err := r.fits(d); err != nil {
		return err
	}
	if err := a.WritePicture(r.out, r.encode(d)); err != nil {
		return err
	}
	return reportRendered(a, r, made(r, d, at, 1))
}
