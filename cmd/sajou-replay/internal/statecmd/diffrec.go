package statecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/compare"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/imagetest"
)

// recordingsTest holds the flags of a comparison of two recordings.
type recordingsTest struct {
	on      bool
	by      string
	storeB  string
	listAll bool // the flag --all of diff
}

const recordingsHelp = `With --rec it compares two recordings: sessions of one store, or with --store-b
the second of another store. Their entries are aligned by signal (by id, then
correlation and order), by entry number (--by seq) or by session time (--by time).
It shows the first entries that differ, the difference of the states and of the
pictures after them, and counts the others by type; --all lists each of them. If
these pictures are equal, it shows the first later picture that differs, of at
most 5000 entries and boundaries behind them.
Entries that differ in their times alone count as the same.`

func (r *recordingsTest) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.on, "rec", false, "compare two recordings")
	cmd.Flags().StringVar(&r.by, "by", string(compare.BySignal), "with --rec, align by `KEY`: signal, seq or time")
	cmd.Flags().StringVar(&r.storeB, "store-b", "", "with --rec, `DIR` of the second recording's store")
}

// check refuses the flags that refine --rec without it.
func (r *recordingsTest) check(cmd *cobra.Command, args []string) error {
	for _, name := range []string{"by", "store-b"} {
		if !r.on && cmd.Flags().Changed(name) {
			return cli.Misuse("--%s needs --rec", name)
		}
	}
	switch {
	case !r.on:
		return nil
	case len(args) != 2:
		return cli.Misuse("--rec compares two recordings; usage: sajou-replay diff --rec SESSION SESSION")
	}
	switch compare.By(r.by) {
	case compare.BySignal, compare.BySeq, compare.ByTime:
		return nil
	}
	return cli.Misuse("--by %s: must be %s, %s or %s", r.by, compare.BySignal, compare.BySeq, compare.ByTime)
}

func runRecordings(ctx context.Context, a *cli.App, r *recordingsTest, names []string) error {
	left, err := a.OpenSession(names[0])
	if err != nil {
		return err
	}
	defer left.Close()
	var right *cli.OpenedSession
	if r.storeB == "" {
		right, err = a.OpenSessionIn(left.Engine, names[1])
	} else {
		other := *a
		other.Store, other.Session, other.Lost = r.storeB, "", nil
		if right, err = other.OpenSession(names[1]); err == nil {
			defer right.Close()
			a.Lost = cmp.Or(a.Lost, other.Lost)
		}
	}
	if err != nil {
		return err
	}
	d, err := compare.Recordings(ctx, left.Travel, right.Travel, compare.By(r.by))
	if _, ok := errors.AsType[*compare.TooLongError](err); ok {
		return cli.Fail(cli.ExitInconclusive, "%w", err)
	}
	if err != nil {
		return err
	}
	view := recordingsView{
		Left: recordingView{Session: left.Name, Head: cli.ViewHead(d.Left)}, Right: recordingView{Session: right.Name, Head: cli.ViewHead(d.Right)},
		By: d.By, ByContent: d.ByContent, Same: d.Same, Retimed: d.Retimed,
		Changed: d.Count(compare.Changed), Reordered: d.Count(compare.Reordered), OnlyLeft: d.Count(compare.OnlyLeft), OnlyRight: d.Count(compare.OnlyRight),
		Types: []typeView{},
	}
	if view.Left.Fork, view.Left.note, err = left.Fork(ctx); err != nil {
		return err
	}
	if view.Right.Fork, view.Right.note, err = right.Fork(ctx); err != nil {
		return err
	}
	for _, t := range d.Types() {
		view.Types = append(view.Types, typeView{t.Type, t.Count})
	}
	if len(d.Differences) > 0 {
		if view.First, err = firstDifference(ctx, left.Travel, right.Travel, d); err != nil {
			return err
		}
	}
	if r.listAll {
		for i := range d.Differences {
			view.Differences = append(view.Differences, viewDifference(&d.Differences[i]))
		}
	}
	if err := a.Output().One(view.text(), view); err != nil {
		return err
	}
	if len(d.Differences) > 0 {
		return cli.AnswerNo
	}
	return nil
}

// recordingsView is the difference of two recordings as JSON.
type recordingsView struct {
	Left        recordingView    `json:"left"`
	Right       recordingView    `json:"right"`
	By          compare.By       `json:"by"`
	ByContent   bool             `json:"byContent,omitempty"`
	Same        int              `json:"same"`
	Retimed     int              `json:"retimed"`
	Changed     int              `json:"changed"`
	Reordered   int              `json:"reordered"`
	OnlyLeft    int              `json:"onlyLeft"`
	OnlyRight   int              `json:"onlyRight"`
	Types       []typeView       `json:"types"`
	First       *firstView       `json:"first,omitempty"`
	Differences []differenceView `json:"differences,omitempty"`
}

