package statecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/order"
)

// orderFlags holds the flags of order.
type orderFlags struct {
	within  time.Duration
	limit   int
	all     bool
	defines cli.Definitions
}

// Order returns the command "order".
func Order(a *cli.App) *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{
		Use:   "order [SESSION] [RANGE]",
		Short: "Find the signals whose order matters",
		Long: `Order takes each pair of signals that follow each other in the log within 20ms
of session time, or --within a span, swaps them, and compares what follows with
the recording. It lists the pairs whose order changes a state or a picture: the
two entries, the first moment that differs with the changes of the state and of
the picture, and the moment from which the states are alike again, if they are.

The two signals exchange their content; times and numbers stay. Their numbers in
the ids of performances are no difference, nor is the order of sounds. A pair
that would not differ if both signals came at one time differs by its timing
alone. It is counted, and listed only with --all or if the difference lasts.

Behind each pair order folds 200 entries at most, or --limit N, until the states
are equal. Recorded decisions of agents and of the director stay as they are. A
remark tells what was not searched: neighbors of which one is no signal, such as
a decision, and signals that are further apart. Ctrl-C prints what is known.

` + cli.DefinitionsHelp + `

The exit code is 0 if no pair is listed, and 1 if one is. As JSON the last item is
{"totals": ...} with the counts.`,
		Example: `  sajou-replay order
  sajou-replay order night-shift 30..40 --within 500ms --all
  sajou-replay order --within 1s -o jsonl`,
		Args: cli.Between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.within < 0:
				return cli.Misuse("--within %v: must be 0 or more", f.within)
			case f.limit < 1:
				return cli.Misuse("--limit %d: must be at least 1", f.limit)
			}
			session, text, err := a.SplitRange(cmd, args)
			if err != nil {
				return err
			}
			t, err := a.OpenSession(session)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := a.SeeThrough(cmd.Context(), t, f.defines); err != nil {
				return err
			}
			from, to, err := t.ResolveRange(cmd.Context(), text)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), a, t, from, to)
		},
	}
	cmd.Flags().DurationVar(&f.within, "within", order.DefaultWithin, "swap signals that are at most `SPAN` apart")
	cmd.Flags().IntVar(&f.limit, "limit", order.DefaultLimit, "fold at most `N` entries behind a pair")
	cmd.Flags().BoolVar(&f.all, "all", false, "list the pairs that differ by their timing alone, too")
	f.defines.Flag(cmd)
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func (f *orderFlags) run(ctx context.Context, a *cli.App, t *cli.OpenedSession, from, to eventlog.Seq) error {
	cfg := order.Config{From: from, To: to, Within: f.within, Limit: f.limit}
	if f.within == 0 {
		cfg.Within = -1 // the same time only
	}
	meter := cli.NewProgress(a.Stderr)
	defer meter.Clear()
	cfg.Progress = func(at eventlog.Seq) { meter.Show(fmt.Sprintf("at entry %d of %d", at, to)) }
	o := a.Output()
	stats, err := order.Search(ctx, t.Travel, cfg, func(s *order.Swap) error {
		if s.Cause == order.ByTiming && !s.Lasting() && !f.all {
			return nil
		}
		meter.Clear()
		view, text, err := describeSwap(ctx, t, s)
		if err != nil {
			return err
		}
		return o.ItemOf(text, view)
	})
	meter.Clear()
	stopped := ctx.Err() != nil && errors.Is(err, ctx.Err())
	if err != nil && !stopped {
		return err
	}
	matter := o.Items
	if o.JSON() {
		totals := orderTotals{stats.Pairs, stats.Order, stats.Timing, stats.Same, stats.Open, stats.Other, stats.Apart, stats.Last, stopped}
		if err := o.ItemOf("", map[string]orderTotals{"totals": totals}); err != nil {
			return err
		}
	}
	if err := o.End(); err != nil {
		return err
	}
	note := ""
	if stopped {
		note = fmt.Sprintf("interrupted behind entry %d; ", stats.Last)
	}
	fmt.Fprintf(a.Stderr, "%s%s swapped: %d matter by order, %d by timing alone, %d do not%s; not searched: %s within the span that %s not two signals, %s further apart\n",
		note, cli.Plural(stats.Pairs, "pair", "pairs"), stats.Order, stats.Timing, stats.Same, openText(stats.Open),
		cli.Plural(stats.Other, "pair", "pairs"), isAre(stats.Other), cli.Plural(stats.Apart, "pair of signals", "pairs of signals"))
	if stopped {
		return err
	}
	if matter > 0 {
		return cli.AnswerNo
	}
	return nil
}

