package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// withSteps returns the arguments with @-5 in place of each address -5, which would be
// read as flags. A number that is the value of a flag, as in --rate -1, stays.
func withSteps(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil {
		return args
	}
	out := append([]string(nil), args...)
	for i := 0; i < len(out); i++ {
		arg := out[i]
		switch {
		case arg == "--":
			return out
		case isBackStep(arg):
			out[i] = "@" + arg
		case takesNext(cmd, arg):
			i++
		}
	}
	return out
}

// isBackStep reports whether an argument is a minus and a number, perhaps with more.
func isBackStep(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && arg[1] >= '0' && arg[1] <= '9'
}

// takesNext reports whether an argument is a flag whose value is the next argument.
func takesNext(cmd *cobra.Command, arg string) bool {
	var f *pflag.Flag
	switch {
	case strings.HasPrefix(arg, "--") && !strings.Contains(arg, "="):
		f = cmd.Flag(arg[2:])
	case strings.HasPrefix(arg, "-"):
		// The flags of one letter before one with a value have none, as in -fn 5.
		for i, letter := range arg[1:] {
			if f = shorthand(cmd, string(letter)); f == nil {
				return false
			}
			if f.NoOptDefVal == "" {
				return i == len(arg)-2
			}
		}
		return false
	}
	return f != nil && f.NoOptDefVal == ""
}

func shorthand(cmd *cobra.Command, letter string) *pflag.Flag {
	if len(letter) != 1 {
		return nil // a flag has a letter of one byte
	}
	if f := cmd.Flags().ShorthandLookup(letter); f != nil {
		return f
	}
	return cmd.InheritedFlags().ShorthandLookup(letter)
}
