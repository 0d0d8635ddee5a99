package statecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/compare"
	"github.com/sajou-dev/sajou-go/session"
)

// definitionsTest holds the flags of a comparison of two sets of definitions.
type definitionsTest struct {
	on    bool
	every time.Duration
}

const definitionsHelp = `With --defs it compares one recording through two sets of definitions: files or
folders of choreographies, scenes, episodes and policies of agents; - stands for
the recorded ones. Those that a set does not have stay as they were recorded. At
every entry, and at every boundary between entries, it compares the commands to a
renderer, the picture, the view of each agent and the director. It shows the first
moment at which something differs, then the intervals in which pictures, views or
the director differ, without their ends, and the moments at which commands do.
Values under way are compared there and each 100ms, or each --every. Commands do
not differ by the ids of their performances alone. --all lists all.`

func (d *definitionsTest) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&d.on, "defs", false, "compare two sets of definitions")
	cmd.Flags().DurationVar(&d.every, "every", compare.DefaultGrid, "with --defs, compare what moves each `SPAN`")
}

// check refuses what does not fit to --defs.
func (d *definitionsTest) check(cmd *cobra.Command, args []string) error {
	switch {
	case !d.on && cmd.Flags().Changed("every"):
		return cli.Misuse("--every needs --defs")
	case !d.on:
		return nil
	case cmd.Flags().Changed("rec"):
		return cli.Misuse("--rec and --defs exclude each other")
	case d.every < time.Millisecond:
		return cli.Misuse("--every %v: must be at least 1ms", d.every)
	case len(args) < 2:
		return cli.Misuse("--defs compares two sets of definitions; usage: sajou-replay diff --defs OLD NEW [SESSION] [RANGE]")
	case args[0] == args[1]:
		return cli.Misuse("--defs compares %s with itself", cli.ShellWord(args[0]))
	}
	return nil
}

// recordedDefinitions stands for the definitions that a session has recorded.
const recordedDefinitions = "-"

func runDefinitions(cmd *cobra.Command, a *cli.App, d *definitionsTest, args []string, all bool) error {
	ctx := cmd.Context()
	name, text, err := a.SplitRange(cmd, args[2:])
	if err != nil {
		return err
	}
	t, err := a.OpenSession(name)
	if err != nil {
		return err
	}
	defer t.Close()
	over, err := answer.MomentRange(ctx, t.Travel, text)
	if err != nil {
		return err
	}
	over.Every = d.every
	var sides [2]*replay.Replay
	for i, file := range args[:2] {
		if sides[i] = t.Travel; file == recordedDefinitions {
			continue
		}
		changed, err := a.Through(ctx, t, "--defs", []string{file})
		if err != nil {
			return err
		}
		sides[i] = session.NewReplay(changed, t.Engine.Projections(), nil)
	}
	meter := cli.NewProgress(a.Stderr)
	defer meter.Clear()
	n := 0
	found, err := compare.Definitions(ctx, sides[0], sides[1], compare.DefinitionConfig{Over: over, Progress: func(m replay.Moment) {
		if n++; n%64 == 0 {
			meter.Show(fmt.Sprintf("%d moments, at entry %d of %d", n, m.Seq, over.To.Seq))
		}
	}})
	if err != nil {
		return err
	}
	meter.Clear()
	view, err := viewDefinitions(found, all)
	if err != nil {
		return err
	}
	view.Session, view.Left, view.Right = t.Name, args[0], args[1]
	if view.Assumes, err = assumedDecisions(ctx, t, over.To.Seq); err != nil {
		return err
	}
	if err := a.Output().One(view.text(found), view); err != nil {
		return err
	}
	if !found.Same() {
		return cli.AnswerNo
	}
	return nil
}

// assumedDecisions says which recorded decisions a comparison takes as they are, "" for
// none.
func assumedDecisions(ctx context.Context, t *cli.OpenedSession, last eventlog.Seq) (string, error) {
	f, err := t.Travel.At(ctx, cli.MomentOf(last))
	if err != nil {
		return "", err
	}
	var who []string
	if w := session.WorldOf(f); w != nil && w.Seq() > 0 {
		who = append(who, "of the agents and their world")
	}
	if d := session.DirectorOf(f); d != nil && d.Episode() != nil {
		who = append(who, "of the director")
	}
	if len(who) == 0 {
		return "", nil
	}
	return "the recorded decisions " + strings.Join(who, " and ") + " stay as they are", nil
}