type recordingView struct {
	Session string           `json:"session"`
	Head    cli.HeadView     `json:"head"`
	Fork    *answer.ForkView `json:"fork,omitempty"` // the label of a fork

	note string // that it is a fork
}

func (v *recordingView) text() string {
	text := termtext.Printable(v.Session) + ", " + cli.Plural(int(v.Head.Seq), "entry", "entries")
	if v.note != "" {
		text += ", " + v.note
	}
	return text
}

type typeView struct {
	Type  string                              `json:"type"`
	Count map[compare.EntryDifferenceKind]int `json:"count"`
}

type differenceView struct {
	Kind  compare.EntryDifferenceKind `json:"kind"`
	Left  eventlog.Seq                `json:"left,omitempty"`
	Right eventlog.Seq                `json:"right,omitempty"`
	Type  string                      `json:"type"`
}

func viewDifference(d *compare.EntryDifference) differenceView {
	return differenceView{d.Kind, d.Left, d.Right, d.Type}
}

func (d differenceView) text() string {
	place := func(seq eventlog.Seq) string {
		if seq == 0 {
			return "-"
		}
		return fmt.Sprint(seq)
	}
	return fmt.Sprintf("%-9s  %6s  %6s  %s", differenceText[d.Kind], place(d.Left), place(d.Right), termtext.Printable(d.Type))
}

// differenceText says each kind of difference in a table.
var differenceText = map[compare.EntryDifferenceKind]string{
	compare.OnlyLeft: "only left", compare.OnlyRight: "only right", compare.Changed: "changed", compare.Reordered: "reordered",
}

// firstView is the first difference, told in full.
type firstView struct {
	differenceView

	LeftEntry  json.RawMessage `json:"leftEntry,omitempty"`
	RightEntry json.RawMessage `json:"rightEntry,omitempty"`

	States  stateChange        `json:"states"`
	Picture *pictureDifference `json:"picture,omitempty"`

	// Pictures is the search for the first later picture that differs, if these do not.
	Pictures *pictureSearch `json:"pictures,omitempty"`

	leftText, rightText string
}

// pictureSearch is a search for the first picture that differs, and how far it went.
type pictureSearch struct {
	Picture *pictureDifference `json:"picture,omitempty"`
	Left    string             `json:"left"`
	Right   string             `json:"right"`
	Moments int                `json:"moments"`
	Ended   bool               `json:"ended"`
}

func viewPictureSearch(s *compare.PictureSearch) *pictureSearch {
	v := &pictureSearch{Left: s.Left.String(), Right: s.Right.String(), Moments: s.Moments, Ended: s.Ended}
	if s.Picture != nil {
		v.Picture = viewPicture(s.Picture)
	}
	return v
}

func (v *pictureSearch) text() string {
	if v.Picture != nil {
		return fmt.Sprintf("the first picture that differs, left at %s and right at %s:\n%s", v.Left, v.Right, v.Picture.text())
	}
	until := ", to the end"
	if !v.Ended {
		until = fmt.Sprintf(", up to %s of the left and %s of the right recording; later ones were not compared", v.Left, v.Right)
	}
	return fmt.Sprintf("no picture differs at the entries and boundaries from there on: %s compared%s\n", cli.Plural(v.Moments, "moment", "moments"), until)
}

// stateChange is the difference between two states.
type stateChange struct {
	Left  string          `json:"left"`  // the moment of the left state
	Right string          `json:"right"` // and of the right one
	Patch json.RawMessage `json:"patch,omitempty"`

	// TooLarge lists the projections that differ, where the states are too large to be
	// compared member by member.
	TooLarge []string `json:"tooLarge,omitempty"`
}

// pictureDifference is the difference between two pictures.
type pictureDifference struct {
	Share   float64  `json:"share"`
	Changes []string `json:"changes"`
}

func firstDifference(ctx context.Context, left, right *replay.Replay, all *compare.RecordingDiff) (*firstView, error) {
	d := &all.Differences[0]
	v := &firstView{differenceView: viewDifference(d)}
	for _, side := range []struct {
		travel *replay.Replay
		seq    eventlog.Seq
		entry  *json.RawMessage
		text   *string
	}{{left, d.Left, &v.LeftEntry, &v.leftText}, {right, d.Right, &v.RightEntry, &v.rightText}} {
		if side.seq == 0 {
			*side.text = "     -"
			continue
		}
		e, err := side.travel.Entry(ctx, side.seq)
		if err != nil {
			return nil, err
		}
		*side.entry, *side.text = session.AppendEntryJSON(nil, &e), cli.EntryText(&e)
	}
	a, err := left.At(ctx, d.LeftState)
	if err != nil {
		return nil, err
	}
	b, err := right.At(ctx, d.RightState)
	if err != nil {
		return nil, err
	}
	v.States, v.Picture, err = foldDifference(a, b)
	v.States.Left, v.States.Right = d.LeftState.String(), d.RightState.String()
	if err != nil || v.Picture == nil || v.Picture.Share > 0 || len(v.Picture.Changes) > 0 {
		return v, err
	}
	found, err := compare.FirstPicture(ctx, left, right, all, compare.DefaultPictured)
	if err != nil {
		return nil, err
	}
	v.Pictures = viewPictureSearch(found)
	return v, nil
}

