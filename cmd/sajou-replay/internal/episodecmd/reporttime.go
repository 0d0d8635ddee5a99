package episodecmd

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/timing"
)

const timeHelp = `--time measures where the session time of one session goes, whether it plays an
episode or not, and --against compares it with another:

  busy, idle     time with and without a performance under way; a performance is
                 under way from its signal to its end, also while it waits for
                 its guard
  overlap        time with at least two performances under way; of a definition,
                 the share of its time in which another one was
  gaps           idle times between two busy ones
  latency        from a signal to the first command of its performances; of a
                 definition, from the signal to the first command of each; of a
                 beat, from the guidance that first directed it to its landing
  length         from the signal to the end, interrupted or not
  interrupted    of the performances, those that another signal ended; of the
                 landings of a beat, those that a dropped attempt undid

The label of a fork is shown, because it was never recorded.
Times are those at 50 %, 99 % (by nearest rank) and at most. What the last entry
began counts for 60 s.`

// timeReport holds the flags of report --time.
type timeReport struct {
	on      bool
	against string
	storeB  string
}

func (r *timeReport) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.on, "time", false, "measure where the time of a session goes")
	cmd.Flags().StringVar(&r.against, "against", "", "with --time, compare with `SESSION`")
	cmd.Flags().StringVar(&r.storeB, "store-b", "", "with --against, `DIR` of its store")
	_ = cmd.MarkFlagDirname("store-b")
}

func (r *timeReport) check(cmd *cobra.Command, args []string) error {
	given := cmd.Flags().Changed
	switch {
	case !r.on && (given("against") || given("store-b")):
		return cli.Misuse("--against and --store-b need --time")
	case r.on && given("svg"):
		return cli.Misuse("--svg draws the report of episodes; omit --time")
	case r.on && len(args) > 1:
		return cli.Misuse("--time measures one session; name the other with --against")
	case given("store-b") && r.against == "":
		return cli.Misuse("--store-b needs --against")
	}
	return nil
}

// times is one or two measurements; the second is nil without --against.
type times struct{ left, right *measured }

// measured is the measurement of a session, and its label if it is a fork.
type measured struct {
	*timing.Budget
	fork *answer.ForkView
	note string
}

func (r *timeReport) run(ctx context.Context, a *cli.App, args []string) error {
	var name string
	if len(args) > 0 {
		name = args[0]
	}
	var both times
	var err error
	if both.left, err = measureTime(ctx, a, name); err != nil {
		return err
	}
	if r.against != "" {
		other := *a
		other.Session, other.Lost = "", nil
		if r.storeB != "" {
			other.Store = r.storeB
		}
		if both.right, err = measureTime(ctx, &other, r.against); err != nil {
			return err
		}
		a.Lost = cmp.Or(a.Lost, other.Lost)
	}
	if both.right == nil {
		return a.Output().One(both.text(), viewBudget(both.left))
	}
	return a.Output().One(both.text(), map[string]any{"left": viewBudget(both.left), "right": viewBudget(both.right)})
}

func measureTime(ctx context.Context, a *cli.App, name string) (*measured, error) {
	t, err := a.OpenSession(name)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	m := &measured{}
	if m.fork, m.note, err = t.Fork(ctx); err != nil {
		return nil, err
	}
	m.Budget, err = timing.Measure(ctx, t.Travel)
	return m, err
}

// The views of a measurement, for JSON. Times are in milliseconds.
type (
	spreadView struct {
		Count int     `json:"count"`
		P50   float64 `json:"p50"`
		P99   float64 `json:"p99"`
		Max   float64 `json:"max"`
	}
	typeView struct {
		Type         string     `json:"type"`
		Signals      int        `json:"signals"`
		Silent       int        `json:"silent"`
		Performances int        `json:"performances"`
		Interrupted  int        `json:"interrupted"`
		Latency      spreadView `json:"latency"`
	}
	performanceView struct {
		Name        string     `json:"name"`
		Made        int        `json:"made"`
		Interrupted int        `json:"interrupted"`
		Open        int        `json:"open"`
		Latency     spreadView `json:"latency"`
		Length      spreadView `json:"length"`
		Total       float64    `json:"total"`
		Overlap     float64    `json:"overlap"`
	}
	beatTimesView struct {
		Beat     string     `json:"beat"`
		Directed int        `json:"directed"`
		Landed   int        `json:"landed"`
		Dropped  int        `json:"dropped"`
		Latency  spreadView `json:"latency"`
	}
	budgetView struct {
		Session      string            `json:"session"`
		Fork         *answer.ForkView  `json:"fork,omitempty"`
		Head         cli.HeadView      `json:"head"`
		Length       float64           `json:"length"`
		Busy         float64           `json:"busy"`
		Idle         float64           `json:"idle"`
		Overlap      float64           `json:"overlap"`
		Most         int               `json:"most"`
		Gaps         spreadView        `json:"gaps"`
		Types        []typeView        `json:"types"`
		Performances []performanceView `json:"performances"`
		Beats        []beatTimesView   `json:"beats"`
	}
)

func viewSpread(s timing.Spread) spreadView {
	return spreadView{s.Count, projection.Millis(s.P50), projection.Millis(s.P99), projection.Millis(s.Max)}
}

