// Mutate breaks the code on purpose and tells which breaks no test notices.
//
//	go run ./internal/mutate [-seed N] [-n N] [-group NAME,...] [-at PLACE,...] [-far=false] [-v]
//
// Of each group of packages it draws a sample of single changes: negated
// conditions, comparisons and numbers that are off by one, dropped statements
// and error checks, swapped operands. All changes of a sample are compiled into
// one program a package of tests; a file selects the one that takes
// effect, so a change costs no compilation. Each test runs once without a
// change, which tells which changes it passes. A change is then tested with the
// tests that pass it, those of its own package first, then those of the group.
// The changes that these miss are tested with the tests of the other packages
// that depend on the changed one, the nearest first, until one notices; -far=false
// leaves them out. A change that does not compile is replaced by another. The
// working tree is not touched: the go command reads the changed files through an
// overlay.
//
// equivalent.txt lists changes that alter no behaviour, each with the reason.
// They count neither as caught nor as missed. The exit code is 1 when a group
// falls below the goal.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// goal is the least share of the changes that tests must notice.
const goal = 0.92

// groups are the parts that are judged each on its own, with their folders.
// Packages of tests that hold the tests of a group but none of its code are
// testers.
var groups = []group{
	{"signal", []string{"signal"}, nil},
	{"choreography", []string{"choreography", "choreography/curve", "choreography/definition", "choreography/language", "choreography/rehearsal"}, nil},
	{"stage", []string{"stage", "stage/scene", "stage/picture", "stage/film"}, nil},
	{"agents", []string{"agents", "agents/world", "agents/view", "agents/query", "agents/jsondoc", "agents/history"}, nil},
	{"director", []string{"director", "director/episode", "director/explore", "director/history"}, nil},
	{"eventlog", []string{"eventlog", "eventlog/chain", "eventlog/verify", "eventlog/internal/storefile", "eventlog/internal/keyspace"}, nil},
	{"projection", []string{"projection"}, nil},
	{"snapshot", []string{"snapshot"}, nil},
	{"replay", []string{"replay", "replay/where"}, nil},
	{"live", []string{"internal/writer", "stage/live", "agents/live", "agents/generate", "director/live"}, []string{"."}},
}

type group struct {
	name    string
	dirs    []string
	testers []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ok, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	seed         uint64
	n            int
	at           []string
	far, verbose bool
	equivalent   map[string]string
	out          io.Writer
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (bool, error) {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o := options{out: stdout}
	flags.Uint64Var(&o.seed, "seed", 0, "the sample to draw; 0 takes one from the clock and prints it")
	flags.IntVar(&o.n, "n", 30, "changes a group")
	only := flags.String("group", "", "only these groups, separated by commas")
	at := flags.String("at", "", "in place of a sample: all changes at these places, FILE, FILE:LINE or FILE:FUNCTION, separated by commas")
	flags.BoolVar(&o.far, "far", true, "run the tests of dependents outside the group on what those of the group missed")
	flags.BoolVar(&o.verbose, "v", false, "print the changes that are caught too")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if *at != "" {
		o.at = strings.Split(*at, ",")
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
	var err error
	if o.equivalent, err = readEquivalent("internal/mutate/equivalent.txt"); err != nil {
		return false, err
	}
	all, err := list(ctx)
	if err != nil {
		return false, err
	}
	if err := limitMemory(); err != nil {
		return false, err
	}
	fmt.Fprintf(stdout, "seed %d\n", o.seed)
	ok := true
	for _, g := range groups {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), g.name) {
			continue
		}
		passed, err := judge(ctx, all, g, o)
		if err != nil {
			return false, fmt.Errorf("%s: %w", g.name, err)
		}
		ok = ok && passed
	}
	return ok, nil
}