// definitionsView is the result for JSON.
type definitionsView struct {
	Session  string              `json:"session"`
	Left     string              `json:"left"`
	Right    string              `json:"right"`
	Same     bool                `json:"same"`
	Moments  int                 `json:"moments"`
	Last     string              `json:"last"`
	Assumes  string              `json:"assumes,omitempty"`
	First    *firstSeenView      `json:"first,omitempty"`
	Picture  *firstPictureView   `json:"firstPicture,omitempty"`
	Commands commandTotalsView   `json:"commands"`
	Parts    []partView          `json:"parts"`
	Detail   []intervalPartView  `json:"intervals,omitempty"`
	Sent     []commandsApartView `json:"commandMoments,omitempty"`
}

type commandTotalsView struct {
	Moments   int `json:"moments"`
	OnlyLeft  int `json:"onlyLeft"`
	OnlyRight int `json:"onlyRight"`
	Reordered int `json:"reordered"`
}

type partView struct {
	Part      compare.PartKind `json:"part"`
	Agent     string           `json:"agent,omitempty"`
	Intervals int              `json:"intervals"`
	Time      float64          `json:"time"` // ms
}

type intervalPartView struct {
	Part  compare.PartKind `json:"part"`
	Agent string           `json:"agent,omitempty"`
	From  string           `json:"from"`
	Until string           `json:"until"`
	Open  bool             `json:"open,omitempty"`
}

type commandsApartView struct {
	Moment    string                 `json:"moment"`
	At        float64                `json:"at"`
	Left      []choreography.Command `json:"left"`
	Right     []choreography.Command `json:"right"`
	Reordered bool                   `json:"reordered,omitempty"`
}

// firstSeenView is the first moment at which something differs.
type firstSeenView struct {
	Moment   string             `json:"moment"`
	At       float64            `json:"at"`
	Kind     string             `json:"kind"`
	Entry    json.RawMessage    `json:"entry,omitempty"`
	Commands *commandsApartView `json:"commands,omitempty"`
	Parts    []string           `json:"parts"`
	States   stateChange        `json:"states"`
	Views    []agentViewChange  `json:"views,omitempty"`

	entryText string
}

// firstPictureView is the first picture that differs.
type firstPictureView struct {
	Moment string  `json:"moment"`
	At     float64 `json:"at"`
	pictureDifference
}

// agentViewChange is the difference between two views of an agent.
type agentViewChange struct {
	Agent string          `json:"agent"`
	Patch json.RawMessage `json:"patch"`
}

func viewCommands(d *compare.CommandDifference) commandsApartView {
	return commandsApartView{
		d.At.Moment.String(), projection.Millis(d.At.At),
		append([]choreography.Command{}, d.Left...), append([]choreography.Command{}, d.Right...), d.Reordered,
	}
}

func viewDefinitions(d *compare.DefinitionDiff, all bool) (*definitionsView, error) {
	v := &definitionsView{
		Same: d.Same(), Moments: d.Moments, Last: d.Last.Moment.String(), Parts: []partView{},
		Commands: commandTotalsView{d.CommandMoments, d.OnlyLeft, d.OnlyRight, d.Reordered},
	}
	for part, total := range d.Totals {
		v.Parts = append(v.Parts, partView{part.Kind, part.Agent, total.Intervals, projection.Millis(total.Time)})
	}
	slices.SortFunc(v.Parts, func(a, b partView) int { return strings.Compare(string(a.Part)+a.Agent, string(b.Part)+b.Agent) })
	if all {
		for i := range d.Intervals {
			iv := &d.Intervals[i]
			v.Detail = append(v.Detail, intervalPartView{iv.Part.Kind, iv.Part.Agent, iv.From.Moment.String(), iv.Until.Moment.String(), iv.Open})
		}
		for i := range d.Commands {
			v.Sent = append(v.Sent, viewCommands(&d.Commands[i]))
		}
	}
	if d.Picture != nil {
		v.Picture = &firstPictureView{d.Pictured.Moment.String(), projection.Millis(d.Pictured.At), *viewPicture(d.Picture)}
	}
	if d.First == nil {
		return v, nil
	}
	f := d.First
	v.First = &firstSeenView{Moment: f.At.Moment.String(), At: projection.Millis(f.At.At), Kind: f.At.Kind.String(), Parts: []string{}}
	if f.Entry.Seq > 0 {
		v.First.Entry, v.First.entryText = session.AppendEntryJSON(nil, &f.Entry), cli.EntryText(&f.Entry)
	}
	if len(f.Commands.Left)+len(f.Commands.Right) > 0 {
		c := viewCommands(&f.Commands)
		v.First.Commands = &c
	}
	var err error
	if v.First.States, _, err = foldDifference(f.Left, f.Right); err != nil {
		return nil, err
	}
	v.First.States.Left, v.First.States.Right = v.First.Moment, v.First.Moment
	for _, part := range f.Parts {
		v.First.Parts = append(v.First.Parts, part.String())
		if part.Kind != compare.AgentView {
			continue
		}
		patch, err := viewPatch(f, part.Agent)
		if err != nil {
			return nil, err
		}
		v.First.Views = append(v.First.Views, agentViewChange{part.Agent, patch})
	}
	return v, nil
}

