package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/internal/yaml"
)

func (a *app) episodeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "episode",
		Short: "Play episodes; check, draw, try out and migrate them",
		Long: `An episode is an authored scene: beats that must happen and by which turn, the
choices they open, flags, objectives and props. "episode play" puts you into one,
"episode rerun" plays a recorded session again. The other commands are for those
who write them; no store is opened. Files are JSON, or YAML if their names end in .yaml
or .yml; - is stdin. docs/episodes.md says what stands in them.`,
		Example: `  sajou-replay episode play
  sajou-replay episode lint interview.json
  sajou-replay episode graph interview.json
  sajou-replay episode simulate interview.json
  sajou-replay episode migrate old.json > new.json`,
		Args: groupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.episodeLint(), a.episodeGraph(), a.episodeSimulate(), a.episodeMigrate(), a.episodePlay(), a.episodeRerun())
	return cmd
}

// maxEpisode bounds a file of one episode.
const maxEpisode = 16 << 20

// episodeFile is the text of one episode.
type episodeFile struct {
	name string
	text []byte               // as it was written
	json []byte               // what it stands for; nil if it is refused
	yaml *yaml.Text           // nil if it was written as JSON
	bad  *director.Diagnostic // why it is no YAML
}

func (a *app) readEpisode(ctx context.Context, name string) (*episodeFile, error) {
	f := &episodeFile{}
	var err error
	if f.name, f.text, err = a.input(ctx, name, maxEpisode); err != nil {
		return nil, err
	}
	ext := strings.ToLower(filepath.Ext(name))
	// Stdin has no name to tell by, and an episode is an object.
	if ext != ".yaml" && ext != ".yml" && (name != "-" || bytes.HasPrefix(bytes.TrimSpace(f.text), []byte("{"))) {
		f.json = f.text
		return f, nil
	}
	f.yaml, err = yaml.Read(f.text)
	if e, ok := errors.AsType[*yaml.SyntaxError](err); ok {
		f.bad = &director.Diagnostic{File: f.name, Line: e.Line, Column: e.Column, Severity: director.Error, Message: e.Reason}
	} else if err != nil {
		return nil, err
	} else {
		f.json = f.yaml.JSON
	}
	return f, nil
}

// placed moves remarks about the JSON to where that was written.
func (f *episodeFile) placed(ds director.Diagnostics) director.Diagnostics {
	if f.bad != nil {
		return director.Diagnostics{*f.bad}
	}
	if f.yaml == nil {
		return ds
	}
	ds = slices.Clone(ds)
	for i := range ds {
		ds[i].Line, ds[i].Column = f.yaml.Place(ds[i].Column - 1) // it is one line
	}
	slices.SortStableFunc(ds, func(a, b director.Diagnostic) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	return ds
}

// episode reads the one episode of a file, and says on stderr what is to be
// remarked. An error in it is told with what it leads to.
func (a *app) episode(ctx context.Context, name, consequence string) (*director.Episode, *episodeFile, error) {
	f, err := a.readEpisode(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	e, ds := director.Parse(f.name, f.json)
	wrong := 0
	for _, d := range f.placed(ds) {
		fmt.Fprintln(a.stderr, printable(d.String()))
		if d.Severity == director.Error {
			wrong++
		}
	}
	if e == nil {
		return nil, nil, fail(exitNo, "%s has %s; %s", f.name, plural(wrong, "error", "errors"), consequence)
	}
	return e, f, nil
}

func (a *app) episodeLint() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Find what episodes cannot mean",
		Long: `Lint reads episodes and says what in them cannot be meant, or will not happen as
it seems to: beats that wait for each other, names that are missing or there
twice, deadlines before their targets, keywords that are none, flags that nothing
sets or nothing reads, beats that can never become eligible, conditions that can
never hold. A line is

  FILE:LINE:COLUMN: SEVERITY: MESSAGE (JSON POINTER)

Several files are one series: what one episode sets, another may read. What
depends on the turns, too, "episode simulate" finds.

The exit code is 0 when there is nothing to say, or nothing but warnings, and 1
when there is an error, or with --strict a warning.`,
		Example: `  sajou-replay episode lint interview.json
  sajou-replay episode lint --strict -o jsonl series/*.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.lintEpisodes(cmd.Context(), args, strict) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "warnings too make the exit code 1")
	return cmd
}

func (a *app) lintEpisodes(ctx context.Context, names []string, strict bool) error {
	files := make([]*episodeFile, len(names))
	sources := make([]director.Source, len(names))
	for i, name := range names {
		f, err := a.readEpisode(ctx, name)
		if err != nil {
			return err
		}
		files[i], sources[i] = f, director.Source{File: f.name, JSON: f.json}
	}
	_, remarks := director.ParseSeries(sources...)
	o := a.output()
	answer := error(nil)
	for i, ds := range remarks {
		for _, d := range files[i].placed(ds) {
			value, err := marshal(struct {
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
			if err := o.item(printable(d.String()), value); err != nil {
				return err
			}
			if strict || d.Severity == director.Error {
				answer = answerNo
			}
		}
	}
	if err := o.end(); err != nil {
		return err
	}
	return answer
}
