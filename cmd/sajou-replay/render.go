package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Bounds of what is drawn.
const (
	leastWidth   = 16
	mostWidth    = 8192
	mostGIFWidth = 2048
	mostSheet    = 400 // pictures of a contact sheet
	defaultFPS   = 10
)

// rendering is what the flags of render say.
type rendering struct {
	out     string
	format  string // svg, png or gif; empty: see target
	scene   string
	width   int
	fps     float64
	speed   float64
	count   int
	columns int
	sheet   bool
	compare bool
	caption bool
	places  bool
	json    bool
}

func (a *app) renderCommand() *cobra.Command {
	var r rendering
	cmd := &cobra.Command{
		Use:   "render [SESSION] (ADDR | RANGE | ADDR ADDR --compare) -o FILE",
		Short: "Draw what is seen on the stage",
		Long: `Render draws the stage at a moment, or over a range. Here -o names the file, and
what it ends with, or --format, says what is made; -o - is stdout. The result is
told in a line, or with --json as an object.

  render ADDR -o a.svg              a picture; .png for pixels
  render RANGE -o a.gif             a film, --fps pictures a second
  render RANGE -o frames/%05d.png   its pictures, numbered from 1; .svg too
  render RANGE -o frames/           the same, called 00001.png and so on
  render RANGE --sheet -o a.svg     a contact sheet: a picture for each entry, or
                                    --count N evenly over the time; .png too
  render ADDR ADDR --compare -o a.svg
                                    two moments side by side, with a mark where
                                    they differ, and a list of the differences;
                                    -o can be left out

--speed 4 lets four seconds of session time pass in a second of film. --scene
draws with the scene of a file in place of all that were recorded: the session is
folded anew with it. A session without a scene has a default one, on which agents
appear where there is room.

The same moment gives the same bytes on every machine. The exit code of --compare
is 0 when nothing differs and 1 when something does; 7 says that a picture cannot
be drawn.`,
		Example: `  sajou-replay render end -o picture.svg
  sajou-replay render 812+350ms -o picture.png --width 1920 --caption
  sajou-replay render release-42 100..200 --fps 12 -o film.gif
  sajou-replay render 100..120 --sheet --columns 4 -o sheet.png
  sajou-replay render 33 34 --compare -o difference.svg`,
		Args: between(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.check(cmd); err != nil {
				return err
			}
			return a.render(cmd.Context(), args, &r)
		},
	}
	flags := cmd.Flags()
	// Of the same name as the global flag, whose place it takes here.
	flags.StringVarP(&r.out, "output", "o", "", "file to write, directory or pattern with %05d; - is stdout")
	flags.StringVar(&r.format, "format", "", "svg, png or gif; default from what FILE ends with")
	flags.StringVar(&r.scene, "scene", "", "file of a scene to draw with in place of the recorded ones")
	flags.IntVar(&r.width, "width", 0, "pixels of one picture; 0 is 960, 320 in a sheet, 640 to compare")
	flags.Float64Var(&r.fps, "fps", defaultFPS, "pictures a second of a film")
	flags.Float64Var(&r.speed, "speed", 1, "seconds of session time in a second of film")
	flags.BoolVar(&r.sheet, "sheet", false, "a contact sheet of a range")
	flags.IntVar(&r.count, "count", 0, "how many pictures a sheet has; 0 is one for each entry")
	flags.IntVar(&r.columns, "columns", 0, "how many pictures a sheet has side by side; 0 finds out")
	flags.BoolVar(&r.compare, "compare", false, "two moments side by side")
	flags.BoolVar(&r.caption, "caption", false, "a line below with the session, the moment and its time")
	flags.BoolVar(&r.places, "places", false, "show slots, waypoints and routes of the scene")
	flags.BoolVar(&r.json, "json", false, "tell the result as JSON")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"svg", "png", "gif"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("scene", "json", "zip")
	_ = cmd.MarkFlagFilename("output", "svg", "png", "gif")
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

// check finds what cannot be meant, and works out the format.
func (r *rendering) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case r.sheet && r.compare:
		return misuse("--sheet and --compare exclude each other")
	case r.out == "" && !r.compare:
		return misuse("-o is missing; where is the picture to go? for example: -o picture.svg")
	case given("width") && (r.width < leastWidth || r.width > mostWidth):
		return misuse("--width %d: it is from %d to %d", r.width, leastWidth, mostWidth)
	case !(r.fps > 0) || r.fps > 100:
		return misuse("--fps %v: it is above 0 and at most 100", r.fps)
	case !(r.speed > 0) || math.IsInf(r.speed, 0):
		return misuse("--speed %v: it is above 0", r.speed)
	case (given("count") || given("columns")) && !r.sheet:
		return misuse("--count and --columns are for --sheet")
	case r.count < 0 || r.count > mostSheet || given("count") && r.count == 0:
		return misuse("--count %d: a sheet has from 1 to %d pictures", r.count, mostSheet)
	case r.columns < 0 || r.columns > mostSheet:
		return misuse("--columns %d: it is from 1 to %d", r.columns, mostSheet)
	case (given("fps") || given("speed")) && (r.sheet || r.compare):
		return misuse("--fps and --speed are for films")
	}
	if err := r.chooseFormat(); err != nil {
		return err
	}
	if (given("fps") || given("speed")) && r.format != "gif" && !r.many() {
		return misuse("--fps and --speed are for films (-o film.gif, -o frames/%%05d.png)")
	}
	return nil
}