// judge draws a sample of one group and tests it.
func judge(ctx context.Context, all *packages, g group, o options) (bool, error) {
	root, err := os.Getwd()
	if err != nil {
		return false, err
	}
	tmp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // it is a temporary folder
	l := &lab{ctx: ctx, root: root, tmp: tmp, seed: o.seed, written: map[string]string{}, programs: map[string]*program{}, log: o.out}
	exports, err := exportsOf(ctx, g.dirs)
	if err != nil {
		return false, err
	}
	var sites []*change
	for _, dir := range g.dirs {
		s, err := load(dir, all.files[dir], exports)
		if err != nil {
			return false, err
		}
		l.sources = append(l.sources, s)
		sites = append(sites, s.changes...)
	}
	// Each group has its own random numbers, so that -group does not change what
	// is drawn.
	rnd := rand.New(rand.NewPCG(o.seed, uint64(len(g.name))<<8|uint64(g.name[0])))
	rnd.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	t := tally{out: o.out, verbose: o.verbose}
	if o.at != nil {
		sites = slices.DeleteFunc(sites, func(c *change) bool { return !c.isAt(o.at) })
		o.n = len(sites)
	}
	// One in four is drawn more, for those that do not compile or are equivalent.
	l.changes = append([]*change{nil}, sites[:min(len(sites), o.n+o.n/4+2)]...)
	if err := l.prepare(); err != nil {
		return false, err
	}
	for _, c := range l.changes {
		if c == nil || t.tested() == o.n {
			continue
		}
		if reason, listed := o.equivalent[c.key()]; listed {
			t.equivalent(c, reason)
			continue
		}
		near, _ := all.split(g, c)
		by, err := l.noticed(near, c, false)
		if err != nil {
			return false, err
		}
		t.add(c, by)
	}
	fmt.Fprintf(o.out, "%-12s %d of %d caught by the tests of the group (%.0f %%), %d known as equivalent\n", g.name, t.caught, t.tested(), 100*t.share(), t.equal)
	if !o.far {
		return t.share() >= goal, nil
	}
	for _, c := range t.missed {
		_, far := all.split(g, c)
		by, err := l.noticed(far, c, true)
		if err != nil {
			return false, err
		}
		t.addFar(c, by)
	}
	fmt.Fprintf(o.out, "%-12s %d of %d caught with those of dependents (%.0f %%)\n", g.name, t.caught+t.far, t.tested(), 100*t.share())
	return t.share() >= goal, nil
}

// split returns the folders whose tests run the code of a change: its own and those
// of the group, and those of dependents outside. The benchmarks and the checks of the
// source are in neither, since they do not judge behaviour.
func (p *packages) split(g group, c *change) (near, far []string) {
	for _, tester := range p.testers[c.dir] {
		switch {
		case tester == c.dir:
			near = slices.Insert(near, 0, tester)
		case slices.Contains(g.dirs, tester) || slices.Contains(g.testers, tester):
			near = append(near, tester)
		case tester == "internal/layers", tester == "internal/fpcheck", tester == "internal/bench":
		default:
			far = append(far, tester)
		}
	}
	return near, far
}

// noticed returns the first test of some folders that notices a change. With whole set the
// tests of a folder run together.
func (l *lab) noticed(testers []string, c *change, whole bool) (string, error) {
	for _, dir := range testers {
		p, err := l.program(dir, whole)
		if err != nil {
			return "", err
		}
		if p == nil {
			continue
		}
		by, err := l.judge(p, c)
		if err != nil || by != "" {
			return by, err
		}
	}
	return "", nil
}

// tally counts the changes of one group.
type tally struct {
	out         io.Writer
	verbose     bool
	caught, far int // by the tests of the group, and of the others by those of dependents
	missed      []*change
	equal       int
}

func (t *tally) tested() int { return t.caught + len(t.missed) }

func (t *tally) share() float64 {
	if t.tested() == 0 {
		return 1
	}
	return float64(t.caught+t.far) / float64(t.tested())
}

func (t *tally) equivalent(c *change, reason string) {
	t.equal++
	if t.verbose {
		fmt.Fprintf(t.out, "equivalent %v (%s)\n", c, reason)
	}
}

// add counts a change that the test by of the group noticed, or none.
func (t *tally) add(c *change, by string) {
	if by == "" {
		t.missed = append(t.missed, c)
		fmt.Fprintf(t.out, "MISSED     %v\n", c)
		return
	}
	t.caught++
	if t.verbose {
		fmt.Fprintf(t.out, "caught     %v by %s\n", c, by)
	}
}

// addFar counts a missed change that the test by of a dependent noticed, or none.
func (t *tally) addFar(c *change, by string) {
	if by == "" {
		fmt.Fprintf(t.out, "MISSED BY ALL %v\n", c)
		return
	}
	t.far++
	fmt.Fprintf(t.out, "caught by %s: %v\n", by, c)
}
