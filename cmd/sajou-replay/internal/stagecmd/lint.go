package stagecmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// Lint returns the command "lint".
func Lint(a *cli.App) *cobra.Command {
	var strict, list bool
	var actions []string
	cmd := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Find mistakes in choreographies and scenes",
		Long: `Lint checks files of choreographies, sequences, easings, bindings and scenes as if
they came into force together. It finds errors, and declarations that are valid
but have no effect: unreachable steps, conditions that can never hold, guards
that exclude each other, names that do not exist. A file named - is stdin. No
store is opened. A line of the result is

  FILE:LINE:COLUMN: SEVERITY: RULE: MESSAGE (JSON POINTER)

--action declares an action that a program or a renderer adds to those of the
stage, with the members of a step that it reads, or with any members.

--rules lists the rules; docs/lint.md has an example of each.

The exit code is 1 if there is an error, or with --strict a warning, and else 0.`,
		Example: `  sajou-replay lint choreographies.json scene.json
  sajou-replay lint --strict -o jsonl choreographies.json
  sajou-replay lint --action shake --action wave=hand,times choreographies.json
  sajou-replay define show 2 | sajou-replay lint -`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case list && len(args) > 0:
				return cli.Misuse("--rules takes no files; omit them")
			case !list && len(args) == 0:
				return cli.Misuse("no file to check; name files, or - for stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return lintRules(a)
			}
			custom, err := customActions(actions)
			if err != nil {
				return err
			}
			return runLint(cmd.Context(), a, args, custom, strict)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 1 for warnings as well")
	cmd.Flags().StringArrayVar(&actions, "action", nil, "declare a custom action, as `NAME` or NAME=MEMBER,MEMBER")
	cmd.Flags().BoolVar(&list, "rules", false, "list the rules")
	return cmd
}

// customActions reads the values of --action: the members that each action reads, nil
// for any.
func customActions(flags []string) (map[string][]string, error) {
	custom := map[string][]string{}
	for _, flag := range flags {
		name, list, listed := strings.Cut(flag, "=")
		var members []string
		if listed {
			members = strings.Split(list, ",")
		}
		if name == "" || slices.Contains(members, "") && list != "" {
			return nil, cli.Misuse("--action %q: write NAME, or NAME=MEMBER,MEMBER", flag)
		}
		custom[name] = members
	}
	return custom, nil
}

func lintRules(a *cli.App) error {
	o := a.Output()
	for _, r := range lint.Rules() {
		value, err := cli.Marshal(struct {
			Rule     string `json:"rule"`
			Severity string `json:"severity"`
			Finds    string `json:"finds"`
		}{r.Name, r.Severity.String(), r.Says})
		if err != nil {
			return err
		}
		if err := o.Item(fmt.Sprintf("%-16s  %-7s  %s", r.Name, r.Severity, r.Says), value); err != nil {
			return err
		}
	}
	return o.End()
}

func runLint(ctx context.Context, a *cli.App, names []string, custom map[string][]string, strict bool) error {
	var files []lint.File
	for _, name := range names {
		shown, text, err := a.ReadInput(ctx, name, cli.MaxDefinitions)
		if err != nil {
			return err
		}
		files = append(files, lint.File{Name: shown, Text: text})
	}
	var found []lint.Issue
	if err := cli.Interruptibly(ctx, func() { found = lint.CheckWith(custom, files...) }); err != nil {
		return err
	}
	o := a.Output()
	for _, f := range found {
		if err := o.ItemOf(termtext.Printable(f.String()), answer.ViewIssue(&f)); err != nil {
			return err
		}
	}
	if err := o.End(); err != nil {
		return err
	}
	isError := func(f lint.Issue) bool { return f.Severity == authored.SeverityError }
	if slices.ContainsFunc(found, isError) || strict && len(found) > 0 {
		return cli.AnswerNo
	}
	return nil
}