// chooseFormat takes the format from the file's name where --format is silent.
func (r *rendering) chooseFormat() error {
	if r.out == "" {
		return nil
	}
	byName := strings.TrimPrefix(strings.ToLower(filepath.Ext(r.out)), ".")
	if r.format == "" {
		switch byName {
		case "svg", "png", "gif":
			r.format = byName
		case "":
			if r.many() {
				r.format = "png"
			} else if r.out == "-" {
				r.format = "svg"
			}
		}
	}
	switch r.format {
	case "":
		hint := "end it with .svg, .png or .gif, or give --format"
		if r.out == "text" || r.out == "json" || r.out == "jsonl" {
			hint = "-o names a file in this command, and --json tells the result as JSON"
		}
		return misuse("-o %q: what kind of picture is that? %s", r.out, hint)
	case "svg", "png":
	case "gif":
		switch {
		case r.sheet || r.compare || r.many():
			return misuse("a GIF is a film; what is wanted here is svg or png")
		case r.width > mostGIFWidth:
			return misuse("--width %d: a GIF is at most %d wide", r.width, mostGIFWidth)
		case r.fps > 50 || r.fps != math.Trunc(r.fps):
			return misuse("--fps %v: a GIF has 1 to 50 pictures a second, a whole number", r.fps)
		}
	default:
		return misuse("--format %q: the formats are svg, png and gif", r.format)
	}
	if r.many() && (r.sheet || r.compare) {
		return misuse("-o %q stands for many files, and this is one picture", r.out)
	}
	return nil
}

// number is the place of a picture's number in the name of a file.
var number = regexp.MustCompile(`%0?[1-9]?d`)

// many reports whether the output is a file for each picture.
func (r *rendering) many() bool {
	if r.out == "-" {
		return false
	}
	if number.MatchString(filepath.Base(r.out)) || strings.HasSuffix(r.out, "/") || strings.HasSuffix(r.out, string(filepath.Separator)) {
		return true
	}
	info, err := os.Stat(r.out)
	return err == nil && info.IsDir()
}

// file is the name of the nth picture, from 1, of a film that is kept as files.
func (r *rendering) file(n int) string {
	dir, base := filepath.Split(r.out)
	if !number.MatchString(base) {
		dir, base = r.out, "%05d."+r.format
	}
	place := number.FindStringIndex(base)
	name := base[:place[0]] + fmt.Sprintf(base[place[0]:place[1]], n) + base[place[1]:]
	return filepath.Join(dir, name)
}

