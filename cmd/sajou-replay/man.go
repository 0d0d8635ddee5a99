package main

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write manual pages to a directory",
		Long:    `Man writes a manual page for each command to DIR, and creates DIR if necessary.`,
		Example: `  sajou-replay man ~/.local/share/man/man1`,
		Args:    cli.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.MakeDirectory(args[0]); err != nil {
				return err
			}
			return writeManuals(cmd.Root(), args[0])
		},
	}
}

// writeManuals writes the manual page of a command, and those of the commands below
// it, to a directory.
func writeManuals(cmd *cobra.Command, dir string) error {
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		if err := writeManuals(c, dir); err != nil {
			return err
		}
	}
	return cli.WriteFile(filepath.Join(dir, manualName(cmd)+".1"), func(w io.Writer) error {
		_, err := w.Write(manual(cmd))
		return err
	})
}

// manualName returns the name of the manual page of a command.
func manualName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manual returns the manual page of a command as roff. Its text is that of the help,
// line by line: the help has tables and examples, and brackets, that a formatter for
// Markdown would take for markup.
func manual(cmd *cobra.Command) []byte {
	cmd.InitDefaultHelpFlag()
	var b bytes.Buffer
	section := func(title, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			b.WriteString(".SH " + title + "\n.nf\n" + roff(text) + "\n.fi\n")
		}
	}
	b.WriteString(".TH \"" + roff(strings.ToUpper(manualName(cmd))) + "\" \"1\" \"\" \"sajou-replay\" \"\"\n.nh\n")
	// The index of manual pages reads this section, so it has no request of a format.
	b.WriteString(".SH NAME\n" + roff(manualName(cmd)+" - "+cmd.Short) + "\n")
	section("SYNOPSIS", cmd.UseLine())
	section("DESCRIPTION", cmd.Long)
	section("OPTIONS", cmd.NonInheritedFlags().FlagUsages())
	section("GLOBAL OPTIONS", cmd.InheritedFlags().FlagUsages())
	section("EXAMPLES", cmd.Example)
	var others []string
	if cmd.HasParent() {
		others = append(others, manualName(cmd.Parent())+"(1)")
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			others = append(others, manualName(c)+"(1)")
		}
	}
	section("SEE ALSO", strings.Join(others, "\n"))
	return b.Bytes()
}

// roff escapes a text: the backslash, the minus, which would become a hyphen, and a
// control character at the beginning of a line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
