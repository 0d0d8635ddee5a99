package episodecmd

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/episode/graph"
)

func graphCommand(a *cli.App) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "graph FILE",
		Short: "Draw an episode along its turns",
		Long: `Graph draws the beats of an episode along its turns, with their requirements,
their choices, and the flags that these set. In text each column is a turn: "."
is the turn before a target, "=" a turn from the target on, "!" the deadline;
"?" offers a choice, "+" completes an objective and "-" fails it. --svg writes a
picture with lines from beats and flags to the parts that require them. -o json
prints the nodes and edges.`,
		Example: `  sajou-replay episode graph interview.json
  sajou-replay episode graph interview.yaml --svg interview.svg
  sajou-replay episode graph interview.json -o json`,
		Args: cli.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, _, err := loadEpisode(cmd.Context(), a, args[0], "nothing was drawn")
			if err != nil {
				return err
			}
			g := graph.Of(e)
			if file == "" {
				return a.Output().One(g.Text(), g)
			}
			return a.WritePicture(file, func(w io.Writer) error {
				_, err := w.Write(g.AppendSVG(nil))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&file, "svg", "", "draw a picture into this file; - is stdout")
	_ = cmd.MarkFlagFilename("svg", "svg")
	return cmd
}
