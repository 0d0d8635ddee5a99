package logcmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
)

// Show returns the command "show".
func Show(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [SESSION] ADDR",
		Short: "Show one entry in full",
		Long: `Show writes the entry at an address in full, as JSON. At a moment between two
entries it shows the earlier one. Above a record of the agents' world it writes
the line that cat has for it.`,
		Example: `  sajou-replay show 12
  sajou-replay show night-shift perf:p-36-1
  sajou-replay show end -o jsonl`,
		Args: cli.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			name, rest, err := a.SplitArgs(args)
			if err != nil {
				return err
			}
			if len(rest) == 0 {
				return cli.Misuse("no address after the session %q; usage: %s", args[0], cmd.UseLine())
			}
			if len(rest) > 1 {
				return cli.Misuse("too many arguments: %q; usage: %s", rest[1], cmd.UseLine())
			}
			address, err := cli.ParseAddress(rest[0])
			if err != nil {
				return err
			}
			t, err := a.OpenSession(name)
			if err != nil {
				return err
			}
			defer t.Close()
			m, err := t.Travel.Resolve(ctx, address)
			if err != nil {
				return err
			}
			if m.Seq == 0 {
				return cli.Fail(cli.ExitNotFound, "%s is the moment before the first entry; entries are numbered from 1", rest[0])
			}
			e, err := t.Log.Entry(ctx, m.Seq)
			if err != nil {
				return err
			}
			line, err := session.NewLateness(t.Log.Entries).AppendEntryJSON(ctx, nil, &e)
			if err != nil {
				return err
			}
			o := a.Output()
			if o.Format == "jsonl" {
				if err := o.Item("", line); err != nil {
					return err
				}
				return o.Flush()
			}
			if o.Format == "text" && e.Kind == eventlog.KindEffect {
				fmt.Fprintf(o, "%s\n\n", cli.EntryText(&e))
			}
			return o.Text(termtext.PrintableLines(string(cli.Indented(line))))
		},
	}
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}
