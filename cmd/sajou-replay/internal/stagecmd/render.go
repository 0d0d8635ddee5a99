package stagecmd

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// defaultFPS is the number of frames in a second of film.
const defaultFPS = 10

// rendering holds the flags of render.
type rendering struct {
	out     string
	format  string // svg, png or gif; chooseFormat replaces an empty one
	scene   string
	width   int
	fps     float64
	speed   float64
	count   int
	columns int
	sheet   bool
	compare bool
	defines cli.Definitions
	caption bool
	places  bool
	theme   string
	font    string
	json    bool

	timeline bool
	sequence bool
	perPage  int
	page     int

	letters *picture.Font // of the file font, nil without one
	missing map[rune]bool // characters without a glyph in an image
}

// Render returns the command "render".
func Render(a *cli.App) *cobra.Command {
	var r rendering
	cmd := &cobra.Command{
		Use:   "render [SESSION] (ADDR | RANGE | ADDR ADDR --compare | [RANGE] --timeline | [RANGE] --sequence) -O FILE",
		Short: "Draw the stage as SVG, PNG or GIF",
		Long: `Render draws the stage at a moment or over a range into the file that -O names;
its extension, or --format, selects the format. -O - is stdout. Render prints a
line about the result, or with -o json an object.

  render ADDR -O a.svg              a picture, as SVG or PNG
  render RANGE -O a.gif             an animation, --fps frames a second
  render RANGE -O frames/%05d.png   its frames as PNG or SVG, numbered from 1
  render RANGE -O frames/           the same, named 00001.png and so on
  render RANGE --sheet -O a.svg     a contact sheet, as SVG or PNG: a picture for
                                    each entry, or --count N at equal intervals
  render ADDR ADDR --compare -O a.svg
                                    two moments side by side with their
                                    differences marked, and a list of the
                                    differences; -O is optional
  render --timeline -O a.svg        the session along its time: a lane for each
                                    agent with its tasks, calls and errors, and
                                    the tokens and the cost so far as lines
  render --sequence -O pages/%02d.svg
                                    who asked whom, as the pages of a sequence
                                    diagram with --per-page rows each; with one
                                    file, the page that --page names

--speed 4 shows four seconds of session time in a second of film. --scene draws
with the scene of a file instead of the recorded ones. A session without a scene
is drawn on a default one, where agents take free places. An episode shows its
characters. The pictures of a sheet show entries half a second later, when their
effect is seen. Texts without room are left out and counted in the picture.

The built-in fonts have Latin, Greek and Cyrillic letters. In PNG and GIF,
--font FILE adds the letters of another one, such as Chinese or Arabic; emoji
are drawn in one color. Characters that no font has become boxes, which a remark
on stderr counts. SVG leaves them to the fonts of its viewer.

The same moment gives the same bytes on every machine.

` + cli.DefinitionsHelp + `

The exit code is 0, or with --compare 1 if the moments differ, and 7 if a picture
could not be drawn.`,
		Example: `  sajou-replay render end -O picture.svg
  sajou-replay render 36+50ms -O picture.png --width 1920 --caption
  sajou-replay render night-shift 30..40 --fps 12 -O film.gif
  sajou-replay render 30..40 --sheet --columns 4 -O sheet.png
  sajou-replay render 35 36 --compare -O difference.svg
  sajou-replay render --timeline -O timeline.svg
  sajou-replay render 2..end --sequence --per-page 20 --theme light -O sequence.png`,
		Args: func(cmd *cobra.Command, args []string) error {
			r.takeFile(a)
			if r.timeline || r.sequence {
				return cli.Between(0, 2)(cmd, args)
			}
			return cli.Between(1, 3)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.json && a.Format == "text" {
				a.Format = "json"
			}
			if err := r.check(cmd); err != nil {
				return err
			}
			return runRender(cmd.Context(), a, args, &r)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&r.out, "out", "O", "", "write to `FILE`, directory, or pattern with %05d; - is stdout")
	flags.StringVar(&r.format, "format", "", "svg, png or gif; default from the extension of FILE")
	r.defines.Flag(cmd)
	flags.StringVar(&r.scene, "scene", "", "use the scene of `FILE` instead of the recorded ones")
	flags.IntVar(&r.width, "width", 0, "width of one picture in pixels (default 960, 320 in a sheet, 640 with --compare)")
	flags.Float64Var(&r.fps, "fps", defaultFPS, "frames in a second of film")
	flags.Float64Var(&r.speed, "speed", 1, "seconds of session time in a second of film")
	flags.BoolVar(&r.sheet, "sheet", false, "draw a contact sheet of a range")
	flags.IntVar(&r.count, "count", 0, "number of pictures of a sheet; 0 draws one for each entry")
	flags.IntVar(&r.columns, "columns", 0, "number of columns of a sheet; 0 chooses one")
	flags.BoolVar(&r.compare, "compare", false, "draw two moments side by side")
	flags.BoolVar(&r.timeline, "timeline", false, "draw a range, or the session, along its time")
	flags.BoolVar(&r.sequence, "sequence", false, "draw who asked whom in a range, or the session")
	flags.IntVar(&r.perPage, "per-page", 40, "most rows of a page of --sequence")
	flags.IntVar(&r.page, "page", 0, "draw page `N` of --sequence; default the first")
	flags.BoolVar(&r.caption, "caption", false, "add a line with the session, the moment and its time")
	flags.BoolVar(&r.places, "places", false, "mark the slots, waypoints and routes of the scene")
	flags.StringVar(&r.theme, "theme", "", "light or dark: replace a background of the other kind; default the scene's own")
	flags.StringVar(&r.font, "font", "", "TrueType or OpenType `FILE` for characters that the built-in fonts lack, in PNG and GIF")
	flags.BoolVar(&r.json, "json", false, "describe the result as JSON, as -o json does")
	_ = flags.MarkHidden("json") // -o json says the same, since -o no longer names the file
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"svg", "png", "gif"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("theme", cobra.FixedCompletions([]string{"light", "dark"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("font", "ttf", "otf", "ttc")
	_ = cmd.MarkFlagFilename("scene", "json", "yaml", "yml", "zip")
	_ = cmd.MarkFlagFilename("out", "svg", "png", "gif")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// takeFile treats -o X as -O X, with a warning, unless X is a format of results: earlier
// versions took the file of this command under -o. It runs before the format is checked.
func (r *rendering) takeFile(a *cli.App) {
	switch a.Format {
	case "text", "json", "jsonl", "":
		return
	}
	if r.out == "" {
		r.out = a.Format
		fmt.Fprintf(a.Stderr, "sajou-replay: -o names the format of results; for the file write -O %s, since -o FILE is deprecated\n", cli.ShellWord(r.out))
		a.Format = "text"
	}
}

// check refuses contradicting flags, and chooses the format.
func (r *rendering) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case moreThanOne(r.sheet, r.compare, r.timeline, r.sequence):
		return cli.Misuse("--sheet, --compare, --timeline and --sequence exclude each other")
	case (r.timeline || r.sequence) && (given("fps") || given("speed") || given("scene") || given("caption") || given("places")):
		return cli.Misuse("--fps, --speed, --scene, --caption and --places are for pictures of the stage, not for --timeline and --sequence")
	case (given("per-page") || given("page")) && !r.sequence:
		return cli.Misuse("--per-page and --page need --sequence")
	case r.perPage < 1 || r.perPage > 400:
		return cli.Misuse("--per-page %d: must be from 1 to 400", r.perPage)
	case given("page") && r.page < 1:
		return cli.Misuse("--page %d: must be at least 1", r.page)
	case r.out == "" && !r.compare:
		return cli.Misuse("-O FILE is missing; for example: -O picture.svg")
	case given("width") && (r.width < film.MinWidth || r.width > film.MaxWidth):
		return cli.Misuse("--width %d: must be from %d to %d", r.width, film.MinWidth, film.MaxWidth)
	case !(r.fps > 0) || r.fps > 100:
		return cli.Misuse("--fps %v: must be above 0 and at most 100", r.fps)
	case !(r.speed > 0) || math.IsInf(r.speed, 0):
		return cli.Misuse("--speed %v: must be above 0", r.speed)
	case (given("count") || given("columns")) && !r.sheet:
		return cli.Misuse("--count and --columns need --sheet")
	case r.count < 0 || r.count > film.MaxSheet || given("count") && r.count == 0:
		return cli.Misuse("--count %d: must be from 1 to %d", r.count, film.MaxSheet)
	case r.columns < 0 || r.columns > film.MaxSheet:
		return cli.Misuse("--columns %d: must be from 1 to %d", r.columns, film.MaxSheet)
	case given("theme") && !slices.Contains(picture.Themes(), picture.Theme(r.theme)):
		return cli.Misuse("--theme %q: the themes are light and dark", r.theme)
	case (given("fps") || given("speed")) && (r.sheet || r.compare):
		return cli.Misuse("--fps and --speed exclude --sheet and --compare")
	}
	if err := r.chooseFormat(); err != nil {
		return err
	}
	if given("font") && r.format == "svg" {
		return cli.Misuse("--font is for png and gif: SVG leaves the letters that the built-in fonts lack to its viewer")
	}
	if (given("fps") || given("speed")) && r.format != "gif" && !r.many() {
		return cli.Misuse("--fps and --speed need a film, as in -O film.gif or -O frames/%%05d.png")
	}
	return nil
}

// moreThanOne reports whether several conditions hold.
func moreThanOne(conditions ...bool) bool {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n > 1
}

// chooseFormat derives the format from the name of the file, unless --format is
// given.
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
		return cli.Misuse("-O %q: unknown format; end it with .svg, .png or .gif, or use --format", r.out)
	case "svg", "png":
	case "gif":
		switch {
		case r.sheet || r.compare || r.timeline || r.sequence || r.many():
			return cli.Misuse("a GIF holds a film; use svg or png with --sheet, --compare, --timeline, --sequence and numbered frames")
		case r.width > film.MaxGIFWidth:
			return cli.Misuse("--width %d: must be at most %d for a GIF", r.width, film.MaxGIFWidth)
		case r.fps > 50 || r.fps != math.Trunc(r.fps):
			return cli.Misuse("--fps %v: must be a whole number from 1 to 50 for a GIF", r.fps)
		}
	default:
		return cli.Misuse("--format %q: the formats are svg, png and gif", r.format)
	}
	if r.many() && (r.sheet || r.compare || r.timeline) {
		return cli.Misuse("-O %q names many files, but --sheet, --compare and --timeline draw one picture; name one file", r.out)
	}
	return nil
}

// number matches the place of the frame's number in the name of a file.
var number = regexp.MustCompile(`%0?[1-9]?d`)

// many reports whether the output is a file for each frame.
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

// file returns the name of the file of the nth frame, from 1.
func (r *rendering) file(n int) string {
	dir, base := filepath.Split(r.out)
	if !number.MatchString(base) {
		dir, base = r.out, "%05d."+r.format
	}
	place := number.FindStringIndex(base)
	name := base[:place[0]] + fmt.Sprintf(base[place[0]:place[1]], n) + base[place[1]:]
	return filepath.Join(dir, name)
}

func runRender(ctx context.Context, a *cli.App, args []string, r *rendering) error {
	session, rest, err := a.SplitArgs(args)
	if err != nil {
		return err
	}
	if r.out == "-" && r.format != "svg" && cli.IsTerminal(a.Stdout) {
		return cli.Misuse("refusing to write %s to a terminal; use -O FILE, or a pipe", strings.ToUpper(r.format))
	}
	wanted := 1
	if r.compare {
		wanted = 2
	}
	if (r.timeline || r.sequence) && len(rest) == 0 {
		rest = []string{wholeSession}
	}
	switch {
	case len(rest) == 0:
		return cli.Misuse("no address to draw; for example: sajou-replay render %s end -O picture.svg", cli.ShellWord(session))
	case len(rest) < wanted:
		return cli.Misuse("--compare needs two addresses")
	case len(rest) > wanted:
		return cli.Misuse("too many arguments: %q; %s", rest[wanted], map[bool]string{
			true: "--compare takes two addresses", false: "render draws one moment or one range, or two moments with --compare",
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
	if err := r.readFont(ctx); err != nil {
		return err
	}
	if r.scene != "" && len(r.defines) > 0 {
		return cli.Misuse("--scene and --define exclude each other; a file of --define may hold a scene")
	}
	sc, err := a.ReadScene(ctx, r.scene)
	if err != nil {
		return err
	}
	t, err := a.OpenSession(session)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := a.SeeThrough(ctx, t, r.defines); err != nil {
		return err
	}
	s := t.Reel(sc)
	moments := strings.Contains(strings.Join(rest, " "), "..")
	switch {
	case r.compare && moments:
		return cli.Misuse("--compare needs two moments, not a range")
	case r.compare:
		return renderCompared(ctx, a, t, s, ranges, r)
	}
	first, last, err := t.Travel.ResolveRange(ctx, ranges[0])
	if err != nil {
		return err
	}
	switch {
	case r.timeline || r.sequence:
		return renderOverview(ctx, a, s, first, last, r)
	case r.sheet:
		return renderSheet(ctx, a, s, first, last, r)
	case r.format == "gif" || r.many():
		return renderFilm(ctx, a, s, first, last, r)
	case moments:
		return cli.Misuse("a range is not one picture; draw a film with -O film.gif or -O frames/%%05d.png, or a contact sheet with --sheet")
	}
	return renderMoment(ctx, a, s, first, r)
}

// style returns the flags that change the look of a picture.
func (r *rendering) style() film.Style {
	return film.Style{Width: r.width, Places: r.places, Caption: r.caption, Theme: picture.Theme(r.theme), Font: r.letters}
}

// rendered describes a result.
type rendered struct {
	answer.RenderedView
	clock   time.Duration // At
	address string
}

// reportRendered prints the description of a result, unless the picture itself went
// to stdout.
func reportRendered(a *cli.App, r *rendering, made rendered) error {
	if made.Omitted > 0 {
		fmt.Fprintf(a.Stderr, "sajou-replay: left out %d figures, beams and texts, for which the picture has no room\n", made.Omitted)
	}
	r.remarkMissing(a)
	if r.out == "-" {
		return nil
	}
	text := made.File
	if made.Width > 0 {
		text += fmt.Sprintf(": %dx%d", made.Width, made.Height)
	}
	if made.Frames > 1 {
		text += ", " + cli.Plural(made.Frames, "picture", "pictures")
	}
	text += fmt.Sprintf(", at %s, %s", made.address, cli.ClockText(made.clock))
	return a.Output().One(termtext.Printable(text), made.RenderedView)
}

func renderMoment(ctx context.Context, a *cli.App, s *film.Reel, m replay.Moment, r *rendering) error {
	at, err := s.Shot(ctx, m)
	if err != nil {
		return err
	}
	d := s.Draw(at, r.style())
	if err := a.WritePicture(r.out, r.encode(d)); err != nil {
		return err
	}
	return reportRendered(a, r, made(r, d, at, 1))
}

func made(r *rendering, d *picture.Drawing, at film.Shot, frames int) rendered {
	m := rendered{answer.ViewRendered(d, at, frames), at.At, at.String()}
	m.File, m.Format = r.out, r.format
	return m
}

// filmRemedy follows an error about a film that is too large.
const filmRemedy = "use a shorter range, a smaller --width, a lower --fps or a higher --speed"

func renderFilm(ctx context.Context, a *cli.App, s *film.Reel, first, last replay.Moment, r *rendering) error {
	over, err := s.Interval(ctx, first, last)
	if err != nil {
		return err
	}
	instants, err := over.Every(film.Step(r.fps, r.speed))
	if err != nil {
		return cli.Misuse("%w; %s", err, filmRemedy)
	}
	n := len(instants)
	if r.format != "svg" {
		if err := s.FitsPixels(ctx, over, n, r.style()); cli.IsA[*film.BoundError](err) {
			return cli.Misuse("%w; %s", err, filmRemedy)
		} else if err != nil {
			return err
		}
	}
	if r.format == "gif" {
		return renderGIF(ctx, a, s, over, instants, r)
	}
	if number.MatchString(filepath.Base(r.out)) {
		if err := cli.MakeDirectory(filepath.Dir(r.out)); err != nil {
			return err
		}
	} else if err := cli.MakeDirectory(r.out); err != nil {
		return err
	}
	m := cli.NewProgress(a.Stderr)
	defer m.Clear()
	done := 0
	var result rendered
	for at, err := range s.At(ctx, over, instants) {
		if err != nil {
			return fmt.Errorf("after %s: %w", cli.Plural(done, "picture", "pictures"), err)
		}
		done++
		d := s.Draw(at, r.style())
		if err := cli.WriteFile(r.file(done), r.encode(d)); err != nil {
			return err
		}
		m.Show(fmt.Sprintf("%d of %d pictures", done, n))
		result = made(r, d, at, done)
	}
	m.Clear()
	result.File = r.file(1)
	if done > 1 {
		result.File += " to " + filepath.Base(r.file(done))
	}
	return reportRendered(a, r, result)
}

func renderGIF(ctx context.Context, a *cli.App, s *film.Reel, over film.Interval, instants []time.Duration, r *rendering) error {
	m := cli.NewProgress(a.Stderr)
	defer m.Clear()
	var last film.Shot
	frames := 0
	err := a.WritePicture(r.out, func(w io.Writer) (err error) {
		last, err = s.GIF(ctx, w, over, instants, int(r.fps), r.style(), func(done int) {
			frames = done
			m.Show(fmt.Sprintf("%d of %d pictures", done, len(instants)))
		})
		return err
	})
	m.Clear()
	if err != nil {
		return err
	}
	return reportRendered(a, r, made(r, nil, last, frames))
}

func renderSheet(ctx context.Context, a *cli.App, s *film.Reel, first, last replay.Moment, r *rendering) error {
	over, err := s.Interval(ctx, first, last)
	if err != nil {
		return err
	}
	m := cli.NewProgress(a.Stderr)
	defer m.Clear()
	d, at, n, err := s.Sheet(ctx, over, film.SheetConfig{
		Style: r.style(), Count: r.count, Columns: r.columns,
		Progress: func(done, total int) { m.Show(fmt.Sprintf("%d of %d pictures", done, total)) },
	})
	if cli.IsA[*film.BoundError](err) {
		return cli.Misuse("%w; use a shorter range or a smaller --count", err)
	}
	if err != nil {
		return err
	}
	if err := r.fits(d); err != nil {
		return err
	}
	if err := a.WritePicture(r.out, r.encode(d)); err != nil {
		return err
	}
	m.Clear()
	return reportRendered(a, r, made(r, d, at, n))
}

// fits refuses a drawing that would be too large as pixels.
func (r *rendering) fits(d *picture.Drawing) error {
	if r.format != "png" {
		return nil
	}
	if err := film.CheckPNG(d); err != nil {
		return cli.Misuse("%w; use fewer pictures, a smaller --width, or SVG", err)
	}
	return nil
}

func renderCompared(ctx context.Context, a *cli.App, t *cli.OpenedSession, s *film.Reel, ranges []replay.Range, r *rendering) error {
	var shots [2]film.Shot
	for i, both := range ranges {
		m, _, err := t.Travel.ResolveRange(ctx, both)
		if err != nil {
			return err
		}
		if shots[i], err = s.Shot(ctx, m); err != nil {
			return err
		}
	}
	opt := picture.CompareOptions{Options: picture.Options{Width: r.width, Places: r.places, Theme: picture.Theme(r.theme)}}
	for i, heading := range []*string{&opt.Before, &opt.After} {
		var err error
		if *heading, err = s.Caption(ctx, shots[i].Moment); err != nil {
			return err
		}
	}
	if r.caption {
		opt.Title = s.Name()
	}
	d, differences := picture.Compare(shots[0].Frame, shots[1].Frame, opt)
	if err := r.fits(d); err != nil {
		return err
	}
	result := answer.ViewCompared(made(r, d, shots[1], 2).RenderedView, differences)
	lines := make([]string, len(differences))
	for i, d := range differences {
		lines[i] = termtext.Printable(d.String())
	}
	if r.out != "" {
		if err := a.WritePicture(r.out, r.encode(d)); err != nil {
			return err
		}
	}
	// The picture has stdout if -O is -; the differences then go to stderr.
	o := a.Output()
	if r.out == "-" {
		o.Reset(a.Stderr)
	}
	if o.Format != "text" || len(lines) > 0 {
		if err := o.One(strings.Join(lines, "\n"), result); err != nil {
			return err
		}
	}
	if len(differences) > 0 {
		return cli.AnswerNo
	}
	return nil
}