func viewBudget(b *measured) budgetView {
	v := budgetView{
		Session: b.Session, Fork: b.fork, Head: cli.ViewHead(b.Head), Length: projection.Millis(b.Length), Busy: projection.Millis(b.Busy), Idle: projection.Millis(b.Idle),
		Overlap: projection.Millis(b.Overlap), Most: b.Most, Gaps: viewSpread(b.Gaps), Types: []typeView{}, Performances: []performanceView{}, Beats: []beatTimesView{},
	}
	for _, t := range b.Types {
		v.Types = append(v.Types, typeView{t.Type, t.Signals, t.Silent, t.Performances, t.Interrupted, viewSpread(t.Latency)})
	}
	for _, p := range b.Performances {
		v.Performances = append(v.Performances, performanceView{
			p.Name, p.Made, p.Interrupted, p.Open, viewSpread(p.Latency), viewSpread(p.Length), projection.Millis(p.Total), projection.Millis(p.Overlap),
		})
	}
	for _, beat := range b.Beats {
		v.Beats = append(v.Beats, beatTimesView{beat.Beat, beat.Directed, beat.Landed, beat.Dropped, viewSpread(beat.Latency)})
	}
	return v
}

// text is a table for people. Of two sessions each row of the second stands below that
// of the first, if one of them has it.
func (t times) text() string {
	var out strings.Builder
	sessions := []*measured{t.left}
	if t.right != nil {
		sessions = append(sessions, t.right)
	}
	var all []*timing.Budget
	for _, b := range sessions {
		all = append(all, b.Budget)
		fmt.Fprintf(&out, "%s: %s, busy %s (%s), idle %s, overlap %s, at most %d at once\n", termtext.Printable(b.Session), cli.ClockText(b.Length),
			cli.ClockText(b.Busy), shareOf(b.Busy, b.Length), cli.ClockText(b.Idle), cli.ClockText(b.Overlap), b.Most)
		if b.note != "" {
			fmt.Fprintf(&out, "  %s\n", b.note)
		}
		fmt.Fprintf(&out, "  %s between: %s\n", cli.Plural(b.Gaps.Count, "gap", "gaps"), spreadText(b.Gaps))
	}
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	table(w, all, "\n  TYPE\tSIGNALS\tSILENT\tPERFORMANCES\tINTERRUPTED\tLATENCY (P50 P99 MAX)",
		func(b *timing.Budget) []timing.TypeTimes { return b.Types }, func(x timing.TypeTimes) string { return x.Type }, func(x timing.TypeTimes) string {
			return fmt.Sprintf("%d\t%d\t%d\t%s\t%s", x.Signals, x.Silent, x.Performances, part(x.Interrupted, x.Performances), spreadText(x.Latency))
		})
	table(w, all, "\n  PERFORMANCE\tMADE\tOPEN\tOVERLAP\tINTERRUPTED\tLATENCY (P50 P99 MAX)\tLENGTH (P50 P99 MAX)",
		func(b *timing.Budget) []timing.PerformanceTimes { return b.Performances }, func(x timing.PerformanceTimes) string { return x.Name }, func(x timing.PerformanceTimes) string {
			return fmt.Sprintf("%d\t%d\t%s\t%s\t%s\t%s", x.Made, x.Open, shareOf(x.Overlap, x.Total), part(x.Interrupted, x.Made), spreadText(x.Latency), spreadText(x.Length))
		})
	table(w, all, "\n  BEAT\tDIRECTED\tLANDED\tINTERRUPTED\tLATENCY (P50 P99 MAX)",
		func(b *timing.Budget) []timing.BeatTimes { return b.Beats }, func(x timing.BeatTimes) string { return x.Beat }, func(x timing.BeatTimes) string {
			return fmt.Sprintf("%d\t%d\t%s\t%s", x.Directed, x.Landed, part(x.Dropped, x.Dropped+x.Landed), spreadText(x.Latency))
		})
	if w.Flush() != nil {
		return "" // a builder does not fail
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// table writes the rows of one kind, in the order of the first session, then those that
// only the second has.
func table[T any](w *tabwriter.Writer, all []*timing.Budget, head string, rows func(*timing.Budget) []T, name func(T) string, text func(T) string) {
	var order []string
	of := make([]map[string]T, len(all))
	for i, b := range all {
		of[i] = map[string]T{}
		for _, row := range rows(b) {
			known := false
			for _, earlier := range of[:i] {
				_, has := earlier[name(row)]
				known = known || has
			}
			if !known {
				order = append(order, name(row))
			}
			of[i][name(row)] = row
		}
	}
	if len(order) == 0 {
		return
	}
	fmt.Fprintln(w, head)
	for _, key := range order {
		label := termtext.Clip(termtext.Printable(key), 40)
		for i := range all {
			cells := "-"
			if row, has := of[i][key]; has {
				cells = text(row)
			}
			if i > 0 {
				label = "  against"
			}
			fmt.Fprintf(w, "  %s\t%s\n", label, cells)
		}
	}
}

// shareOf writes a share of a time.
func shareOf(part, whole time.Duration) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(part)/float64(whole))
}

// part writes a count with its share.
func part(n, of int) string {
	if n == 0 || of == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%d%%)", n, (n*100+of/2)/of)
}

func spreadText(s timing.Spread) string {
	if s.Count == 0 {
		return "-"
	}
	return fmt.Sprintf("%s %s %s", short(s.P50), short(s.P99), short(s.Max))
}

// short writes a time in milliseconds below ten seconds, else in seconds.
func short(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%gms", float64(d.Round(10*time.Microsecond))/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}
