package episodecmd

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/explore"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// metric is a figure about an episode, and how it is computed.
type metric struct {
	name, says string
	target     float64 // a share
	most       bool    // the target is an upper bound
	rate       func(*explore.Report) explore.Rate
}

// metrics are the figures about an episode.
var metrics = []metric{
	{"delivery", "directed beats that landed without being forced", 0.90, false, func(r *explore.Report) explore.Rate { return r.Delivery }},
	{"verified", "landed beats that were found in the response", 0, false, func(r *explore.Report) explore.Rate {
		return overBeats(r, func(b *explore.BeatReport) explore.Rate { return b.Verified })
	}},
	{"assumed", "landed beats that were not searched for", 0, false, func(r *explore.Report) explore.Rate {
		return overBeats(r, func(b *explore.BeatReport) explore.Rate { return b.Assumed })
	}},
	{"selection", "offered choices that were made", 0.80, false, func(r *explore.Report) explore.Rate { return r.Selection }},
	{"message after", "made choices after which the user still had to type", 0, true, func(r *explore.Report) explore.Rate { return r.MessageAfter }},
	{"grounded", "offered choices that follow a verified beat", 0, false, func(r *explore.Report) explore.Rate { return r.Relevance }},
}

func overBeats(r *explore.Report, of func(*explore.BeatReport) explore.Rate) (sum explore.Rate) {
	for i := range r.Beats {
		part := of(&r.Beats[i])
		sum.N, sum.Of = sum.N+part.N, sum.Of+part.Of
	}
	return sum
}

// relevanceText explains the metric that a log does not hold.
const relevanceText = "not known: a log cannot say whether a choice fits the scene; people or a judge must rate it"

// Report returns the command "report".
func Report(a *cli.App) *cobra.Command {
	var svg string
	var times timeReport
	cmd := &cobra.Command{
		Use:   "report [SESSION]...",
		Short: "Measure how episodes played in many sessions, or where time went",
		Long: `Report adds up the named sessions, or all sessions of the store that play an
episode, and shows for each version of an episode:

  delivery       of the beats that were directed, those that landed without an
                 inserted line; the target is 90 %
  verified       of the beats that landed, those that were found in the
                 response
  assumed        of the beats that landed, those that were not searched for
                 (detection "automatic")
  selection      of the choices that were offered, those that were made, neither
                 declined nor open at the end; the target is 80 %
  message after  of the choices that were made, those after which the user still
                 had to type, which are the legacy ones; the target is none
  grounded       of the choices that were offered, those of verified beats

For each beat it shows the share of sessions in which it landed, the assurance,
the turns between its target and its landing (the median and the 95th
percentile, by nearest rank; negative is before the target), the turns in which
it was directed as overdue, the unclear verdicts, and how often it was given up.
For each choice it counts the answers. Dead branches are beats that were never
eligible, answers that were never given, and flags of answers that were never
set; "seen of possible" counts the combinations of answers, no answer being one
of them.

Dropped attempts of a response and events that cannot follow those before them
do not count. A session that was run again counts like any other: name the
sessions you mean. The relevance of choices, with a target of 95 %, is not
known: a log does not hold whether a choice fits the scene. "grounded" is the
part of it that is known.

` + timeHelp,
		Example: `  sajou-replay report
  sajou-replay report monday tuesday -o json
  sajou-replay report --svg report.svg
  sajou-replay report --time monday --against tuesday`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.Session != "" {
				args = append([]string{a.Session}, args...)
			}
			if err := times.check(cmd, args); err != nil {
				return err
			}
			if times.on {
				return times.run(cmd.Context(), a, args)
			}
			return runReport(cmd.Context(), a, args, svg)
		},
	}
	cmd.Flags().StringVar(&svg, "svg", "", "also write a chart to this file")
	times.flags(cmd)
	_ = cmd.MarkFlagFilename("svg", "svg")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func runReport(ctx context.Context, a *cli.App, names []string, svg string) error {
	engine, err := a.OpenReading()
	if err != nil {
		return err
	}
	defer engine.Close()
	named := len(names) > 0
	if !named {
		if names, err = engine.Sessions(); err != nil {
			return err
		}
	}
	var meter explore.Meter
	progress := cli.NewProgress(a.Stderr)
	defer progress.Clear()
	seen := map[string]bool{}
	for i, name := range names {
		if seen[name] {
			return cli.Misuse("session %q is named twice", name)
		}
		seen[name] = true
		progress.Show(fmt.Sprintf("%d of %d sessions", i, len(names)))
		t, err := a.OpenSessionIn(engine, name)
		if err != nil {
			return err
		}
		played, err := measure(ctx, &meter, t)
		if err != nil {
			return err
		}
		if named && !played {
			return cli.Fail(cli.ExitNotFound, "session %q plays no episode", name)
		}
	}
	progress.Clear()
	reports := meter.Reports()
	if len(reports) == 0 {
		return cli.Fail(cli.ExitNotFound, "no session in %s plays an episode", a.Store)
	}
	if svg != "" {
		if err := cli.WriteFile(svg, func(w io.Writer) error { return writeReportSVG(w, reports) }); err != nil {
			return err
		}
	}
	o := a.Output()
	for i := range reports {
		text := reportText(&reports[i])
		if i > 0 {
			text = "\n" + text
		}
		if err := o.ItemOf(text, viewReport(&reports[i])); err != nil {
			return err
		}
	}
	return o.End()
}

