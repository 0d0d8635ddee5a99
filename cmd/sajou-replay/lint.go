package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/lint"
)

func (a *app) lintCommand() *cobra.Command {
	var strict, list bool
	cmd := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Find what choreographies and scenes cannot mean",
		Long: `Lint reads files of choreographies, sequences, easings, bindings and scenes, as
they would come into force together, and says what in them has no effect or
cannot be meant: steps that nothing reaches, conditions that nothing fulfils,
guards that shut each other out, names that lead nowhere; - is stdin. No store
is opened. A line is

  FILE:LINE:COLUMN: SEVERITY: RULE: MESSAGE (JSON POINTER)

--rules lists the rules; docs/lint.md has an example of each.

The exit code is 0 when there is nothing to say, or nothing but warnings, and 1
when there is an error, or with --strict a warning.`,
		Example: `  sajou-replay lint choreographies.json scene.json
  sajou-replay lint --strict -o jsonl *.json
  sajou-replay define show 2 | sajou-replay lint -`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case list && len(args) > 0:
				return misuse("--rules takes no files")
			case !list && len(args) == 0:
				return misuse("nothing to look at; name files, or - for stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return a.lintRules()
			}
			return a.lint(cmd.Context(), args, strict)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "warnings too make the exit code 1")
	cmd.Flags().BoolVar(&list, "rules", false, "list the rules")
	return cmd
}

func (a *app) lintRules() error {
	o := a.output()
	for _, r := range lint.Rules() {
		value, err := marshal(struct {
			Rule     string `json:"rule"`
			Severity string `json:"severity"`
			Finds    string `json:"finds"`
		}{r.Name, r.Severity.String(), r.Says})
		if err != nil {
			return err
		}
		if err := o.item(fmt.Sprintf("%-16s  %-7s  %s", r.Name, r.Severity, r.Says), value); err != nil {
			return err
		}
	}
	return o.end()
}

func (a *app) lint(ctx context.Context, names []string, strict bool) error {
	var files []lint.File
	for _, name := range names {
		shown, text, err := a.input(ctx, name, maxDefinitions)
		if err != nil {
			return err
		}
		files = append(files, lint.File{Name: shown, Text: text})
	}
	found := lint.Check(files...)
	o := a.output()
	for _, f := range found {
		value, err := marshal(struct {
			File     string `json:"file"`
			Line     int    `json:"line"`
			Column   int    `json:"column"`
			Severity string `json:"severity"`
			Rule     string `json:"rule"`
			Message  string `json:"message"`
			Pointer  string `json:"pointer"`
		}{f.File, f.Line, f.Column, f.Severity.String(), f.Rule, f.Message, f.Pointer})
		if err != nil {
			return err
		}
		if err := o.item(printable(f.String()), value); err != nil {
			return err
		}
	}
	if err := o.end(); err != nil {
		return err
	}
	isError := func(f lint.Finding) bool { return f.Severity == choreography.Error }
	if slices.ContainsFunc(found, isError) || strict && len(found) > 0 {
		return answerNo
	}
	return nil
}

// readDeclared reads files of declarations, which may refer to those before
// them and to what is in force, and says on stderr what is to be remarked. An
// error in them is told with what it leads to.
func (a *app) readDeclared(c *choreography.Catalog, files []string, consequence string) ([]choreography.Declaration, error) {
	var all []choreography.Declaration
	for _, file := range files {
		text, err := readBounded(file, maxDefinitions)
		if err != nil {
			return nil, err
		}
		declared, next, diagnostics := lint.Read(c, file, text)
		for _, d := range diagnostics {
			fmt.Fprintln(a.stderr, printable(d.String()))
		}
		if diagnostics.Err() != nil {
			return nil, fail(exitNo, "%s has %s; %s", file, plural(len(diagnostics.Only(choreography.Error)), "error", "errors"), consequence)
		}
		for _, d := range declared {
			all = append(all, d.Declaration)
		}
		c = next
	}
	return all, nil
}

// inForce returns what is in force at the end of a session; nothing if there
// is no such session.
func (a *app) inForce(ctx context.Context, name string) (*choreography.Catalog, error) {
	engine, err := a.openReading()
	if e, ok := errors.AsType[*exit](err); ok && e.code == exitNotFound {
		return new(choreography.Catalog), nil
	}
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	travel, err := engine.Replay(name).Open()
	if errors.Is(err, eventlog.ErrNoSession) {
		return new(choreography.Catalog), nil
	}
	if err != nil {
		return nil, err
	}
	last, err := travel.At(ctx, momentOf(travel.Head().Seq))
	if err != nil {
		return nil, err
	}
	p, ok := last.State(sajou.ProjectionPerformances).(interface {
		Scheduler() *choreography.Scheduler
	})
	if !ok {
		return nil, fmt.Errorf("the performances of %q have no scheduler", name)
	}
	return p.Scheduler().Catalog(), nil
}

// declarationsText says how many of what there are: "2 choreographies and 1
// scene".
func declarationsText(all []choreography.Declaration) string {
	many := map[string]string{"choreography": "choreographies", "sequence": "sequences", "easing": "easings", "binding": "bindings", "scene": "scenes"}
	counts := map[string]int{}
	var words []string
	for _, d := range all {
		word := d.Word()
		if counts[word] == 0 {
			words = append(words, word)
		}
		counts[word]++
	}
	var parts []string
	for _, word := range words {
		parts = append(parts, plural(counts[word], word, many[word]))
	}
	if n := len(parts) - 1; n > 0 {
		return strings.Join(parts[:n], ", ") + " and " + parts[n]
	}
	return strings.Join(parts, "")
}