func (a *app) render(ctx context.Context, args []string, r *rendering) error {
	session, rest, err := a.splitArgs(args)
	if err != nil {
		return err
	}
	if r.out == "-" && r.format != "svg" && isTerminal(a.stdout) {
		return misuse("a %s is nothing for a terminal; name a file with -o, or pipe it", strings.ToUpper(r.format))
	}
	wanted := 1
	if r.compare {
		wanted = 2
	}
	switch {
	case len(rest) == 0:
		return misuse("which moment is to be drawn? for example: sajou-replay render %s end -o picture.svg", shellWord(session))
	case len(rest) < wanted:
		return misuse("--compare takes two addresses")
	case len(rest) > wanted:
		return misuse("%q is too much: %s", rest[wanted], map[bool]string{
			true: "--compare takes two addresses", false: "one moment or one range is drawn, and two with --compare",
		}[r.compare])
	}
	var ranges []replay.Range
	for _, text := range rest {
		parsed, err := replay.ParseRange(text)
		if err != nil {
			return err
		}
		ranges = append(ranges, parsed)
	}
	sc, err := a.readScene(r.scene)
	if err != nil {
		return err
	}
	t, err := a.target(session)
	if err != nil {
		return err
	}
	defer t.Close()
	s := t.stagedWith(sc)
	moments := strings.Contains(strings.Join(rest, " "), "..")
	switch {
	case r.compare && moments:
		return misuse("--compare takes two moments, not a range")
	case r.compare:
		return a.renderCompared(ctx, s, ranges, r)
	}
	first, last, err := t.travel.ResolveRange(ctx, ranges[0])
	if err != nil {
		return err
	}
	switch {
	case r.sheet:
		return a.renderSheet(ctx, s, first, last, r)
	case r.format == "gif" || r.many():
		return a.renderFilm(ctx, s, first, last, r)
	case moments:
		return misuse("a range makes a film (-o film.gif, -o frames/%%05d.png) or a contact sheet (--sheet), not one picture")
	}
	return a.renderMoment(ctx, s, first, r)
}

// readScene reads the one scene of a file; nil if there is no file.
func (a *app) readScene(file string) (*scene.Scene, error) {
	if file == "" {
		return nil, nil
	}
	declared, err := a.readDeclared(new(choreography.Catalog), []string{file}, "nothing was drawn")
	if err != nil {
		return nil, err
	}
	var found *scene.Scene
	for _, d := range declared {
		if sc, ok := d.(*scene.Scene); ok {
			found = sc // the last takes the place of the others
		}
	}
	if found == nil {
		return nil, fail(exitNo, "there is no scene in %s", file)
	}
	return found, nil
}

// options lays out the picture of a shot.
func (r *rendering) options(s staged, at shot) picture.Options {
	opt := picture.Options{Width: r.width, Places: r.places}
	if r.caption {
		opt.Title, opt.Address, opt.Clock = s.name, at.String(), true
	}
	return opt
}

// rendered is what was made, for the line about it.
type rendered struct {
	File    string        `json:"file,omitempty"`
	Format  string        `json:"format,omitempty"`
	Width   int           `json:"width,omitempty"`
	Height  int           `json:"height,omitempty"`
	Frames  int           `json:"frames"`
	Seq     eventlog.Seq  `json:"seq"`
	At      float64       `json:"at"`
	Omitted int           `json:"omitted,omitempty"`
	clock   time.Duration // At
	address string
}

// tellRendered says what was made, unless the picture itself went to stdout.
func (a *app) tellRendered(r *rendering, made rendered) error {
	if made.Omitted > 0 {
		fmt.Fprintf(a.stderr, "sajou-replay: %d figures, beams and speeches were too many for the picture and left out\n", made.Omitted)
	}
	if r.out == "-" {
		return nil
	}
	o := a.output()
	o.format = "text"
	if r.json {
		o.format = "json"
	}
	text := made.File
	if made.Width > 0 {
		text += fmt.Sprintf(": %dx%d", made.Width, made.Height)
	}
	if made.Frames > 1 {
		text += ", " + plural(made.Frames, "picture", "pictures")
	}
	text += fmt.Sprintf(", at %s, %s", made.address, clockText(made.clock))
	return o.one(printable(text), made)
}

// put writes one picture to where the output goes.
func (a *app) put(name string, write func(io.Writer) error) error {
	if name == "-" {
		return writeTo(a.stdout, write)
	}
	if err := hasDirectory(name); err != nil {
		return err
	}
	return writeFile(name, write)
}

// hasDirectory tells what is wrong with the directory that a file is to be in.
func hasDirectory(name string) error {
	switch info, err := os.Stat(filepath.Dir(name)); {
	case errors.Is(err, fs.ErrNotExist):
		return fail(exitNo, "there is no directory %s", filepath.Dir(name))
	case err == nil && !info.IsDir():
		return fail(exitNo, "%s is no directory", filepath.Dir(name))
	}
	return nil
}

