package main

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// splitArgs divides arguments into a session's name, if they begin with one,
// and the rest. The rule: an argument that reads as an address or a range is
// one, so is every argument once --session is given, and so is what begins like an
// address and is none, which is then an error and not a session that nobody has.
func (a *app) splitArgs(args []string) (session string, rest []string, err error) {
	if slices.Contains(args, "") {
		return "", nil, errEmptyArgument
	}
	if len(args) == 0 || a.session != "" {
		return "", args, nil
	}
	_, err = replay.ParseRange(args[0])
	switch {
	case err == nil:
		return "", args, nil
	case likeAddress(args[0]):
		return "", nil, err
	}
	return args[0], args[1:], nil
}

// errEmptyArgument is said where a shell's variable is likely to be unset, which
// must not mean the latest session or the last entry.
var errEmptyArgument = misuse("an argument is empty; is a variable of the shell unset?")

// numbered is what begins with the number of an entry and goes on like an address.
var numbered = regexp.MustCompile(`^[0-9]+(\+.*)?$`)

func likeAddress(s string) bool {
	if numbered.MatchString(s) {
		return true
	}
	for _, prefix := range []string{"#", "@", "t:", "perf:", "beat:", "turn:", "end+", "end-"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return strings.Contains(s, "..")
}

// sessionArg takes the one optional argument of a command as a session.
func (a *app) sessionArg(args []string) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	if args[0] == "" {
		return "", errEmptyArgument
	}
	if a.session != "" && a.session != args[0] {
		return "", misuse("two sessions are named, %q and --session %q", args[0], a.session)
	}
	return args[0], nil
}

// resolve returns the moment of an address in the session.
func (t *target) resolve(ctx context.Context, address string) (replay.Moment, error) {
	parsed, err := parseAddress(address)
	if err != nil {
		return replay.Moment{}, err
	}
	return t.travel.Resolve(ctx, parsed)
}

// parseAddress reads the address of one moment.
func parseAddress(address string) (replay.Address, error) {
	parsed, err := replay.ParseAddress(address)
	if err != nil && strings.Contains(address, "..") {
		return parsed, misuse("%q is a range, and one moment is wanted here", address)
	}
	return parsed, err
}

// resolveSeq returns the Seq of an address that stands for an entry.
func (t *target) resolveSeq(ctx context.Context, address string) (eventlog.Seq, error) {
	m, err := t.resolve(ctx, address)
	if err != nil {
		return 0, err
	}
	if m.Offset != 0 {
		return 0, misuse("%s is a moment between two entries; an entry is needed here", address)
	}
	return m.Seq, nil
}

// resolveRange returns the first and the last Seq of a range; empty stands for
// all. Moments between entries count from and to the entries inside.
func (t *target) resolveRange(ctx context.Context, text string) (from, to eventlog.Seq, err error) {
	if text == "" {
		return 1, t.travel.Head().Seq, nil
	}
	parsed, err := replay.ParseRange(text)
	if err != nil {
		return 0, 0, err
	}
	first, last, err := t.travel.ResolveRange(ctx, parsed)
	if err != nil {
		return 0, 0, err
	}
	from = first.Seq
	if first.Offset > 0 {
		from++
	}
	return max(from, 1), last.Seq, nil
}

// between is cobra.RangeArgs with a message that tells the usage.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		what := "too many arguments"
		if len(args) < least {
			what = "an argument is missing"
		}
		return misuse("%s; usage: %s", what, cmd.UseLine())
	}
}
