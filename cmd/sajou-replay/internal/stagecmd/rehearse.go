package stagecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// rehearseFlags holds the flags of rehearse.
type rehearseFlags struct {
	watch  bool
	render string
	scene  string
	format string // of the pictures
}

// maxCommands bounds the commands of one scenario, which are held in memory.
const maxCommands = 500_000

// Rehearse returns the command "rehearse".
func Rehearse(a *cli.App) *cobra.Command {
	var r rehearseFlags
	cmd := &cobra.Command{
		Use:   "rehearse FILE...",
		Short: "Run choreographies on a script of signals",
		Long: `Rehearse runs scenarios and writes the commands of their choreographies. It opens
no store and records nothing. A file has one scenario or an array of them; - is
stdin. A scenario is a JSON object:

  { "id": "hello", "name": "A greeting",
    "definitions": [ choreography... ],
    "script": [ {"signal": envelope} | {"advance": ms} ... ],
    "expected": [ command... ],
    "scene": scene, "values": [ {"path": path, "value": value} ... ] }

FILE.txtar is a transcript of extract-test, which has the scenario inside.
A signal takes effect at the present session time; an advance moves that time.
Definitions that define add would refuse are not rehearsed.
If the scenario has "expected", its commands are compared, with the performances
named p1, p2 and so on in the order in which they begin. Its "values" are compared
with those of the stage at the end, which has the "scene" or else the default one.

--render draws the stage at the beginning and after each advance, as a contact
sheet: into FILE.svg or FILE.png, or with a directory into DIR/ID.svg for each
scenario. --scene draws with the scene of a file, not with the default one.

--watch runs the files again each time that one of them changes, also after an
error, until it is interrupted.

The exit code is 1 if a file has an error or the commands of a scenario differ
from the expected ones, and else 0.`,
		Example: `  sajou-replay rehearse greeting.json
  sajou-replay rehearse greeting.json -o jsonl
  sajou-replay rehearse --watch greeting.json --render greeting.svg --scene scene.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Misuse("no scenario to run; name files, or - for stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case r.scene != "" && r.render == "":
				return cli.Misuse("--scene needs --render FILE")
			case r.watch && slices.Contains(args, "-"):
				return cli.Misuse("--watch cannot read stdin again; name files")
			case r.watch && a.Format == "json":
				return cli.Misuse("--watch never ends, so -o json could not close its array; use -o jsonl")
			}
			if err := r.chooseFormat(); err != nil {
				return err
			}
			if !r.watch {
				return rehearseFiles(cmd.Context(), a, args, &r)
			}
			return rehearseOnChange(cmd.Context(), a, args, &r)
		},
	}
	cmd.Flags().BoolVar(&r.watch, "watch", false, "run again whenever a file changes")
	cmd.Flags().StringVar(&r.render, "render", "", "draw the stage into `FILE` or directory")
	cmd.Flags().StringVar(&r.scene, "scene", "", "with --render, use the scene of `FILE`")
	_ = cmd.MarkFlagFilename("render", "svg", "png")
	_ = cmd.MarkFlagFilename("scene", "json", "yaml", "yml", "zip")
	return cmd
}

// chooseFormat derives the format of the pictures from the name of --render.
func (r *rehearseFlags) chooseFormat() error {
	switch ext := strings.ToLower(filepath.Ext(r.render)); {
	case r.render == "":
	case r.isDir():
		r.format = "svg"
	case ext == ".svg", ext == ".png":
		r.format = ext[1:]
	default:
		return cli.Misuse("--render %q: unknown format; end it with .svg or .png, or name a directory as in %s/", r.render, r.render)
	}
	return nil
}

// isDir reports whether --render names a directory, with a file for each scenario.
func (r *rehearseFlags) isDir() bool {
	if strings.HasSuffix(r.render, "/") || strings.HasSuffix(r.render, string(filepath.Separator)) {
		return true
	}
	info, err := os.Stat(r.render)
	return err == nil && info.IsDir()
}

// rehearseOnChange rehearses, and again each time that a file changes. It ends with
// the context, or when the reader of the output has closed it.
func rehearseOnChange(ctx context.Context, a *cli.App, files []string, r *rehearseFlags) error {
	watched := files
	if r.scene != "" {
		watched = append(watched[:len(watched):len(watched)], r.scene)
	}
	w, stop := newWatch(a, watched)
	defer stop()
	for {
		err := rehearseFiles(ctx, a, files, r)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if isBroken(err) {
			return err
		}
		cli.ExitCode(err, a.Stderr) // prints the error; the file may be corrected
		fmt.Fprintf(a.Stderr, "sajou-replay: watching %s; ctrl-C ends it\n", cli.Plural(len(watched), "file", "files"))
		changed, err := w.wait(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Stderr, "sajou-replay: changed: %s\n", termtext.Printable(strings.Join(changed, ", ")))
	}
}

func rehearseFiles(ctx context.Context, a *cli.App, files []string, r *rehearseFlags) error {
	var all []*rehearsal.Scenario
	var names []string // the file of each scenario
	for _, file := range files {
		file, text, err := a.ReadInput(ctx, file, cli.MaxDefinitions)
		if err != nil {
			return err
		}
		if text, err = scenarioText(file, text); err != nil {
			return err
		}
		var scenarios []*rehearsal.Scenario
		var diagnostics authored.Diagnostics
		if err := cli.Interruptibly(ctx, func() { scenarios, diagnostics = rehearsal.Parse(file, text) }); err != nil {
			return err
		}
		for _, d := range diagnostics {
			fmt.Fprintln(a.Stderr, termtext.Printable(d.String()))
		}
		if len(diagnostics) > 0 {
			return cli.Fail(cli.ExitNo, "%s has %s; nothing was rehearsed%s", file, cli.Plural(len(diagnostics), "error", "errors"), cli.Misplaced("rehearse", file, text))
		}
		var remarks authored.Diagnostics
		if err := cli.Interruptibly(ctx, func() { remarks = rehearsal.Remarks(file, text) }); err != nil {
			return err
		}
		for _, d := range remarks {
			fmt.Fprintln(a.Stderr, termtext.Printable(d.String()))
		}
		if remarks.Refused() {
			return cli.Fail(cli.ExitNo, "%s has %s; nothing was rehearsed", file, cli.Plural(len(remarks.Only(authored.SeverityError)), "error", "errors"))
		}
		for _, s := range scenarios {
			all, names = append(all, s), append(names, file)
		}
	}
	var sc *scene.Scene
	if r.scene != "" {
		var err error
		if sc, err = a.ReadScene(ctx, r.scene); err != nil {
			return err
		}
	}
	if r.render != "" && !r.isDir() && len(all) > 1 {
		return cli.Misuse("--render %s is one file, but there are %d scenarios; name a directory, as in --render pictures/", r.render, len(all))
	}
	o := a.Output()
	differ := 0
	for i, s := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		same, err := rehearseScenario(ctx, o, names[i], s)
		if err != nil {
			return err
		}
		if !same {
			differ++
		}
		if r.render == "" {
			continue
		}
		var drawing error
		if err := cli.Interruptibly(ctx, func() { drawing = r.draw(s, sc) }); err != nil {
			return err
		}
		if drawing != nil {
			return drawing
		}
	}
	if err := o.End(); err != nil {
		return err
	}
	if differ > 0 {
		fmt.Fprintf(a.Stderr, "sajou-replay: %d of %s differ from the expected commands\n", differ, cli.Plural(len(all), "scenario", "scenarios"))
		return cli.AnswerNo
	}
	return nil
}

// scenarioText returns the scenario of a transcript, and any other text as it is.
func scenarioText(file string, text []byte) ([]byte, error) {
	if filepath.Ext(file) != ".txtar" {
		return text, nil
	}
	for _, f := range rehearsal.Transcript(text) {
		if filepath.Ext(f.Name) == ".json" {
			return f.Text, nil
		}
	}
	return nil, cli.Misuse("%s has no file that ends with .json, so no scenario; extract-test writes one", file)
}

// draw writes the contact sheet of a scenario.
func (r *rehearseFlags) draw(s *rehearsal.Scenario, sc *scene.Scene) error {
	name := r.render
	if r.isDir() {
		if err := cli.MakeDirectory(r.render); err != nil {
			return err
		}
		name = filepath.Join(r.render, fileName(s.ID)+"."+r.format)
	}
	cells, more := stageOf(s, sc)
	title := s.Name
	if more > 0 {
		title += fmt.Sprintf(" (and %d more moments)", more)
	}
	d := picture.Sheet(cells, 0, picture.Options{Title: title, Address: s.ID, Clock: true})
	if err := cli.HasDirectory(name); err != nil {
		return err
	}
	return cli.WriteFile(name, cli.Encode(d, r.format))
}

// fileName returns a safe name of a file for the id of a scenario.
func fileName(id string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, termtext.Clip(id, 100))
	if strings.Trim(name, ".") == "" {
		return "scenario" + name
	}
	return name
}

// stageOf plays a scenario on a stage, and returns the frames at the beginning and
// after each advance. More counts those beyond the size of a sheet.
func stageOf(s *rehearsal.Scenario, sc *scene.Scene) (cells []picture.Cell, more int) {
	scheduler, st := choreography.NewScheduler(), stage.New(stage.Config{})
	scheduler.Observe(st, st)
	switch {
	case sc != nil:
		st.SetScene(sc)
	case s.Scene != nil:
		st.SetScene(s.Scene)
	}
	for _, d := range s.Definitions {
		// rehearseScenario has reported a definition that cannot come into force.
		if scheduler.Define(d) == nil {
			st.Choreographed()
		}
	}
	caption := "at first"
	see := func() {
		if len(cells) == film.MaxSheet {
			more++
			return
		}
		cells = append(cells, picture.Cell{Frame: st.Frame(), Caption: caption})
	}
	see()
	seq := uint64(0)
	var came []string
	for _, step := range s.Script {
		if step.Signal != nil {
			seq++
			scheduler.Signal(seq, step.Signal)
			st.Signal(seq, step.Signal)
			came = append(came, step.Signal.Type)
			continue
		}
		to := scheduler.Now() + step.Advance
		if to < scheduler.Now() {
			to = math.MaxInt64
		}
		scheduler.Advance(to)
		st.Advance(to)
		caption, came = strings.Join(came, ", "), nil
		see()
	}
	if len(came) > 0 {
		scheduler.Advance(scheduler.Now())
		st.Advance(scheduler.Now())
		caption = strings.Join(came, ", ")
		see()
	}
	return cells, more
}

// rehearseScenario runs one scenario and writes its commands and the verdict on them.
func rehearseScenario(ctx context.Context, o *cli.Output, file string, s *rehearsal.Scenario) (same bool, err error) {
	var commands []choreography.Command
	whole := false
	if err := cli.Interruptibly(ctx, func() { commands, whole = rehearsal.RunAtMost(s, maxCommands) }); err != nil {
		return false, err
	}
	if !whole {
		return false, cli.Fail(cli.ExitNo, "%s: scenario %q has more than %d commands; shorten its script", file, s.ID, maxCommands)
	}
	verdict := rehearsal.Comparison{Same: true}
	if s.Judged {
		verdict = rehearsal.Compare(commands, s.Expected)
	}
	var values []string
	if err := cli.Interruptibly(ctx, func() { values = rehearsal.CompareValues(s) }); err != nil {
		return false, err
	}
	if len(values) > 0 {
		verdict.Same = false
		verdict.Difference = strings.TrimPrefix(strings.Join(append([]string{verdict.Difference}, values...), "\n"), "\n")
	}
	if o.Format != "text" {
		return verdict.Same, o.ItemOf("", answer.ViewRehearsed(file, s, commands, verdict))
	}
	if err := o.Item(termtext.Printable(fmt.Sprintf("%s  %s", s.ID, s.Name)), nil); err != nil {
		return false, err
	}
	for i := range commands {
		if err := o.Item(cli.CommandText(0, &commands[i]), nil); err != nil {
			return false, err
		}
	}
	text := fmt.Sprintf("%s, none expected", cli.Plural(len(commands), "command", "commands"))
	switch {
	case !verdict.Same:
		text = "DIFFERS: " + termtext.PrintableLines(verdict.Difference)
	case len(s.Values) > 0:
		text = fmt.Sprintf("%s and %s, as expected", cli.Plural(len(commands), "command", "commands"), cli.Plural(len(s.Values), "value", "values"))
	case s.Judged:
		text = fmt.Sprintf("%s, as expected", cli.Plural(len(commands), "command", "commands"))
	}
	return verdict.Same, o.Item(text+"\n", nil)
}

// isBroken reports whether the reader of the output has closed it.
func isBroken(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}
