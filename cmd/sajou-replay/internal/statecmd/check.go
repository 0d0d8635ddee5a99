package statecmd

import (
	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

// Check returns the command "check".
func Check(a *cli.App) *cobra.Command {
	var corpus corpusCheck
	cmd := &cobra.Command{
		Use:   "check --corpus DIR",
		Short: "Compare a folder of recordings with the states that were kept of them",
		Long:  corpusHelp,
		Example: `  sajou-replay check --corpus recordings --update
  sajou-replay check --corpus recordings -o json`,
		Args: cli.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if corpus.dir == "" {
				return cli.Misuse("check needs --corpus DIR")
			}
			return corpus.run(cmd.Context(), a)
		},
	}
	corpus.flags(cmd)
	return cmd
}