// foldDifference compares the states and the pictures of two folds.
func foldDifference(a, b *projection.Fold) (stateChange, *pictureDifference, error) {
	var change stateChange
	var views [2]any
	large := false
	for i, fold := range []*projection.Fold{a, b} {
		view, left, err := answer.State(fold, cli.MomentOf(fold.Head().Seq), "", answer.ComparedLimits())
		if err != nil {
			return change, nil, err
		}
		large = large || len(left) > 0
		whole, _ := view.(map[string]any)
		delete(whole, "seq")
		delete(whole, "at")
		views[i] = whole
	}
	if large {
		ours, theirs := a.Digests(), b.Digests()
		for i := range ours {
			if ours[i] != theirs[i] {
				change.TooLarge = append(change.TooLarge, ours[i].Name)
			}
		}
	} else {
		patch, err := replay.Diff(views[0], views[1])
		if err != nil {
			return change, nil, err
		}
		change.Patch = patch
	}
	p, err := compare.Pictures(a, b)
	if err != nil || p == nil {
		return change, nil, err
	}
	return change, viewPicture(p), nil
}

func viewPicture(p *compare.PictureDiff) *pictureDifference {
	d := &pictureDifference{Share: p.Share, Changes: []string{}}
	for _, f := range p.Figures {
		d.Changes = append(d.Changes, f.String())
	}
	return d
}

// mostInText bounds the lines of each part of a comparison as text.
const mostInText = 20

func (v *recordingsView) text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("left   %s", v.Left.text())
	line("right  %s", v.Right.text())
	if v.ByContent {
		line("no signal id is in both: signals are aligned by content, type and order")
	}
	if f := v.First; f != nil {
		line("\nthe first difference: %s", differenceText[f.Kind])
		line("left   %s", f.leftText)
		line("right  %s", f.rightText)
		b.WriteString(f.States.text())
		if f.Picture != nil {
			b.WriteString(f.Picture.text())
		}
		if f.Pictures != nil {
			b.WriteString(f.Pictures.text())
		}
		line("")
	}
	line("same %d (%d at another time), changed %d, reordered %d, only left %d, only right %d", v.Same, v.Retimed, v.Changed, v.Reordered, v.OnlyLeft, v.OnlyRight)
	for _, t := range v.Types {
		var counts []string
		for _, kind := range []compare.EntryDifferenceKind{compare.Changed, compare.Reordered, compare.OnlyLeft, compare.OnlyRight} {
			if n := t.Count[kind]; n > 0 {
				counts = append(counts, fmt.Sprintf("%d %s", n, differenceText[kind]))
			}
		}
		line("  %-18s  %s", termtext.Clip(termtext.Printable(t.Type), 40), strings.Join(counts, ", "))
	}
	for _, d := range v.Differences {
		line("%s", d.text())
	}
	return b.String()
}

// text lists the first changes of a state.
func (c *stateChange) text() string {
	var b strings.Builder
	if c.TooLarge != nil {
		fmt.Fprintf(&b, "the states are too large to compare; these parts differ: %s\n", strings.Join(c.TooLarge, ", "))
		return b.String()
	}
	lines, err := patchLines(c.Patch)
	if err != nil || len(lines) == 0 {
		return "the states after them are equal\n"
	}
	fmt.Fprintf(&b, "the states after them, left at %s and right at %s:\n", c.Left, c.Right)
	listLines(&b, lines)
	return b.String()
}

func (d *pictureDifference) text() string {
	var b strings.Builder
	if d.Share == 0 && len(d.Changes) == 0 {
		return "the pictures are equal\n"
	}
	fmt.Fprintf(&b, "the pictures differ in %s of the pixels\n", imagetest.Percent(d.Share))
	listLines(&b, d.Changes)
	return b.String()
}

func listLines(b *strings.Builder, lines []string) {
	for _, l := range lines[:min(mostInText, len(lines))] {
		fmt.Fprintf(b, "  %s\n", termtext.Clip(l, 160))
	}
	if more := len(lines) - mostInText; more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
}
