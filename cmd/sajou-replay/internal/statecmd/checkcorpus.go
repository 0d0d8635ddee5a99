package statecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay/corpus"
	"github.com/sajou-dev/sajou-go/replay/sentinel"
)

// corpusCheck holds the flags of a check of a corpus.
type corpusCheck struct {
	dir    string
	update bool
	jobs   int
	points int
}

const corpusHelp = `With --corpus, check verifies and replays every recording in a folder: stores, raw
exports (NAME.raw.jsonl), and signals (NAME.jsonl) with the files of declarations
beside them. It compares the digests of each projection, at some entries of each
session and at its end, with those in NAME.digests.json beside the recording. Of a
session that differs it names the first such entry, or the entries between which
it is, and whether the code or the data differs. --update writes the files, each
as a whole, except of recordings that cannot be read.

The exit code is 0 if every recording is as it was, 1 if one differs or cannot be
read, and 4 if there is none. Store and snapshots are not changed.`

func (c *corpusCheck) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.dir, "corpus", "", "check every recording in `DIR`")
	cmd.Flags().BoolVar(&c.update, "update", false, "with --corpus, write the digests of the states as they are now")
	cmd.Flags().IntVar(&c.jobs, "jobs", 0, "with --corpus, check `N` recordings at once; 0 means one for each core")
	cmd.Flags().IntVar(&c.points, "points", corpus.DefaultPoints, "with --update, keep the digests at `N` entries of each session")
	_ = cmd.MarkFlagDirname("corpus")
}

// refused refuses the flags that refine --corpus without it.
func (c *corpusCheck) refused(cmd *cobra.Command) error {
	for _, name := range []string{"corpus", "update", "jobs", "points"} {
		if cmd.Flags().Changed(name) {
			return cli.Misuse("--%s needs --corpus DIR", name)
		}
	}
	return nil
}