// measure counts a session, and reports whether it plays an episode.
func measure(ctx context.Context, m *explore.Meter, t *cli.OpenedSession) (played bool, err error) {
	var broken error
	counting := m.Session(records(history.Events(ctx, t.Travel, t.Log.Head().Seq), &played, &broken))
	if broken != nil {
		return played, broken
	}
	return played, counting
}

// records returns the events without their states. An error goes to broken.
func records(script iter.Seq2[session.StatefulEvent, error], played *bool, broken *error) iter.Seq[signal.Record] {
	return func(yield func(signal.Record) bool) {
		for s, err := range script {
			if err != nil {
				*broken = err
				return
			}
			*played = *played || s.Word == episode.EpisodeStarted
			if !yield(s.Record) {
				return
			}
		}
	}
}

// The views of a report, for JSON.
type (
	rateView struct {
		N     int     `json:"n"`
		Of    int     `json:"of"`
		Share float64 `json:"share"`
	}
	metricView struct {
		rateView
		Says   string   `json:"says"`
		Target *float64 `json:"target,omitempty"`
	}
	beatReportView struct {
		Beat          string   `json:"beat"`
		Landed        rateView `json:"landed"`
		Verified      rateView `json:"verified"`
		Assumed       rateView `json:"assumed"`
		Forced        rateView `json:"forced"`
		Missed        int      `json:"missed"`
		Overdue       int      `json:"overdue_turns"`
		Unclear       int      `json:"unclear_verdicts"`
		Median        *int     `json:"late_median"`
		P95           *int     `json:"late_p95"`
		NeverEligible bool     `json:"never_eligible"`
	}
	optionView struct {
		Option   string `json:"choice"`
		Selected int    `json:"selected"`
	}
	choiceReportView struct {
		Point    string       `json:"choice_point"`
		Offered  int          `json:"offered"`
		Declined int          `json:"declined"`
		Options  []optionView `json:"choices"`
	}
	reportView struct {
		Episode   string                `json:"episode"`
		Digest    string                `json:"digest"`
		Sessions  int                   `json:"sessions"`
		Turns     int                   `json:"turns"`
		Metrics   map[string]metricView `json:"metrics"`
		Relevance *rateView             `json:"relevance"` // null: see relevanceText
		Note      string                `json:"relevance_note"`
		Beats     []beatReportView      `json:"beats"`
		Choices   []choiceReportView    `json:"choices"`
		NeverSet  []string              `json:"flags_never_set"`
		Seen      int                   `json:"combinations_seen"`
		Possible  int                   `json:"combinations_possible"`
	}
)

func viewRate(r explore.Rate) rateView { return rateView{r.N, r.Of, r.Share()} }

