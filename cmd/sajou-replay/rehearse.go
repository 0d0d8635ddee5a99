package main

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

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/conformance"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// rehearsal is what the flags of rehearse say.
type rehearsal struct {
	watch  bool
	render string
	scene  string
	format string // of the pictures
}

func (a *app) rehearseCommand() *cobra.Command {
	var r rehearsal
	cmd := &cobra.Command{
		Use:   "rehearse FILE...",
		Short: "Run scenario files without a store",
		Long: `Rehearse runs scenarios and writes the commands they give: no store is opened
and nothing is recorded. A scenario is a JSON object, and a file, or stdin where
it is -, holds one or an array of them:

  { "id": "hello", "name": "A greeting",
    "definitions": [ choreography... ],
    "script": [ {"signal": envelope} | {"advance": ms} ... ],
    "expected": [ command... ] }

A signal is handed over at the present time, an advance lets time pass. Where
there is an expected, the commands are compared with it, and the exit code is 1
if they differ. Performances are called p1, p2 and so on as they appear.

--watch runs the files again whenever one of them changes, until it is
interrupted; what is wrong in one is told, and waited for.

--render draws what is seen at the beginning and after each advance, as a contact
sheet: into FILE.svg or FILE.png, or for each scenario into DIR/ID.svg. --scene is
the stage it is played on, else there is the default one.`,
		Example: `  sajou-replay rehearse greeting.json
  sajou-replay rehearse scenarios/*.json -o jsonl
  sajou-replay rehearse --watch greeting.json --render greeting.svg --scene scene.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misuse("nothing to rehearse; name scenario files")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case r.scene != "" && r.render == "":
				return misuse("--scene is what --render draws, which is missing")
			case r.watch && slices.Contains(args, "-"):
				return misuse("--watch looks at files again, and stdin is read once")
			case r.watch && a.format == "json":
				return misuse("one JSON array is whole only at its end, and --watch has none; use -o jsonl")
			}
			if err := r.chooseFormat(); err != nil {
				return err
			}
			if !r.watch {
				return a.rehearse(cmd.Context(), args, &r)
			}
			return a.rehearseAgain(cmd.Context(), args, &r)
		},
	}
	cmd.Flags().BoolVar(&r.watch, "watch", false, "run again whenever a file changes")
	cmd.Flags().StringVar(&r.render, "render", "", "file or directory to draw the stage into")
	cmd.Flags().StringVar(&r.scene, "scene", "", "file of the scene that --render draws")
	_ = cmd.MarkFlagFilename("render", "svg", "png")
	_ = cmd.MarkFlagFilename("scene", "json", "zip")
	return cmd
}

// chooseFormat takes the format of the pictures from the name they go to.
func (r *rehearsal) chooseFormat() error {
	switch ext := strings.ToLower(filepath.Ext(r.render)); {
	case r.render == "":
	case r.isDir():
		r.format = "svg"
	case ext == ".svg", ext == ".png":
		r.format = ext[1:]
	default:
		return misuse("--render %q: end it with .svg or .png, or name a directory as in %s/", r.render, r.render)
	}
	return nil
}

// isDir reports whether there is a file for each scenario.
func (r *rehearsal) isDir() bool {
	if strings.HasSuffix(r.render, "/") || strings.HasSuffix(r.render, string(filepath.Separator)) {
		return true
	}
	info, err := os.Stat(r.render)
	return err == nil && info.IsDir()
}

// rehearseAgain rehearses, and does so again whenever a file changes. It ends
// with the context, or when nobody reads any more.
func (a *app) rehearseAgain(ctx context.Context, files []string, r *rehearsal) error {
	watched := files
	if r.scene != "" {
		watched = append(watched[:len(watched):len(watched)], r.scene)
	}
	w, stop := a.newWatch(watched)
	defer stop()
	for {
		err := a.rehearse(ctx, files, r)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if isBroken(err) {
			return err
		}
		exitCode(err, a.stderr) // what is wrong may be mended
		fmt.Fprintf(a.stderr, "sajou-replay: watching %s; ctrl-C ends it\n", plural(len(watched), "file", "files"))
		changed, err := w.wait(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stderr, "sajou-replay: changed: %s\n", printable(strings.Join(changed, ", ")))
	}
}

func (a *app) rehearse(ctx context.Context, files []string, r *rehearsal) error {
	var all []*conformance.Scenario
	var names []string // of the file of each
	for _, file := range files {
		file, text, err := a.input(ctx, file, maxDefinitions)
		if err != nil {
			return err
		}
		scenarios, diagnostics := conformance.Read(file, text)
		for _, d := range diagnostics {
			fmt.Fprintln(a.stderr, printable(d.String()))
		}
		if len(diagnostics) > 0 {
			return fail(exitNo, "%s has %s; nothing was rehearsed%s", file, plural(len(diagnostics), "error", "errors"), misplaced("rehearse", file, text))
		}
		for _, d := range conformance.Remarks(file, text) {
			fmt.Fprintln(a.stderr, printable(d.String()))
		}
		for _, s := range scenarios {
			all, names = append(all, s), append(names, file)
		}
	}
	var sc *scene.Scene
	if r.scene != "" {
		var err error
		if sc, err = a.readScene(r.scene); err != nil {
			return err
		}
	}
	if r.render != "" && !r.isDir() && len(all) > 1 {
		return misuse("--render %s is one file, and there are %d scenarios; name a directory, as in --render pictures/", r.render, len(all))
	}
	o := a.output()
	differ := 0
	for i, s := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		same, err := o.rehearse(names[i], s)
		if err != nil {
			return err
		}
		if !same {
			differ++
		}
		if r.render == "" {
			continue
		}
		if err := r.draw(s, sc); err != nil {
			return err
		}
	}
	if err := o.end(); err != nil {
		return err
	}
	if differ > 0 {
		fmt.Fprintf(a.stderr, "sajou-replay: %d of %s differ from what is expected\n", differ, plural(len(all), "scenario", "scenarios"))
		return answerNo
	}
	return nil
}

// draw makes the contact sheet of a scenario.
func (r *rehearsal) draw(s *conformance.Scenario, sc *scene.Scene) error {
	name := r.render
	if r.isDir() {
		if err := os.MkdirAll(r.render, 0o777); err != nil {
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
	if err := hasDirectory(name); err != nil {
		return err
	}
	return writeFile(name, drawn(d, r.format))
}

// fileName makes a name of a file of a scenario's id, which may be anything.
func fileName(id string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, clip(id, 100))
	if strings.Trim(name, ".") == "" {
		return "scenario" + name
	}
	return name
}

// stageOf plays a scenario on a stage, and returns what is seen at first and
// after each advance. What is more than a sheet holds is only counted.
func stageOf(s *conformance.Scenario, sc *scene.Scene) (cells []picture.Cell, more int) {
	scheduler, st := choreography.NewScheduler(), stage.New(stage.Config{})
	scheduler.Observe(st, st)
	if sc != nil {
		st.SetScene(sc)
	}
	for _, d := range s.Definitions {
		// What cannot come into force the commands have told.
		if scheduler.Define(d) == nil {
			st.Choreographed()
		}
	}
	caption := "at first"
	see := func() {
		if len(cells) == mostSheet {
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

// rehearse runs one scenario and writes what came of it.
func (o *output) rehearse(file string, s *conformance.Scenario) (same bool, err error) {
	commands := conformance.Run(s)
	verdict := conformance.Verdict{Same: true}
	if s.Judged {
		verdict = conformance.Compare(commands, s.Expected)
	}
	if o.format != "text" {
		if commands == nil {
			commands = []choreography.Command{}
		}
		value, err := marshal(struct {
			File       string                 `json:"file"`
			ID         string                 `json:"id"`
			Name       string                 `json:"name"`
			Commands   []choreography.Command `json:"commands"`
			Judged     bool                   `json:"judged"`
			Same       bool                   `json:"same"`
			Difference string                 `json:"difference,omitempty"`
		}{file, s.ID, s.Name, commands, s.Judged, verdict.Same, verdict.Difference})
		if err != nil {
			return false, err
		}
		return verdict.Same, o.item("", value)
	}
	if err := o.item(printable(fmt.Sprintf("%s  %s", s.ID, s.Name)), nil); err != nil {
		return false, err
	}
	for i := range commands {
		if err := o.item(commandText(0, &commands[i]), nil); err != nil {
			return false, err
		}
	}
	text := fmt.Sprintf("%s, nothing expected", plural(len(commands), "command", "commands"))
	switch {
	case s.Judged && verdict.Same:
		text = fmt.Sprintf("%s, as expected", plural(len(commands), "command", "commands"))
	case s.Judged:
		text = "DIFFERS: " + printableLines(verdict.Difference)
	}
	return verdict.Same, o.item(text+"\n", nil)
}

// isBroken reports whether nobody reads the output any more.
func isBroken(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}
