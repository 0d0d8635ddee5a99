package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
)

func (a *app) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [SESSION] ADDR",
		Short: "Show one entry whole",
		Long: `Show shows the entry at an address with everything it holds. For a moment
between two entries it is the earlier one. What a record of the agents' world
says stands above it.`,
		Example: `  sajou-replay show 12
  sajou-replay show release-42 '#9f3ab2c1'
  sajou-replay show end -o jsonl`,
		Args: between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			session, rest, err := a.splitArgs(args)
			if err != nil {
				return err
			}
			if len(rest) == 0 {
				return misuse("%q is no address, and no other argument is one; usage: %s", args[0], cmd.UseLine())
			}
			if len(rest) > 1 {
				return misuse("too many arguments; usage: %s", cmd.UseLine())
			}
			address, err := parseAddress(rest[0])
			if err != nil {
				return err
			}
			t, err := a.target(session)
			if err != nil {
				return err
			}
			defer t.Close()
			m, err := t.travel.Resolve(ctx, address)
			if err != nil {
				return err
			}
			if m.Seq == 0 {
				return fail(exitNotFound, "%s is the beginning, before the first entry; entries count from 1", rest[0])
			}
			e, err := t.log.Entry(ctx, m.Seq)
			if err != nil {
				return err
			}
			line := sajou.AppendEntryJSON(nil, &e)
			o := a.output()
			if o.format == "jsonl" {
				if err := o.item("", line); err != nil {
					return err
				}
				return o.Flush()
			}
			if o.format == "text" && e.Kind == eventlog.KindEffect {
				fmt.Fprintf(o, "%s\n\n", entryText(&e)) // what a record of the agents' world says
			}
			return o.text(printableLines(string(indented(line))))
		},
	}
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

// text writes a text whatever the format.
func (o *output) text(s string) error {
	if _, err := fmt.Fprintln(o, s); err != nil {
		return err
	}
	return o.Flush()
}

// printableLines is printable for a text of several lines.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}
