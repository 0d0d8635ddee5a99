package statecmd

import (
	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

// Check returns the command "check".
func Check(a *cli.App) *cobra.Command {
	var moment momentCheck
	cmd := &cobra.Command{
		Use:   "check [SESSION] ADDR (--where EXPR | --image PNG | -- COMMAND ARG...)",
		Short: "Judge a moment, for git bisect run",
		Long:  momentCheckHelp + "\n\n" + imageTestHelp + "\n\n" + cli.ExpressionHelp,
		Example: `  sajou-replay check 35 --where 'state.stage.entities.smoke.visible'
  sajou-replay check 35 -- sh -c 'grep -qv nothing'`,
		Annotations: map[string]string{cli.VerdictCommand: "corpus"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var command []string
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				args, command = args[:dash], args[dash:]
			}
			return withoutPanic(func() error { return moment.run(cmd, a, args, command) })
		},
	}
	moment.flags(cmd)
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}