// viewPatch is the difference between the views of an agent on both sides.
func viewPatch(f *compare.FirstDifference, agent string) ([]byte, error) {
	var views [2]any
	for i, fold := range []*projection.Fold{f.Left, f.Right} {
		if shown, ok := session.WorldOf(fold).View(agent); ok {
			views[i] = map[string]any{"visible_entities": shown.VisibleEntities.Any(), "visible_relationships": shown.VisibleRelationships.Any()}
		}
	}
	return replay.Diff(views[0], views[1])
}

// text is the result as lines; d has the intervals of which the view has none.
func (v *definitionsView) text(d *compare.DefinitionDiff) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, side := range [][2]string{{"left ", v.Left}, {"right", v.Right}} {
		name := termtext.Printable(side[1])
		if side[1] == recordedDefinitions {
			name = "as recorded"
		}
		line("%s  %s", side[0], name)
	}
	if v.Assumes != "" {
		line("assumed: %s", v.Assumes)
	}
	if f := v.First; f != nil {
		line("\nthe first difference: at %s, %s", f.Moment, cli.ClockText(d.First.At.At))
		if f.entryText != "" {
			line("%s", f.entryText)
		}
		if f.Commands != nil {
			line("the commands of this instant:")
			b.WriteString(commandLines(&d.First.Commands))
		}
		for _, change := range f.Views {
			lines, _ := patchLines(change.Patch)
			line("the view of %s:", termtext.Clip(termtext.Printable(change.Agent), 40))
			listLines(&b, lines)
		}
		b.WriteString(f.States.text())
		if p := v.Picture; p != nil && p.Moment != f.Moment {
			line("the first picture that differs: at %s, %s", p.Moment, cli.ClockText(d.Pictured.At))
		}
		if v.Picture != nil {
			b.WriteString(v.Picture.text())
		}
		line("")
	}
	most := mostInText
	if v.Detail != nil || v.Sent != nil {
		most = compare.MaxListed
	}
	if c := v.Commands; c.Moments > 0 {
		line("commands differ at %s: %d only left, %d only right, %d times in another order", cli.Plural(c.Moments, "moment", "moments"), c.OnlyLeft, c.OnlyRight, c.Reordered)
		for i := range d.Commands[:min(most, len(d.Commands))] {
			c := &d.Commands[i]
			line("  %8s  %s", c.At.Moment, cli.ClockText(c.At.At))
			if most > mostInText {
				b.WriteString(commandLines(c))
			}
		}
		moreLines(&b, c.Moments-min(most, len(d.Commands)))
	}
	for _, p := range v.Parts {
		part := compare.DifferencePart{Kind: p.Part, Agent: p.Agent}
		line("the %s differs in %s, %s in all", termtext.Clip(termtext.Printable(part.String()), 60), cli.Plural(p.Intervals, "interval", "intervals"), d.Totals[part].Time)
		shown := 0
		for i := range d.Intervals {
			if iv := &d.Intervals[i]; iv.Part == part && shown < most {
				shown++
				until := "until " + iv.Until.Moment.String()
				if iv.Open {
					until = "still at " + iv.Until.Moment.String()
				}
				line("  from %s %s", iv.From.Moment, until)
			}
		}
		moreLines(&b, p.Intervals-shown)
	}
	if v.Same {
		line("the same at %s, up to %s", cli.Plural(v.Moments, "moment", "moments"), v.Last)
	}
	return b.String()
}

func moreLines(b *strings.Builder, n int) {
	if n > 0 {
		fmt.Fprintf(b, "  and %d more\n", n)
	}
}

// commandLines lists the commands of one moment.
func commandLines(d *compare.CommandDifference) string {
	var b strings.Builder
	names := [2]string{"only left", "only right"}
	if d.Reordered {
		names = [2]string{"left", "right"}
	}
	for i, list := range [][]choreography.Command{d.Left, d.Right} {
		for j := range list[:min(mostInText, len(list))] {
			fmt.Fprintf(&b, "  %-10s  %s\n", names[i], cli.CommandDetail(&list[j]))
		}
		moreLines(&b, len(list)-mostInText)
	}
	return b.String()
}
