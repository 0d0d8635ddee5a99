package logcmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/ingest/formats"
)

// Formats returns the command "formats".
func Formats(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "formats",
		Short: "List the formats that import reads",
		Long: `Formats lists the formats of recordings that import reads, and how each is
recognized. Import recognizes the format by the content of a file, and --format
names it.

A format that grows is read by lines: an import of its beginning can be continued
with --continue. The others are documents, which are read as a whole. Formats
without times get those of a stated clock, and are marked so.`,
		Example: `  sajou-replay formats
  sajou-replay formats -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			out := a.Output()
			for _, f := range formats.All() {
				times := "recorded"
				if f.Invented {
					times = "synthetic"
				}
				view := struct {
					Name       string `json:"name"`
					Title      string `json:"title"`
					Recognized string `json:"recognized"`
					Grows      bool   `json:"grows"`
					Times      string `json:"times"`
				}{f.Name, f.Title, f.Recognized, f.Grows, times}
				var notes []string
				if f.Grows {
					notes = append(notes, "grows")
				}
				if f.Invented {
					notes = append(notes, "no times")
				}
				text := fmt.Sprintf("%-18s %s", f.Name, f.Title)
				if len(notes) > 0 {
					text += " (" + strings.Join(notes, ", ") + ")"
				}
				text += "\n" + strings.Repeat(" ", 19) + f.Recognized
				if err := out.ItemOf(text, view); err != nil {
					return err
				}
			}
			return out.End()
		},
	}
}
