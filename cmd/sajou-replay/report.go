package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
)

// metric is a figure about an episode, and how it is read.
type metric struct {
	name, says string
	target     float64 // a share
	most       bool    // the target is an upper bound
	rate       func(*director.Report) director.Rate
}

// metrics are what an episode is measured by.
var metrics = []metric{
	{"delivery", "directed beats that landed without being forced", 0.90, false, func(r *director.Report) director.Rate { return r.Delivery }},
	{"verified", "landed beats that were found in what was said", 0, false, func(r *director.Report) director.Rate {
		return overBeats(r, func(b *director.BeatReport) director.Rate { return b.Verified })
	}},
	{"assumed", "landed beats that nobody looked for", 0, false, func(r *director.Report) director.Rate {
		return overBeats(r, func(b *director.BeatReport) director.Rate { return b.Assumed })
	}},
	{"selection", "offered choices that were made", 0.80, false, func(r *director.Report) director.Rate { return r.Selection }},
	{"message after", "made choices after which the user still had to type", 0, true, func(r *director.Report) director.Rate { return r.MessageAfter }},
	{"grounded", "offered choices that follow a verified beat", 0, false, func(r *director.Report) director.Rate { return r.Relevance }},
}

func overBeats(r *director.Report, of func(*director.BeatReport) director.Rate) (sum director.Rate) {
	for i := range r.Beats {
		part := of(&r.Beats[i])
		sum.N, sum.Of = sum.N+part.N, sum.Of+part.Of
	}
	return sum
}

// relevanceText says what no log can say.
const relevanceText = "not known: a log cannot say whether a choice fits what was said; people or a judge must rate it"

func (a *app) reportCommand() *cobra.Command {
	var svg string
	cmd := &cobra.Command{
		Use:   "report [SESSION]...",
		Short: "Report how episodes did over many sessions",
		Long: `Report adds up the sessions that are named, or all of the store that play an
episode, and tells of each version of an episode how it did:

  delivery       of the beats that a session directed, those that landed by what
                 the character said, not by an inserted line; wanted is 90 %
  verified       of the beats that landed, those that were found in the response,
  assumed        and those that nobody looked for (detection "automatic")
  selection      of the choices that were offered, those that were made; one that
                 was declined, or was open at the end, was not; wanted is 80 %
  message after  of the choices that were made, those after which the user still
                 had to type, which are the legacy ones; wanted is none
  grounded       of the choices that were offered, those of beats that were verified:
                 what they answer was said

and of each beat in how many sessions it landed, how surely, how many turns behind
its target (the median and the 95th percentile: the value of the nearest rank; less
than zero is before it), in how many turns the character was told that it must
happen now, how many verdicts were unclear and how often it was given up. Of each
choice it counts the answers. Dead branches are beats that could never be directed,
answers that nobody gave and flags of answers that were never set; seen of possible
counts combinations of answers, not answering being one.

What came of a response that was dropped is not counted, nor is an event that does
not follow from those before it. A session that was run again counts as any other:
name those that are meant. Relevance of choices, of which 95 % is wanted, is
not known: no log can say whether a choice fits what was said. "grounded" is what
can be known of it. Nor does a log know who came back the next day.`,
		Example: `  sajou-replay report
  sajou-replay report monday tuesday -o json
  sajou-replay report --svg report.svg`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.session != "" {
				args = append([]string{a.session}, args...)
			}
			return a.report(cmd.Context(), args, svg)
		},
	}
	cmd.Flags().StringVar(&svg, "svg", "", "write a chart into this file, too")
	_ = cmd.MarkFlagFilename("svg", "svg")
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

func (a *app) report(ctx context.Context, names []string, svg string) error {
	engine, err := a.openReading()
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
	var meter director.Meter
	progress := newMeter(a.stderr)
	defer progress.clear()
	seen := map[string]bool{}
	for i, name := range names {
		if seen[name] {
			return misuse("session %q is named twice", name)
		}
		seen[name] = true
		progress.show(fmt.Sprintf("%d of %d sessions", i, len(names)))
		t, err := a.targetIn(engine, name)
		if err != nil {
			return err
		}
		played, err := measure(ctx, &meter, t)
		if err != nil {
			return err
		}
		if named && !played {
			return fail(exitNotFound, "session %q plays no episode", name)
		}
	}
	progress.clear()
	reports := meter.Reports()
	if len(reports) == 0 {
		return fail(exitNotFound, "no session in %s plays an episode", a.store)
	}
	if svg != "" {
		if err := writeFile(svg, func(w io.Writer) error { return writeReportSVG(w, reports) }); err != nil {
			return err
		}
	}
	o := a.output()
	for i := range reports {
		text := reportText(&reports[i])
		if i > 0 {
			text = "\n" + text
		}
		if err := o.itemOf(text, viewReport(&reports[i])); err != nil {
			return err
		}
	}
	return o.end()
}

// measure counts a session, and reports whether it plays an episode.
func measure(ctx context.Context, m *director.Meter, t *target) (played bool, err error) {
	var broken error
	counting := m.Session(records(t.engine.Replay(t.name).Script(ctx, t.log.Head().Seq), &played, &broken))
	if broken != nil {
		return played, broken
	}
	return played, counting
}

// records are the events alone. What went wrong is put into broken.
func records(script iter.Seq2[sajou.Scripted, error], played *bool, broken *error) iter.Seq[director.Record] {
	return func(yield func(director.Record) bool) {
		for s, err := range script {
			if err != nil {
				*broken = err
				return
			}
			*played = *played || s.Word == director.EpisodeStarted
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

func viewRate(r director.Rate) rateView { return rateView{r.N, r.Of, r.Share()} }

func viewReport(r *director.Report) reportView {
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
func bar(r director.Rate) string {
	full := 0
	if r.Of > 0 {
		full = (r.N*barLength + r.Of/2) / r.Of
	}
	return strings.Repeat("█", full) + strings.Repeat("░", barLength-full)
}

// shareText tells a share, and of how many.
func shareText(r director.Rate) string {
	if r.Of == 0 {
		return "none"
	}
	return fmt.Sprintf("%d%%, %d of %d", (r.N*100+r.Of/2)/r.Of, r.N, r.Of)
}

func reportText(r *director.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%.8s): %s, %s\n\n", printable(r.Episode), r.Digest.String(), plural(r.Sessions, "session", "sessions"), plural(r.Turns, "turn", "turns"))
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
		fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%d\t%d\n", clip(printable(at.Beat), 40), bar(at.Landed), shareText(at.Landed),
			at.Verified.N, at.Assumed.N, at.Forced.N, at.Missed, late, p95, at.Overdue, at.Unclear)
	}
	for i := range r.Choices {
		c := &r.Choices[i]
		fmt.Fprintf(w, "\n  choice %s\t\t%d offered, %d declined\n", clip(printable(c.ChoicePoint), 40), c.Offered, c.Declined)
		for j, n := range c.Selected {
			rate := director.Rate{N: n, Of: c.Offered}
			fmt.Fprintf(w, "    %s\t%s\t%s\n", clip(printable(c.Options[j]), 40), bar(rate), shareText(rate))
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

// deadText tells what no session has seen.
func deadText(r *director.Report) string {
	var b strings.Builder
	dead := func(what string, names []string) {
		if len(names) > 0 {
			fmt.Fprintf(&b, "  %s: %s\n", what, printable(strings.Join(names, ", ")))
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
