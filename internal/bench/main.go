// Bench measures the engine through its public door beside raw Pebble, and beside a
// minimal chained log over it, with the same payload bytes, batches and syncs,
// interleaved in one run, and prints a table.
//
// Compare the ratios: the sides of each are measured alternately, in several rounds,
// and the best rounds are compared. Absolute times describe the machine. A round during
// which the host of a virtual machine took more than 5 % of the processors' time is
// repeated up to three times; a row whose rounds stayed above is marked. With
// BENCH_OUT=FILE the results are written there as JSON:
//
//	[{"name", "value", "unit", "peer", "ratio", "goal", "holds", "steal", "noisy"}]
//
// where peer is left out and ratio, goal, holds and steal are null where a row has none.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// scale is the amount of work of a run.
type scale struct {
	rounds   int // of each pair
	appends  int // single durable appends a round
	writers  int // durable appends a round with 64 writers
	scanned  int // entries of the session that is scanned and verified
	bisected int // entries of the session that is bisected
	long     int // entries of the long session
	short    int // entries of the short session, for comparison of memory
	states   int // random Seqs whose state is computed

	active   []int // active performances while commands are measured
	commands int   // a round
	frames   int   // pictures a round

	paced   int   // intents of each agent at its pace
	intents int   // a round, without a pause
	worlds  []int // numbers of agents in the worlds in which an effect is measured
	halts   int   // generations that are cancelled

	guided int // turns that are guided
	turns  int // that are folded

	traced    int // entries of the session whose values are traced back
	minimized int // signals of the session that is minimized

	compared int // signals of the session that is compared with itself
	swapped  int // of its entries are swapped in pairs

	hooks int // processes a round

	watchers int // clients that watch a session
	watched  int // entries that they see in a round
}

var (
	fullScale = scale{
		rounds: 5, appends: 2000, writers: 64 * 400, scanned: 200_000, bisected: 100_000, long: 1_000_000, short: 10_000, states: 2000,
		active: []int{1, 1000, 100_000}, commands: 150_000, frames: 100,
		paced: 400, intents: 20_000, worlds: []int{10, 100, 1000, 10_000}, halts: 1000,
		guided: 20_000, turns: 100_000,
		traced: 100_000, minimized: 10_000,
		compared: 20_000, swapped: 200,
		hooks:    100,
		watchers: 1000, watched: 2000,
	}
	smokeScale = scale{
		rounds: 1, appends: 50, writers: 64 * 4, scanned: 5000, bisected: 2000, long: 10_000, short: 2000, states: 50,
		active: []int{1, 100}, commands: 1000, frames: 2,
		paced: 10, intents: 400, worlds: []int{10, 100}, halts: 20,
		guided: 100, turns: 1000,
		traced: 2000, minimized: 500,
		compared: 400, swapped: 30,
		hooks:    3,
		watchers: 20, watched: 40,
	}
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	smoke := flags.Bool("short", false, "do very little: shows that the benchmarks run, not how fast")
	only := flags.String("only", "", "run only these parts, of hooks, appends, imports, scans, opening, long, bisections, provenance, comparing, corpora, stage, agents, wire, director, recording, watchers; scans needs imports")
	dir := flags.String("dir", "", "directory for the stores (default: the temporary one)")
	profile := flags.String("cpuprofile", "", "write a profile of the processor to this file; its samples have the labels row and side")
	child := flags.String("child", "", "internal: one job over the store in -dir, whose memory is measured, or the clients that watch the server at -dir")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if isWatch(*child) {
		return watchChild(ctx, *child, *dir, stdout)
	}
	if *child != "" {
		return memoryChild(ctx, *child, *dir, stdout)
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	work, err := os.MkdirTemp(*dir, "sajou-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	b := &bench{ctx: ctx, scale: fullScale, dir: work, notes: stderr}
	if *smoke {
		b.scale = smokeScale
	}
	for _, part := range []struct {
		name string
		run  func() error
	}{{"hooks", b.hooks}, {"appends", b.appends}, {"imports", b.imports}, {"scans", b.scans}, {"opening", b.opening}, {"long", b.long}, {"bisections", b.bisections}, {"provenance", b.provenance}, {"comparing", b.comparing}, {"corpora", b.corpora}, {"stage", b.stage}, {"agents", b.agents}, {"wire", b.wire}, {"director", b.director}, {"recording", b.recording}, {"watchers", b.watchers}} {
		if *only != "" && !strings.Contains(*only, part.name) {
			continue
		}
		if err := part.run(); err != nil {
			return err
		}
	}
	if err := printTable(stdout, b.results, b.scale.rounds); err != nil {
		return err
	}
	return writeJSON(os.Getenv("BENCH_OUT"), b.results)
}

// result is one row.
type result struct {
	Name  string   `json:"name"`
	Value float64  `json:"value"`
	Unit  string   `json:"unit"`
	Peer  string   `json:"peer,omitempty"` // what Ratio compares with
	Ratio *float64 `json:"ratio"`
	Goal  *float64 `json:"goal"`
	Holds *bool    `json:"holds"`

	// Steal is the share of the processors' time that the host took away in the worst
	// round, in percent; null if it is unknown or does not matter. Noisy says that it
	// stayed above the bound.
	Steal *float64 `json:"steal"`
	Noisy bool     `json:"noisy"`

	peer   float64 // what Value is compared with
	spread float64 // of Value over the rounds, in percent of the largest
	lower  bool    // smaller is better
	onUnit bool    // the goal is in Unit, not a ratio
}

func printTable(w io.Writer, results []result, rounds int) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "best of %d rounds\tvalue\tspread\tsteal\tbeside\tvalue\tratio\tgoal\t\n", rounds)
	for _, r := range results {
		spread, steal, peer, ratio, goal, holds := "", "", "", "", "", ""
		if r.spread > 0 {
			spread = fmt.Sprintf("±%.0f%%", r.spread)
		}
		if r.Steal != nil {
			steal = fmt.Sprintf("%.0f%%", *r.Steal)
			if r.Noisy {
				steal += " NOISY"
			}
		}
		if r.Ratio != nil {
			peer, ratio = number(r.peer), fmt.Sprintf("%.2f", *r.Ratio)
		}
		if r.Goal != nil {
			sign := "≥"
			if r.lower {
				sign = "≤"
			}
			goal = fmt.Sprintf("%s %s", sign, number(*r.Goal))
			holds = "holds"
			if !*r.Holds {
				holds = "MISSED"
			}
		}
		fmt.Fprintf(tw, "%s\t%s %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, number(r.Value), r.Unit, spread, steal, r.Peer, peer, ratio, goal, holds)
	}
	return tw.Flush()
}

func number(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	default:
		return fmt.Sprintf("%.2f", f)
	}
}

func writeJSON(path string, results []result) error {
	if path == "" {
		return nil
	}
	b, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// bench collects results.
type bench struct {
	ctx     context.Context
	scale   scale
	dir     string
	notes   io.Writer
	results []result
	stores  int     // opened so far; see fresh
	lone    float64 // bytes of one performance with its definition

	imported, rawImported string // stores of the part imports, which the part scans reads
}
