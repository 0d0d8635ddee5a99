package textcmd

import (
	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session/transcript"
	"github.com/sajou-dev/sajou-go/signal"
)

// Transcript returns the command "transcript".
func Transcript(a *cli.App) *cobra.Command {
	var (
		layout, from, to string
		lines            int
	)
	cmd := &cobra.Command{
		Use:   "transcript [SESSION] [RANGE]",
		Short: "Write a session as people read it",
		Long: `Transcript writes what was said and done in a session, or in a range of it:
prompts and answers, thinking, calls of tools with the beginning of their input
and output, failures, errors and completions. The work of a subagent is indented.

--format is text, md (Markdown) or html. In Markdown and HTML thinking is folded,
and recorded text cannot become a part of the document's form: it stands in fences
and is escaped. The HTML is one file without scripts that loads nothing. In all
formats characters that a terminal acts on are written as escapes.

--lines bounds what is shown of the input and of the output of a tool. Usage of
tokens, states and types of signals that the protocol does not define are left
out; "info" and "cat" have them. Of a fork, the line below the title says that it
was never recorded.`,
		Example: `  sajou-replay transcript
  sajou-replay transcript night-shift 30.. --format md
  sajou-replay transcript --from 20 --to end-10 --format html --lines 40`,
		Args: cli.Between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := transcript.Layout(layout)
			if kind != transcript.Text && kind != transcript.Markdown && kind != transcript.HTML {
				return cli.Misuse("--format %q: must be text, md or html", layout)
			}
			if a.Format != "text" {
				return cli.Misuse("a transcript is text, md or html, as --format says; for JSON use: sajou-replay cat -o %s", a.Format)
			}
			session, over, err := a.SplitRange(cmd, args)
			if err != nil {
				return err
			}
			if from != "" || to != "" {
				if over != "" {
					return cli.Misuse("the range %s excludes --from and --to; omit one", over)
				}
				over = from + ".." + to
			}
			t, err := a.OpenSession(session)
			if err != nil {
				return err
			}
			defer t.Close()
			first, last, err := t.ResolveRange(cmd.Context(), over)
			if err != nil {
				return err
			}
			if lines == 0 {
				lines = -1
			}
			o := a.Output()
			_, note, err := t.Fork(cmd.Context())
			if err != nil {
				return err
			}
			w := transcript.New(o, kind, transcript.Options{Title: t.Name, Note: note, Lines: lines})
			err = t.Each(cmd.Context(), 1, last, func(e *eventlog.Entry) error {
				if e.Kind != eventlog.KindSignal {
					return nil
				}
				sig, err := signal.Decode(e.Data)
				if err != nil {
					return nil //nolint:nilerr // a signal that does not decode says nothing; verify tells about it
				}
				if e.Seq < first {
					w.Skip(&sig)
					return nil
				}
				return w.Add(e.Seq, e.At, &sig)
			})
			if err != nil {
				return err
			}
			if err := w.End(); err != nil {
				return err
			}
			return o.Flush()
		},
	}
	cmd.Flags().StringVar(&layout, "format", "text", "write `FORMAT`: text, md or html")
	cmd.Flags().StringVar(&from, "from", "", "begin at `ADDRESS`")
	cmd.Flags().StringVar(&to, "to", "", "end at `ADDRESS`")
	cmd.Flags().IntVar(&lines, "lines", 12, "show at most `N` lines of what a tool was given or returned; 0 for all")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "md", "html"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}
