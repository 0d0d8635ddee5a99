// Mutate breaks the code on purpose and tells which breaks no test notices.
//
//	go run ./internal/mutate [-seed N] [-n N] [-group NAME,...] [-v]
//
// Of each group of packages it draws a sample of single changes: negated
// conditions, comparisons and numbers that are off by one, dropped statements
// and error checks, swapped operands. It tests each change with the package's
// own tests, then with those of the packages of the group that import it, then
// with those of the rest of the module that import it. A change that does not
// compile is replaced by another. The working tree is not touched: the go
// command reads the changed file through an overlay.
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
var groups = []group{
	{"signal", []string{"signal"}},
	{"choreography", []string{"choreography", "choreography/curve", "choreography/definition", "choreography/language", "choreography/rehearsal"}},
	{"stage", []string{"stage", "stage/scene", "stage/picture", "stage/film"}},
	{"agents", []string{"agents", "agents/world", "agents/view", "agents/query", "agents/jsondoc", "agents/history"}},
	{"director", []string{"director", "director/episode", "director/explore", "director/history"}},
	{"eventlog", []string{"eventlog", "eventlog/chain", "eventlog/verify", "eventlog/internal/storefile", "eventlog/internal/keyspace"}},
	{"projection", []string{"projection"}},
	{"snapshot", []string{"snapshot"}},
	{"replay", []string{"replay", "replay/where"}},
	{"live", []string{"internal/writer", "stage/live", "agents/live", "agents/generate", "director/live"}},
}

type group struct {
	name string
	dirs []string
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

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (bool, error) {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	seed := flags.Uint64("seed", 0, "the sample to draw; 0 takes one from the clock and prints it")
	n := flags.Int("n", 30, "changes a group")
	only := flags.String("group", "", "only these groups, separated by commas")
	verbose := flags.Bool("v", false, "print the changes that are caught too")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	equivalent, err := readEquivalent("internal/mutate/equivalent.txt")
	if err != nil {
		return false, err
	}
	imports, err := listImports(ctx)
	if err != nil {
		return false, err
	}
	if err := limitMemory(); err != nil {
		return false, err
	}
	fmt.Fprintf(stdout, "seed %d\n", *seed)
	ok := true
	for _, g := range groups {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), g.name) {
			continue
		}
		var sites []change
		for _, dir := range g.dirs {
			found, err := sitesOf(dir)
			if err != nil {
				return false, err
			}
			sites = append(sites, found...)
		}
		// Each group has its own random numbers, so that -group does not change
		// what is drawn.
		rnd := rand.New(rand.NewPCG(*seed, uint64(len(g.name))<<8|uint64(g.name[0])))
		rnd.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
		t := tally{out: stdout, verbose: *verbose}
		for _, c := range sites {
			if t.tested() == *n {
				break
			}
			if reason, listed := equivalent[c.key()]; listed {
				t.equivalent(c, reason)
				continue
			}
			v, by, err := try(ctx, c, imports.testers(g, c.dir))
			if err != nil {
				return false, err
			}
			t.add(c, v, by)
		}
		fmt.Fprintf(stdout, "%-12s %d of %d caught (%.0f %%), %d known as equivalent\n", g.name, t.caught, t.tested(), 100*t.share(), t.equal)
		ok = ok && t.share() >= goal
	}
	return ok, nil
}

// tally counts the changes of one group.
type tally struct {
	out                   io.Writer
	verbose               bool
	caught, missed, equal int
}

func (t *tally) tested() int { return t.caught + t.missed }

func (t *tally) share() float64 {
	if t.tested() == 0 {
		return 1
	}
	return float64(t.caught) / float64(t.tested())
}

func (t *tally) equivalent(c change, reason string) {
	t.equal++
	if t.verbose {
		fmt.Fprintf(t.out, "equivalent %v (%s)\n", c, reason)
	}
}

func (t *tally) add(c change, v verdict, by string) {
	switch v {
	case caught:
		t.caught++
		if t.verbose {
			fmt.Fprintf(t.out, "caught     %v by %s\n", c, by)
		}
	case missed:
		t.missed++
		fmt.Fprintf(t.out, "MISSED     %v\n", c)
	case broken: // does not compile: another is drawn
	}
}
