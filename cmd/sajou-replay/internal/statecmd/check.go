package statecmd

import (
	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

// Check returns the command "check".
func Check(a *cli.App) *cobra.Command {
	var moment momentCheck
	var corpus corpusCheck
	cmd := &cobra.Command{
		Use:   "check ([SESSION] ADDR (--where EXPR | --image PNG | -- COMMAND ARG...) | --corpus DIR)",
		Short: "Judge a moment, for git bisect run, or a folder of recordings",
		Long:  momentCheckHelp + "\n\n" + corpusHelp + "\n\n" + imageTestHelp + "\n\n" + cli.DefinitionsHelp + "\n\n" + cli.ExpressionHelp,
		Example: `  sajou-replay check 35 --where 'state.stage.entities.smoke.visible'
  sajou-replay check 35 -- sh -c 'grep -qv nothing'
  sajou-replay check --corpus recordings --update
  sajou-replay check --corpus recordings -o json`,
		Annotations: map[string]string{cli.VerdictCommand: "corpus"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if corpus.dir != "" {
				return corpus.run(cmd, a, args)
			}
			if err := corpus.refused(cmd); err != nil {
				return err
			}
			var command []string
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				args, command = args[:dash], args[dash:]
			}
			return withoutPanic(func() error { return moment.run(cmd, a, args, command) })
		},
	}
	moment.flags(cmd)
	corpus.flags(cmd)
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}