func (a *app) renderMoment(ctx context.Context, s staged, m replay.Moment, r *rendering) error {
	f, err := s.frame(ctx, m)
	if err != nil {
		return err
	}
	at := shot{m, f.At, f}
	d := picture.Draw(f, r.options(s, at))
	if err := a.put(r.out, drawn(d, r.format)); err != nil {
		return err
	}
	return a.tellRendered(r, made(r, d, at, 1))
}

func made(r *rendering, d *picture.Drawing, at shot, frames int) rendered {
	m := rendered{File: r.out, Format: r.format, Frames: frames, Seq: at.Seq, At: projection.Millis(at.At), clock: at.At, address: at.String()}
	if d != nil {
		w, h := d.Size()
		m.Width, m.Height, m.Omitted = int(math.Ceil(w)), int(math.Ceil(h)), d.Omitted()
	}
	return m
}

// stepOf is how much session time lies between two pictures of a film.
func (r *rendering) step() time.Duration {
	return max(time.Duration(math.Round(float64(time.Second)*r.speed/r.fps)), 1)
}

func (a *app) renderFilm(ctx context.Context, s staged, first, last replay.Moment, r *rendering) error {
	over, err := s.span(ctx, first, last)
	if err != nil {
		return err
	}
	n, at := over.instants(r.step())
	if n > maxPictures {
		return misuse("that would be %d pictures, and %d are the most; take a shorter range, a lower --fps or a higher --speed", n, maxPictures)
	}
	if r.format == "gif" {
		return a.renderGIF(ctx, s, over, n, at, r)
	}
	if number.MatchString(filepath.Base(r.out)) {
		if err := os.MkdirAll(filepath.Dir(r.out), 0o777); err != nil {
			return err
		}
	} else if err := os.MkdirAll(r.out, 0o777); err != nil {
		return err
	}
	m := newMeter(a.stderr)
	defer m.clear()
	done := 0
	var result rendered
	for at, err := range s.film(ctx, over, n, at) {
		if err != nil {
			return fmt.Errorf("after %s: %w", plural(done, "picture", "pictures"), err)
		}
		done++
		d := picture.Draw(at.Frame, r.options(s, at))
		if err := writeFile(r.file(done), drawn(d, r.format)); err != nil {
			return err
		}
		m.show(fmt.Sprintf("%d of %d pictures", done, n))
		result = made(r, d, at, done)
	}
	m.clear()
	result.File = r.file(1)
	if done > 1 {
		result.File += " to " + filepath.Base(r.file(done))
	}
	return a.tellRendered(r, result)
}

// renderGIF writes a film. No more than a few of its pictures are in memory.
func (a *app) renderGIF(ctx context.Context, s staged, over span, n int, at func(i int) time.Duration, r *rendering) error {
	m := newMeter(a.stderr)
	defer m.clear()
	var failed error
	var result rendered
	done := 0
	cells := func(yield func(picture.Cell) bool) {
		for at, err := range s.film(ctx, over, n, at) {
			if err != nil {
				failed = err
				return
			}
			done++
			m.show(fmt.Sprintf("%d of %d pictures", done, n))
			result = made(r, nil, at, done)
			cell := picture.Cell{Frame: at.Frame}
			if r.caption {
				cell.Caption = at.String()
			}
			if !yield(cell) {
				return
			}
		}
	}
	opt := picture.Animation{Options: picture.Options{Width: r.width, Places: r.places}, Rate: int(r.fps)}
	if r.caption {
		opt.Title, opt.Clock = s.name, true
	}
	err := a.put(r.out, func(w io.Writer) error {
		err := picture.Animate(w, cells, opt)
		return cmp.Or(failed, err)
	})
	m.clear()
	if err != nil {
		return err
	}
	return a.tellRendered(r, result)
}