func viewReport(r *explore.Report) reportView {
	v := reportView{
		Episode: r.Episode, Digest: r.Digest.String(), Sessions: r.Sessions, Turns: r.Turns, Metrics: map[string]metricView{},
		Note: relevanceText, Beats: []beatReportView{}, Choices: []choiceReportView{}, NeverSet: r.NeverSet, Seen: r.Seen, Possible: r.Possible,
	}
	if v.NeverSet == nil {
		v.NeverSet = []string{}
	}
	for _, m := range metrics {
		view := metricView{rateView: viewRate(m.rate(r)), Says: m.says}
		if m.target > 0 || m.most {
			view.Target = &m.target
		}
		v.Metrics[strings.ReplaceAll(m.name, " ", "_")] = view
	}
	for i := range r.Beats {
		b := &r.Beats[i]
		view := beatReportView{
			Beat: b.Beat, Landed: viewRate(b.Landed), Verified: viewRate(b.Verified), Assumed: viewRate(b.Assumed), Forced: viewRate(b.Forced),
			Missed: b.Missed, Overdue: b.Overdue, Unclear: b.Unclear, NeverEligible: b.NeverEligible,
		}
		if b.Landed.N > 0 {
			view.Median, view.P95 = &b.Median, &b.P95
		}
		v.Beats = append(v.Beats, view)
	}
	for i := range r.Choices {
		c := &r.Choices[i]
		view := choiceReportView{c.ChoicePoint, c.Offered, c.Declined, []optionView{}}
		for j, n := range c.Selected {
			view.Options = append(view.Options, optionView{c.Options[j], n})
		}
		v.Choices = append(v.Choices, view)
	}
	return v
}

const barLength = 10

// bar draws a share.
func bar(r explore.Rate) string {
	full := 0
	if r.Of > 0 {
		full = (r.N*barLength + r.Of/2) / r.Of
	}
	return strings.Repeat("█", full) + strings.Repeat("░", barLength-full)
}

// shareText writes a share and its counts.
func shareText(r explore.Rate) string {
	if r.Of == 0 {
		return "none"
	}
	return fmt.Sprintf("%d%%, %d of %d", (r.N*100+r.Of/2)/r.Of, r.N, r.Of)
}

func reportText(r *explore.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%.8s): %s, %s\n\n", termtext.Printable(r.Episode), r.Digest.String(), cli.Plural(r.Sessions, "session", "sessions"), cli.Plural(r.Turns, "turn", "turns"))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, m := range metrics {
		wanted := ""
		switch {
		case m.most:
			wanted = "; wanted: none"
		case m.target > 0:
			wanted = fmt.Sprintf("; wanted: %.0f%%", m.target*100)
		}
		rate := m.rate(r)
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s%s\n", m.name, bar(rate), shareText(rate), m.says, wanted)
	}
	fmt.Fprintf(w, "  relevance\t\t\t%s\n\n", relevanceText)
	fmt.Fprintln(w, "  BEAT\tLANDED\t\tVERIFIED\tASSUMED\tFORCED\tMISSED\tLATE\tP95\tOVERDUE\tUNCLEAR")
	for i := range r.Beats {
		at := &r.Beats[i]
		late, p95 := "-", "-"
		if at.Landed.N > 0 {
			late, p95 = fmt.Sprintf("%+d", at.Median), fmt.Sprintf("%+d", at.P95)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%d\t%d\n", termtext.Clip(termtext.Printable(at.Beat), 40), bar(at.Landed), shareText(at.Landed),
			at.Verified.N, at.Assumed.N, at.Forced.N, at.Missed, late, p95, at.Overdue, at.Unclear)
	}
	for i := range r.Choices {
		c := &r.Choices[i]
		fmt.Fprintf(w, "\n  choice %s\t\t%d offered, %d declined\n", termtext.Clip(termtext.Printable(c.ChoicePoint), 40), c.Offered, c.Declined)
		for j, n := range c.Selected {
			rate := explore.Rate{N: n, Of: c.Offered}
			fmt.Fprintf(w, "    %s\t%s\t%s\n", termtext.Clip(termtext.Printable(c.Options[j]), 40), bar(rate), shareText(rate))
		}
	}
	if w.Flush() != nil {
		return "" // a builder does not fail
	}
	b.WriteString("\n" + deadText(r))
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// deadText lists the parts that occurred in no session.
func deadText(r *explore.Report) string {
	var b strings.Builder
	dead := func(what string, names []string) {
		if len(names) > 0 {
			fmt.Fprintf(&b, "  %s: %s\n", what, termtext.Printable(strings.Join(names, ", ")))
		}
	}
	var never, unmade []string
	for i := range r.Beats {
		if r.Beats[i].NeverEligible {
			never = append(never, r.Beats[i].Beat)
		}
	}
	for i := range r.Choices {
		for j, n := range r.Choices[i].Selected {
			if n == 0 {
				unmade = append(unmade, r.Choices[i].ChoicePoint+"/"+r.Choices[i].Options[j])
			}
		}
	}
	dead("never eligible", never)
	dead("never chosen", unmade)
	dead("flags never set", r.NeverSet)
	fmt.Fprintf(&b, "  combinations of answers seen: %d of %d\n", r.Seen, r.Possible)
	return b.String()
}
