package cli

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/internal/spelling"
)

// Between is cobra.RangeArgs with a message that shows the usage.
func Between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		what := "too many arguments"
		if len(args) < least {
			what = "missing argument"
		}
		return Misuse("%s; usage: %s", what, cmd.UseLine())
	}
}

// NoCommand returns the error for an unknown subcommand, with the nearest name.
func NoCommand(of *cobra.Command, name string) error {
	var names []string
	for _, c := range of.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	hint := "see " + of.CommandPath() + " --help"
	if meant, ok := spelling.Nearest(name, names); ok {
		hint = fmt.Sprintf("did you mean %q?", of.CommandPath()+" "+meant)
	}
	return Misuse("there is no command %q; %s", of.CommandPath()+" "+name, hint)
}

// ShellWord quotes a word for a shell if it needs quotes.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:@%+=,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// GroupArgs refuses the arguments of a command that only has subcommands.
func GroupArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return NoCommand(cmd, args[0])
}

// Count returns how many of the flags are set.
func Count(flags ...bool) (n int) {
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}