// openText tells how many pairs were not followed until their states were equal.
func openText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d as far as they were folded)", n)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// orderTotals are the counts behind the pairs, as the last item in JSON.
type orderTotals struct {
	Pairs       int          `json:"pairs"` // that were swapped
	Order       int          `json:"order"`
	Timing      int          `json:"timing"`
	Same        int          `json:"same"`
	Open        int          `json:"open"`       // of these, as far as they were folded
	Other       int          `json:"notSignals"` // pairs that were not searched
	Apart       int          `json:"apart"`
	Last        eventlog.Seq `json:"last"`
	Interrupted bool         `json:"interrupted"`
}

// swapView is a pair for JSON.
type swapView struct {
	First   eventlog.Seq    `json:"first"`
	Second  eventlog.Seq    `json:"second"`
	Gap     float64         `json:"gap"` // ms
	Cause   order.SwapCause `json:"cause"`
	Moment  string          `json:"moment"`
	Patch   json.RawMessage `json:"patch"`
	Picture *swapPicture    `json:"picture,omitempty"`
	Healed  bool            `json:"healed"`
	Heals   string          `json:"heals,omitempty"`
	Equal   bool            `json:"equal"`
	Until   string          `json:"until"`
}

// swapPicture is the first picture that differs.
type swapPicture struct {
	Moment string `json:"moment"`
	pictureDifference
}

func describeSwap(ctx context.Context, t *cli.OpenedSession, s *order.Swap) (*swapView, string, error) {
	v := &swapView{
		First: s.Seq, Second: s.Seq + 1, Gap: projection.Millis(s.Gap), Cause: s.Cause,
		Moment: s.First.String(), Patch: s.Patch, Healed: s.Healed, Equal: s.Equal, Until: s.Until.String(),
	}
	if s.Healed {
		v.Heals = s.Heals.String()
	}
	var b strings.Builder
	for _, seq := range []eventlog.Seq{s.Seq, s.Seq + 1} {
		e, err := t.Travel.Entry(ctx, seq)
		if err != nil {
			return nil, "", err
		}
		fmt.Fprintln(&b, cli.EntryText(&e))
	}
	why := "their order matters"
	if s.Cause == order.ByTiming {
		why = "only their timing matters"
	}
	lines, err := patchLines(s.Patch)
	if err != nil {
		return nil, "", err
	}
	if len(lines) > 0 {
		fmt.Fprintf(&b, "%v apart, %s; swapped, the state differs from %v on:\n", s.Gap, why, s.First)
		listLines(&b, lines)
	} else {
		fmt.Fprintf(&b, "%v apart, %s\n", s.Gap, why)
	}
	if s.Picture != nil {
		v.Picture = &swapPicture{s.Pictured.String(), *viewPicture(s.Picture)}
		fmt.Fprintf(&b, "at %v %s", s.Pictured, v.Picture.text())
	}
	switch {
	case !s.Healed:
		fmt.Fprintf(&b, "it still differs at %v\n", s.Until)
	case s.Equal:
		fmt.Fprintf(&b, "it heals at %v\n", s.Heals)
	default:
		fmt.Fprintf(&b, "it heals at %v, as far as the states were folded, to %v\n", s.Heals, s.Until)
	}
	return v, strings.TrimSuffix(b.String(), "\n"), nil
}