func (c *corpusCheck) run(cmd *cobra.Command, a *cli.App, args []string) error {
	ctx := cmd.Context()
	if len(args) > 0 {
		return cli.Misuse("--corpus checks a folder; omit %q", args[0])
	}
	if cmd.Flags().Changed("define") {
		return cli.Misuse("--define is for one moment; omit it, or omit --corpus")
	}
	if c.jobs < 0 {
		return cli.Misuse("--jobs %d: must be 0 or more; 0 means one for each core", c.jobs)
	}
	if c.points < 1 || c.points > sentinel.MaxPoints {
		return cli.Misuse("--points %d: must be from 1 to %d", c.points, sentinel.MaxPoints)
	}
	found, err := corpus.Find(c.dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(found) == 0 {
		return cli.Fail(cli.ExitNotFound, "there is no recording in %s: no store, no .jsonl file", c.dir)
	}
	if err != nil {
		return err
	}
	if c.update {
		return c.write(ctx, a, found)
	}
	o := a.Output()
	whole := true
	m := cli.NewProgress(a.Stderr)
	done := 0
	for check, err := range corpus.CheckAll(ctx, found, cmp.Or(c.jobs, runtime.NumCPU())) {
		m.Clear()
		if err != nil {
			return err
		}
		whole = whole && check.Whole()
		if err := o.ItemOf(corpusText(&check), corpusViewOf(&check)); err != nil {
			return err
		}
		done++
		m.Show(fmt.Sprintf("%d of %d recordings", done, len(found)))
	}
	m.Clear()
	if err := o.End(); err != nil {
		return err
	}
	if !whole {
		return cli.AnswerNo
	}
	return nil
}

// write writes the files of digests. A recording that cannot be replayed keeps the ones
// that it has, and the others are written.
func (c *corpusCheck) write(ctx context.Context, a *cli.App, found []corpus.StoredRecording) error {
	o := a.Output()
	whole := true
	for _, r := range found {
		changed, err := r.Update(ctx, c.points)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		text, view := "digests unchanged", map[string]any{"recording": r.Name, "kind": r.Kind, "changed": changed}
		switch {
		case err != nil:
			whole = false
			view["error"] = cli.OneLine(err.Error())
			text = "NOT WRITTEN: " + cli.OneLine(err.Error())
		case changed:
			text = "digests written"
		}
		if err := o.ItemOf(termtext.Printable(r.Name)+": "+text, view); err != nil {
			return err
		}
	}
	if err := o.End(); err != nil {
		return err
	}
	if !whole {
		return cli.AnswerNo
	}
	return nil
}

// corpusView is the outcome for one recording as JSON.
type corpusView struct {
	Recording string               `json:"recording"`
	Kind      corpus.RecordingKind `json:"kind"`
	Same      bool                 `json:"same"`
	Entries   eventlog.Seq         `json:"entries"`
	Error     string               `json:"error,omitempty"`
	Sessions  []corpusSessionView  `json:"sessions"`
}

type corpusSessionView struct {
	Session string          `json:"session"`
	Same    bool            `json:"same"`
	Head    *cli.HeadView   `json:"head,omitempty"`
	Points  int             `json:"points"`
	Diverge *divergenceView `json:"divergence,omitempty"`
	Error   string          `json:"error,omitempty"`
}

// divergenceView is the first point at which digests differ, as JSON.
type divergenceView struct {
	First       eventlog.Seq             `json:"first"` // the first entry that differs is one of these
	Last        eventlog.Seq             `json:"last"`
	Cause       sentinel.DivergenceCause `json:"cause"`
	Projections []string                 `json:"projections,omitempty"`
	Detail      string                   `json:"detail"`
}

func viewDivergence(d *sentinel.Divergence) *divergenceView {
	if d == nil {
		return nil
	}
	return &divergenceView{d.After + 1, d.At, d.Cause, d.Projections, d.Detail}
}

func corpusViewOf(c *corpus.Check) corpusView {
	v := corpusView{Recording: c.Name, Kind: c.Kind, Same: c.Whole(), Entries: c.Entries, Sessions: []corpusSessionView{}}
	if c.Err != nil {
		v.Error = cli.OneLine(c.Err.Error())
	}
	for i := range c.Sessions {
		s := &c.Sessions[i]
		view := corpusSessionView{Session: s.Session, Same: s.Whole(), Points: s.Points, Diverge: viewDivergence(s.Diverge), Error: sessionFault(s)}
		if !s.Missing {
			head := cli.ViewHead(s.Head)
			view.Head = &head
		}
		v.Sessions = append(v.Sessions, view)
	}
	return v
}

// sessionFault says why a session is not as it was, besides its digests.
func sessionFault(s *corpus.SessionCheck) string {
	switch {
	case s.Fault != nil:
		return fmt.Sprintf("the chain is broken at entry %d: %s: %s; the entries before it were compared", s.Fault.Seq, s.Fault.Kind, cli.OneLine(s.Fault.Detail))
	case s.Err != nil:
		return cli.OneLine(s.Err.Error())
	case s.Unkept:
		return "no digests are kept of this session; keep them with --update"
	case s.Missing:
		return "the recording does not have this session"
	}
	return ""
}

func corpusText(c *corpus.Check) string {
	name := termtext.Printable(c.Name)
	var lines []string
	if c.Err != nil {
		lines = append(lines, fmt.Sprintf("%s: NOT CHECKED: %s", name, cli.OneLine(c.Err.Error())))
		if errors.Is(c.Err, corpus.ErrNoDigests) {
			lines[0] += "; keep them with --update"
		}
	}
	points := 0
	for i := range c.Sessions {
		s := &c.Sessions[i]
		points += s.Points
		if fault := sessionFault(s); fault != "" {
			lines = append(lines, fmt.Sprintf("%s: %s: BROKEN: %s", name, termtext.Printable(s.Session), fault))
		}
		if s.Diverge != nil {
			lines = append(lines, fmt.Sprintf("%s: %s: DIFFERS at %s", name, termtext.Printable(s.Session), termtext.Printable(s.Diverge.String())))
		}
	}
	if len(lines) == 0 {
		return fmt.Sprintf("%s: as it was, %s, %s, %s", name, cli.Plural(len(c.Sessions), "session", "sessions"), cli.Plural(int(c.Entries), "entry", "entries"), cli.Plural(points, "point", "points"))
	}
	return strings.Join(lines, "\n")
}
