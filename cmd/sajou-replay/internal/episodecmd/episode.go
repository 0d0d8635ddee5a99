// Package episodecmd has the commands about episodes and their director: the
// group episode, beats and report.
package episodecmd

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// Episode returns the command "episode".
func Episode(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "episode",
		Short: "Play episodes; check, draw, try out and migrate them",
		Long: `An episode is an authored scene: beats that must happen, the turns by which they
should, the choices they offer, flags, objectives and props. "episode play"
plays an episode with you as the user, and "episode rerun" plays a recorded
session again. The other commands check, draw and convert episode files and open
no store. A file is JSON, or YAML if its name ends in .yaml or .yml; - is stdin.
docs/episodes.md describes the format.`,
		Example: `  sajou-replay episode play
  sajou-replay episode lint interview.json
  sajou-replay episode graph interview.json
  sajou-replay episode simulate interview.json
  sajou-replay episode migrate old.json > new.json`,
		Args: cli.GroupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(lintCommand(a), graphCommand(a), simulateCommand(a), migrateCommand(a), playCommand(a), rerunCommand(a))
	return cmd
}

// maxEpisode bounds a file of one episode.
const maxEpisode = 16 << 20

// episodeFile is the text of one episode.
type episodeFile struct {
	name string
	text []byte               // as it was written
	read *authored.Text       // nil if it is neither JSON nor YAML
	bad  authored.Diagnostics // why it is neither
}

func readEpisode(ctx context.Context, a *cli.App, name string) (*episodeFile, error) {
	f := &episodeFile{}
	var err error
	if f.name, f.text, err = a.ReadInput(ctx, name, maxEpisode); err != nil {
		return nil, err
	}
	// Stdin has no extension: the first byte of JSON is that of an object.
	if name == "-" && !bytes.HasPrefix(bytes.TrimSpace(f.text), []byte("{")) {
		f.read, f.bad = authored.ReadYAML(f.name, f.text)
	} else {
		f.read, f.bad = authored.Read(f.name, f.text)
	}
	return f, nil
}

// parse parses the episode of the file.
func (f *episodeFile) parse() (*episode.Episode, authored.Diagnostics) {
	if f.read == nil {
		return nil, f.bad
	}
	e, ds := episode.Parse(f.name, f.read.JSON)
	return e, f.read.Placed(ds)
}

// loadEpisode reads the episode of a file and prints its diagnostics to stderr. After an
// error the command fails, and its message ends with the consequence.
func loadEpisode(ctx context.Context, a *cli.App, name, consequence string) (*episode.Episode, *episodeFile, error) {
	f, err := readEpisode(ctx, a, name)
	if err != nil {
		return nil, nil, err
	}
	var e *episode.Episode
	var ds authored.Diagnostics
	if err := cli.Interruptibly(ctx, func() {
		e, ds = f.parse()
	}); err != nil {
		return nil, nil, err
	}
	wrong := 0
	for _, d := range ds {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		fmt.Fprintln(a.Stderr, termtext.Printable(d.String()))
		if d.Severity == authored.SeverityError {
			wrong++
		}
	}
	if e == nil {
		return nil, nil, cli.Fail(cli.ExitNo, "%s has %s; %s", f.name, cli.Plural(wrong, "error", "errors"), consequence)
	}
	return e, f, nil
}

func lintCommand(a *cli.App) *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Find mistakes in episodes",
		Long: `Lint reports the mistakes in episodes: beats that require each other, ids that
are missing or not unique, deadlines before their targets, empty lists of
keywords. It warns of parts that have no effect or can never happen: flags that
nothing sets or nothing reads, beats that can never become eligible, conditions
that can never hold. A line has the form

  FILE:LINE:COLUMN: SEVERITY: MESSAGE (JSON POINTER)

Several files are one series: one episode may read the flags that another sets.
Lint does not consider turns; "episode simulate" does.

The exit code is 0 without errors, and 1 with an error or, with --strict, a
warning.`,
		Example: `  sajou-replay episode lint interview.json
  sajou-replay episode lint --strict -o jsonl series/*.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return lintEpisodes(cmd.Context(), a, args, strict) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with code 1 also for a warning")
	return cmd
}

func lintEpisodes(ctx context.Context, a *cli.App, names []string, strict bool) error {
	files := make([]*episodeFile, len(names))
	sources := make([]episode.SourceFile, len(names))
	for i, name := range names {
		f, err := readEpisode(ctx, a, name)
		if err != nil {
			return err
		}
		files[i], sources[i] = f, episode.SourceFile{File: f.name}
		if f.read != nil {
			sources[i].Text = f.read.JSON
		}
	}
	var remarks []authored.Diagnostics
	if err := cli.Interruptibly(ctx, func() { _, remarks = episode.ParseSeries(sources...) }); err != nil {
		return err
	}
	o := a.Output()
	answer := error(nil)
	for i, ds := range remarks {
		if ds = files[i].read.Placed(ds); files[i].read == nil {
			ds = files[i].bad
		}
		for _, d := range ds {
			value, err := cli.Marshal(struct {
				File     string `json:"file"`
				Line     int    `json:"line"`
				Column   int    `json:"column"`
				Severity string `json:"severity"`
				Message  string `json:"message"`
				Pointer  string `json:"pointer"`
			}{d.File, d.Line, d.Column, d.Severity.String(), d.Message, d.Pointer})
			if err != nil {
				return err
			}
			if err := o.Item(termtext.Printable(d.String()), value); err != nil {
				return err
			}
			if strict || d.Severity == authored.SeverityError {
				answer = cli.AnswerNo
			}
		}
	}
	if err := o.End(); err != nil {
		return err
	}
	return answer
}
