package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/conformance"
)

func (a *app) rehearseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rehearse FILE...",
		Short: "Run scenario files without a store",
		Long: `Rehearse runs scenarios and writes the commands they give: no store is opened
and nothing is recorded. A scenario is a JSON object, and a file holds one or
an array of them:

  { "id": "hello", "name": "A greeting",
    "definitions": [ choreography... ],
    "script": [ {"signal": envelope} | {"advance": ms} ... ],
    "expected": [ command... ] }

A signal is handed over at the present time, an advance lets time pass. Where
there is an expected, the commands are compared with it, and the exit code is 1
if they differ. Performances are called p1, p2 and so on as they appear.`,
		Example: `  sajou-replay rehearse greeting.json
  sajou-replay rehearse scenarios/*.json -o jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misuse("nothing to rehearse; name scenario files")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o := a.output()
			differ, total := 0, 0
			for _, file := range args {
				scenarios, err := conformance.Load(file)
				if err != nil {
					return err
				}
				for _, s := range scenarios {
					if err := cmd.Context().Err(); err != nil {
						return err
					}
					total++
					same, err := o.rehearse(file, s)
					if err != nil {
						return err
					}
					if !same {
						differ++
					}
				}
			}
			if err := o.end(); err != nil {
				return err
			}
			if differ > 0 {
				fmt.Fprintf(a.stderr, "sajou-replay: %d of %s differ from what is expected\n", differ, plural(total, "scenario", "scenarios"))
				return answerNo
			}
			return nil
		},
	}
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
