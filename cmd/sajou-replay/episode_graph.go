package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/internal/beatgraph"
)

func (a *app) episodeGraph() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "graph FILE",
		Short: "Draw an episode along its turns",
		Long: `Graph draws the beats of an episode along its turns, with what each waits for, the
choices they open, and the flags that these set. In text a column is a turn: "."
is the one before a target, "=" one in which the beat is wanted, "!" its deadline;
"?" opens a choice, "+" wins an objective and "-" loses it. --svg draws a picture,
in which lines lead from beats and flags to what depends on them. -o json is the
same as nodes and edges.`,
		Example: `  sajou-replay episode graph interview.json
  sajou-replay episode graph interview.yaml --svg interview.svg
  sajou-replay episode graph interview.json -o json`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, _, err := a.episode(cmd.Context(), args[0], "nothing was drawn")
			if err != nil {
				return err
			}
			g := beatgraph.Of(e)
			if file == "" {
				return a.output().one(g.Text(), g)
			}
			return a.put(file, func(w io.Writer) error {
				_, err := w.Write(g.AppendSVG(nil))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&file, "svg", "", "draw a picture into this file; - is stdout")
	_ = cmd.MarkFlagFilename("svg", "svg")
	return cmd
}
