package statecmd

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/searchlog"
	"github.com/sajou-dev/sajou-go/replay/where"
)

// searchFlags are the flags of a search with tests, of one command or of a kept search.
type searchFlags struct {
	good, bad, expr string
	look            imageTest
	find            string
	probes          int
	repeat          bisect.Repeat
	timeout, every  time.Duration
	see             []string
	defines         cli.Definitions

	// Set by check.
	goal            bisect.Goal
	seeSeq, seeTime bool
}

// The kinds of tests, as a kept search names them.
const (
	byPerson  = "person"
	byWhere   = "where"
	byImage   = "image"
	byProgram = "program"
)

func (s *searchFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.good, "good", "0", "`ADDR` of a good moment")
	f.StringVar(&s.bad, "bad", "end", "`ADDR` of a later, bad moment")
	f.StringVar(&s.expr, "where", "", "the state is bad if `EXPR` is true")
	s.look.flags(cmd, "the state is bad if the picture equals the PNG")
	f.StringVar(&s.find, "find", "any", "find `WHICH` transition: any, first, last or all")
	f.IntVar(&s.probes, "probe", bisect.DefaultProbes, "with --find any, test `N` more candidates for islands")
	f.IntVar(&s.repeat.Times, "repeat", 0, "run each test `N` times and take the majority")
	f.Float64Var(&s.repeat.Confidence, "confidence", 0, "run each test until its verdict is right with probability `P`")
	f.Float64Var(&s.repeat.Flake, "flake", bisect.DefaultFlake, "with --confidence, the probability `Q` of a wrong run")
	f.DurationVar(&s.timeout, "timeout", 0, "skip a candidate whose command runs longer than `D`")
	f.DurationVar(&s.every, "every", 0, "also compare moments each `D`, for values that move")
	f.StringSliceVar(&s.see, "see", nil, "let the command see `WHAT` besides the state: seq, time")
	s.defines.Flag(cmd)
}

// kind returns the kind of the test that the flags and the command line after -- name.
func (s *searchFlags) kind(command []string) (string, error) {
	kind := byPerson
	for name, named := range map[string]bool{byWhere: s.expr != "", byImage: s.look.image != "", byProgram: len(command) > 0} {
		if named && kind != byPerson {
			return "", errOneTest
		}
		if named {
			kind = name
		}
	}
	return kind, nil
}

var errOneTest = cli.Misuse("bisect needs one test: --where EXPR, --image PNG, or a command after --")

// check refuses flags that do not fit the kind of the test or each other.
func (s *searchFlags) check(cmd *cobra.Command, kind string) (err error) {
	changed := cmd.Flags().Changed
	program, runs := kind == byProgram, kind == byProgram || kind == byImage
	for _, flag := range []struct {
		name   string
		fits   bool
		remedy string
	}{
		{"timeout", program, "needs a command after --"},
		{"see", program, "needs a command after --"},
		{"repeat", runs, "needs --image PNG or a command after --"},
		{"confidence", runs, "needs --image PNG or a command after --"},
		{"probe", kind != byWhere, "is for tests that are expensive to run; omit it"},
	} {
		if changed(flag.name) && !flag.fits {
			return cli.Misuse("--%s %s", flag.name, flag.remedy)
		}
	}
	var known bool
	switch s.goal, known = bisect.GoalByName(s.find); {
	case !known:
		return cli.Misuse("--find %s: must be any, first, last or all", s.find)
	case s.probes < 0:
		return cli.Misuse("--probe %d: must be 0 or more", s.probes)
	case changed("repeat") && s.repeat.Times < 1:
		return cli.Misuse("--repeat %d: must be at least 1", s.repeat.Times)
	case changed("flake") && s.repeat.Confidence == 0:
		return cli.Misuse("--flake needs --confidence P")
	case changed("confidence") && s.repeat.Confidence == 0:
		return cli.Misuse("--confidence 0: must be above 0.5 and below 1")
	case changed("timeout") && s.timeout <= 0:
		return cli.Misuse("--timeout %v: must be above 0", s.timeout)
	case changed("every") && s.every < time.Microsecond:
		return cli.Misuse("--every %v: must be at least 1µs", s.every)
	}
	if err := s.repeat.Check(); err != nil {
		return cli.Misuse("%s", strings.TrimPrefix(err.Error(), "bisect: "))
	}
	for _, what := range s.see {
		switch what {
		case "seq":
			s.seeSeq = true
		case "time":
			s.seeTime = true
		default:
			return cli.Misuse("--see %s: must be seq, time, or both", what)
		}
	}
	return s.look.check(cmd)
}

// repeatFlags are the flags that say how often a test is run.
var repeatFlags = []string{"repeat", "confidence", "flake"}

// testFlags are the flags that a kept search keeps with its test.
var testFlags = slices.Concat([]string{"image", "mask", "region", "entity", "max-diff", "max-color", "same", "timeout", "see"}, repeatFlags)

// values returns the flags of the test that are not the default, by their names.
func (s *searchFlags) values(cmd *cobra.Command) map[string]string {
	values := map[string]string{}
	for _, name := range testFlags {
		f := cmd.Flags().Lookup(name)
		text := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			text = strings.Join(list.GetSlice(), ",")
		}
		if f.Value.String() != f.DefValue {
			values[name] = text
		}
	}
	return values
}

// flagsOf is the inverse of values, for the test of a kept search.
func flagsOf(named searchlog.SearchedTest) (*searchFlags, error) {
	s, cmd := new(searchFlags), new(cobra.Command)
	s.flags(cmd)
	for name, value := range named.Flags {
		if !slices.Contains(testFlags, name) {
			return nil, cli.Fail(cli.ExitNo, "the test of the search has the flag %.80q, which this program does not know", name)
		}
		if err := cmd.Flags().Set(name, value); err != nil {
			return nil, cli.Fail(cli.ExitNo, "the search has no valid %s: %.80q", name, value)
		}
	}
	if named.Kind == byWhere && len(named.Args) > 0 {
		s.expr = named.Args[0]
	}
	if err := s.check(cmd, named.Kind); err != nil {
		return nil, cli.Fail(cli.ExitNo, "the test of the search is not valid: %w", err)
	}
	return s, nil
}

// compiledTest is the test of the flags before the session is open. One member is set, or
// none with --changed.
type compiledTest struct {
	predicate *where.Predicate
	compared  *referenceImage
	command   []string
}

func (s *searchFlags) compile(ctx context.Context, command []string) (made compiledTest, err error) {
	made.command = command
	if s.expr != "" {
		made.predicate, err = answer.Compile(s.expr)
	} else if s.look.image != "" {
		made.compared, err = s.look.load(ctx)
	}
	return made, err
}

// test returns the test for a session.
func (s *searchFlags) test(a *cli.App, t *cli.OpenedSession, made compiledTest) (bisect.Test, error) {
	switch {
	case made.compared != nil:
		return made.compared.bisectTest(), nil
	case made.predicate != nil:
		return answer.BadIf(made.predicate), t.FoldFor(&made.predicate.Expression)
	default:
		return s.programTest(t, a, made.command), nil
	}
}