func (a *app) renderSheet(ctx context.Context, s staged, first, last replay.Moment, r *rendering) error {
	over, err := s.span(ctx, first, last)
	if err != nil {
		return err
	}
	shots := s.entries(ctx, over)
	n := r.count
	if n > 0 {
		shots = s.film(ctx, over, n, over.spread(n))
	} else if n = int(min(last.Seq-first.Seq+1, mostSheet+1)); n > mostSheet {
		return misuse("that would be a picture for each of %d entries, and %d are the most; take a shorter range, or --count", last.Seq-first.Seq+1, mostSheet)
	}
	m := newMeter(a.stderr)
	defer m.clear()
	var cells []picture.Cell
	var at shot
	for shot, err := range shots {
		if err != nil {
			return err
		}
		caption := shot.String()
		if n == 0 || r.count == 0 {
			if caption, err = s.caption(ctx, shot.Moment); err != nil {
				return err
			}
		}
		cells = append(cells, picture.Cell{Frame: shot.Frame, Caption: caption})
		at = shot
		m.show(fmt.Sprintf("%d of %d pictures", len(cells), n))
	}
	opt := picture.Options{Width: r.width, Places: r.places, Clock: true}
	if r.caption {
		opt.Title, opt.Address = s.name, fmt.Sprintf("%v..%v", first, last)
	}
	d := picture.Sheet(cells, r.columns, opt)
	if err := r.fits(d); err != nil {
		return err
	}
	if err := a.put(r.out, drawn(d, r.format)); err != nil {
		return err
	}
	m.clear()
	return a.tellRendered(r, made(r, d, at, len(cells)))
}

// fits refuses what would be too large as pixels.
func (r *rendering) fits(d *picture.Drawing) error {
	w, h := d.Size()
	if r.format == "png" && (w > mostWidth || w*h > maxPixels) {
		return misuse("that would be %.0fx%.0f pixels; take fewer pictures, a smaller --width, or an SVG", w, h)
	}
	return nil
}

// caption is what stands below the picture of an entry: its number and what it
// is.
func (s staged) caption(ctx context.Context, m replay.Moment) (string, error) {
	if m.Seq == 0 || m.Offset != 0 {
		return m.String(), nil
	}
	e, err := s.log.Entry(ctx, m.Seq)
	if err != nil {
		return "", err
	}
	word := e.Kind.String()
	if sig, err := signal.Decode(e.Data); e.Kind == eventlog.KindSignal && err == nil {
		word = sig.Type
	}
	return fmt.Sprintf("%v %s", m, word), nil
}

// difference is one thing in which two moments differ, for JSON.
type difference struct {
	Entity string `json:"entity"`
	Change string `json:"change"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

func (a *app) renderCompared(ctx context.Context, s staged, ranges []replay.Range, r *rendering) error {
	var shots [2]shot
	for i, both := range ranges {
		m, _, err := s.target.travel.ResolveRange(ctx, both)
		if err != nil {
			return err
		}
		f, err := s.frame(ctx, m)
		if err != nil {
			return err
		}
		shots[i] = shot{m, f.At, f}
	}
	opt := picture.CompareOptions{Options: picture.Options{Width: r.width, Places: r.places}}
	for i, heading := range []*string{&opt.Before, &opt.After} {
		var err error
		if *heading, err = s.caption(ctx, shots[i].Moment); err != nil {
			return err
		}
	}
	if r.caption {
		opt.Title = s.name
	}
	d, differences := picture.Compare(shots[0].Frame, shots[1].Frame, opt)
	if err := r.fits(d); err != nil {
		return err
	}
	result := struct {
		rendered
		Differences []difference `json:"differences"`
	}{made(r, d, shots[1], 2), []difference{}}
	lines := make([]string, len(differences))
	for i, d := range differences {
		lines[i] = printable(d.String())
		result.Differences = append(result.Differences, difference{d.Entity, string(d.Change), d.Before, d.After})
	}
	if r.out != "" {
		if err := a.put(r.out, drawn(d, r.format)); err != nil {
			return err
		}
	}
	// The differences go where the picture does not.
	o := a.output()
	if r.out == "-" {
		o.Reset(a.stderr)
	}
	if o.format = "text"; r.json {
		o.format = "json"
	}
	if r.json || len(lines) > 0 {
		if err := o.one(strings.Join(lines, "\n"), result); err != nil {
			return err
		}
	}
	if len(differences) > 0 {
		return answerNo
	}
	return nil
}

// drawn writes a drawing as SVG or PNG.
func drawn(d *picture.Drawing, format string) func(io.Writer) error {
	return func(w io.Writer) error {
		if format == "png" {
			return picture.EncodePNG(w, d.Image(0))
		}
		_, err := w.Write(d.AppendSVG(nil))
		return err
	}
}
