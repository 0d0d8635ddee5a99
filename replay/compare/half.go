package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// half is one side of a [sideWalk].
type half struct {
	travel *replay.Replay
	reel   *film.Reel
	fold   *projection.Fold
	sent   commandRecorder // since the last moment

	director []byte // its state as JSON, at the last entry
	stage    []byte // its state, when it was compared last
}

func newHalf(travel *replay.Replay) *half {
	return &half{travel: travel, reel: film.Open(travel, travel)}
}

// begin makes the fold right before the instant of a moment.
func (h *half) begin(ctx context.Context, m replay.Moment) error {
	if m.Offset == 0 {
		e, err := h.travel.Entry(ctx, m.Seq)
		if err != nil {
			return err
		}
		if h.fold, err = h.travel.Fold(ctx, m.Seq-1); err != nil {
			return err
		}
		h.fold.Advance(e.At)
	} else {
		f, err := h.travel.At(ctx, m) // the session may not have it
		if err != nil {
			return err
		}
		if h.fold, err = h.travel.Fold(ctx, m.Seq); err != nil {
			return err
		}
		h.fold.Advance(f.At() - 1)
	}
	for _, st := range h.fold.States() {
		if p, ok := st.(replay.Performer); ok {
			p.Perform(&h.sent)
		}
	}
	return nil
}

func (h *half) apply(e *eventlog.Entry) error {
	if err := h.fold.Apply(e); err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	h.fold.Advance(e.At)
	return nil
}

// changing reports whether the picture of a frame changes without a boundary: something
// moves, or the note of a sound fades.
func (h *half) changing(f *stage.Frame) bool {
	if f == nil {
		return false
	}
	for range f.ShownSounds() {
		return true
	}
	return session.StageOf(h.fold).Moving()
}

// appendStage returns the state of the stage, until the next call.
func (h *half) appendStage() []byte {
	h.stage = session.StageOf(h.fold).Append(h.stage[:0])
	return h.stage
}

// stageAlone reports whether the picture depends on the stage alone. An episode casts
// figures for its characters.
func (h *half) stageAlone() bool {
	d := session.DirectorOf(h.fold)
	return d == nil || d.Episode() == nil
}

// frame returns the picture as a value, nil without a stage.
func (h *half) frame(ctx context.Context, m replay.Moment) (*stage.Frame, error) {
	if session.StageOf(h.fold).Frame() == nil {
		return nil, nil
	}
	shot, err := h.reel.ShotOf(ctx, h.fold, m)
	return shot.Frame, err
}

// SameFrame reports whether two frames look the same, without painting them. Both may be
// nil.
func SameFrame(a, b *stage.Frame) bool {
	if a == nil || b == nil {
		return a == b
	}
	// Equal values are drawn alike; others may be.
	if a.Mark == b.Mark && bytes.Equal(a.Scene.Value(), b.Scene.Value()) && slices.Equal(a.Figures, b.Figures) && slices.Equal(a.Beams, b.Beams) && sameSounds(a, b) {
		return true
	}
	// Comparing the frames is much faster than drawing them, and is enough if they differ.
	if len(picture.Differences(a, b, 0)) > 0 {
		return false
	}
	return picture.Draw(a, picture.Options{}).Hash() == picture.Draw(b, picture.Options{}).Hash()
}

// sameSounds reports whether two frames show the same notes of sounds, equally faded.
func sameSounds(a, b *stage.Frame) bool {
	next, stop := iter.Pull(b.ShownSounds())
	defer stop()
	for sound := range a.ShownSounds() {
		if other, ok := next(); !ok || other != sound || a.At != b.At {
			return false
		}
	}
	_, more := next()
	return !more
}

// look keeps the director's state as JSON, without the names of the episode.
func (h *half) look() error {
	h.director = nil
	d := session.DirectorOf(h.fold)
	if d == nil || d.Episode() == nil {
		return nil
	}
	view, ok := d.View().(map[string]any)
	if !ok {
		return nil
	}
	delete(view, "digest")
	text, err := json.Marshal(view)
	h.director = text
	return err
}

// commandRecorder keeps commands other than updates.
type commandRecorder []choreography.Command

func (r *commandRecorder) OnActionStart(c choreography.ActionStart) { *r = append(*r, c.Command()) }
func (r *commandRecorder) OnActionUpdate(choreography.ActionUpdate) {}
func (r *commandRecorder) OnActionComplete(c choreography.ActionComplete) {
	*r = append(*r, c.Command())
}

func (r *commandRecorder) OnActionExecute(c choreography.ActionExecute) { *r = append(*r, c.Command()) }

func (r *commandRecorder) OnInterrupt(c choreography.Interrupt) { *r = append(*r, c.Command()) }

// compare compares both sides at the present moment.
func (w *sideWalk) compare(kind replay.MomentKind) error {
	left, right := w.halves[0], w.halves[1]
	now := replay.ExaminedMoment{Moment: replay.Moment{Seq: left.fold.Head().Seq, Offset: left.fold.At() - w.entry.At}, At: left.fold.At(), Kind: kind}
	first := w.diff.Moments == 0
	w.diff.Moments++
	w.diff.Last = now
	commands, err := commandDifference(left.sent, right.sent)
	if err != nil {
		return err
	}
	commands.At = now
	left.sent, right.sent = left.sent[:0], right.sent[:0]
	if commands.differs() {
		w.count(&commands)
	}
	if err := w.comparePictures(now, first); err != nil {
		return err
	}
	if kind == replay.EntryMoment || first {
		w.compareViews(now)
		if err := w.compareDirectors(now, first); err != nil {
			return err
		}
	}
	if w.diff.First == nil && (commands.differs() || len(w.open) > 0) {
		if err := w.found(now, &commands); err != nil {
			return err
		}
	}
	if w.cfg.Progress != nil {
		w.cfg.Progress(now.Moment)
	}
	return nil
}

func (w *sideWalk) count(c *CommandDifference) {
	w.diff.CommandMoments++
	if c.Reordered {
		w.diff.Reordered++
	} else {
		w.diff.OnlyLeft += len(c.Left)
		w.diff.OnlyRight += len(c.Right)
	}
	if len(w.diff.Commands) < MaxListed {
		w.diff.Commands = append(w.diff.Commands, *c)
	}
}

func (w *sideWalk) comparePictures(now replay.ExaminedMoment, first bool) error {
	left, right := w.halves[0], w.halves[1]
	// Equal states are drawn alike, and comparing them is faster than making frames.
	alike := bytes.Equal(left.appendStage(), right.appendStage())
	if alike && w.stageAlone && left.stageAlone() && right.stageAlone() && !first {
		w.note(DifferencePart{Kind: StagePicture}, now, false)
		w.grid = false
		return nil
	}
	a, err := left.frame(w.ctx, now.Moment)
	if err != nil {
		return err
	}
	b, err := right.frame(w.ctx, now.Moment)
	if err != nil {
		return err
	}
	if first {
		w.stageAlone = a == nil || b == nil || a.Mark == b.Mark
	}
	same := SameFrame(a, b)
	w.note(DifferencePart{Kind: StagePicture}, now, !same)
	if !same && w.diff.Picture == nil {
		if w.diff.Picture, err = Frames(a, b); err != nil {
			return err
		}
		w.diff.Pictured = now
	}
	// Two movements with the same ends differ on the way.
	w.grid = !alike && (left.changing(a) || right.changing(b))
	return nil
}

func (w *sideWalk) compareViews(now replay.ExaminedMoment) {
	left, right := session.WorldOf(w.halves[0].fold), session.WorldOf(w.halves[1].fold)
	if left == nil || right == nil {
		return
	}
	known := map[string]bool{}
	for agent := range left.Agents() {
		known[agent] = true
	}
	for agent := range right.Agents() {
		known[agent] = true
	}
	for part := range w.open { // of an agent that has left
		if part.Kind == AgentView {
			known[part.Agent] = true
		}
	}
	agents := make([]string, 0, len(known))
	for agent := range known {
		agents = append(agents, agent)
	}
	slices.Sort(agents)
	for _, agent := range agents {
		a, inLeft := left.Observer(agent)
		b, inRight := right.Observer(agent)
		w.note(DifferencePart{AgentView, agent}, now, inLeft != inRight || inLeft && a.Digest() != b.Digest())
	}
}

func (w *sideWalk) compareDirectors(now replay.ExaminedMoment, first bool) error {
	if k := w.entry.Kind; !first && k != eventlog.KindBeat && k != eventlog.KindDefine {
		return nil // no other entry changes the director
	}
	for _, h := range w.halves {
		if err := h.look(); err != nil {
			return err
		}
	}
	w.note(DifferencePart{Kind: DirectorStates}, now, !bytes.Equal(w.halves[0].director, w.halves[1].director))
	return nil
}

// note records whether a part differs at a moment.
func (w *sideWalk) note(part DifferencePart, now replay.ExaminedMoment, differs bool) {
	o := w.open[part]
	switch {
	case differs && o == nil:
		o = &openInterval{from: now, at: -1}
		if len(w.diff.Intervals) < MaxListed {
			o.at = len(w.diff.Intervals)
			w.diff.Intervals = append(w.diff.Intervals, DifferenceInterval{Part: part, From: now})
		}
		w.open[part] = o
	case !differs && o != nil:
		w.end(part, o, now, false)
		delete(w.open, part)
	}
}

func (w *sideWalk) end(part DifferencePart, o *openInterval, until replay.ExaminedMoment, open bool) {
	if o.at >= 0 {
		w.diff.Intervals[o.at].Until, w.diff.Intervals[o.at].Open = until, open
	}
	total := w.diff.Totals[part]
	total.Intervals++
	total.Time += until.At - o.from.At
	w.diff.Totals[part] = total
}

// finish ends the open intervals with the last moment.
func (w *sideWalk) finish() {
	for part, o := range w.open {
		w.end(part, o, w.diff.Last, true)
	}
}

// found keeps the first moment at which anything differs.
func (w *sideWalk) found(now replay.ExaminedMoment, commands *CommandDifference) error {
	d := &FirstDifference{At: now, Entry: w.entry, Commands: *commands}
	for _, i := range w.diff.Intervals { // they all begin here
		d.Parts = append(d.Parts, i.Part)
	}
	for i, to := range []**projection.Fold{&d.Left, &d.Right} {
		f, err := w.halves[i].fold.Clone()
		if err != nil {
			return fmt.Errorf("compare: %w", err)
		}
		*to = f
	}
	w.diff.First = d
	return nil
}

func (c *CommandDifference) differs() bool { return c.Reordered || len(c.Left) > 0 || len(c.Right) > 0 }

// commandDifference compares the commands of one instant.
func commandDifference(left, right []choreography.Command) (d CommandDifference, err error) {
	if slices.EqualFunc(left, right, sameCommand) {
		return d, nil
	}
	var keys [2][]string
	count := map[string]int{} // in the left list, minus in the right one
	for i, list := range [][]choreography.Command{left, right} {
		for _, c := range list {
			key, err := commandKey(c)
			if err != nil {
				return d, err
			}
			keys[i] = append(keys[i], key)
			count[key] += 1 - 2*i
		}
	}
	if slices.Equal(keys[0], keys[1]) {
		return d, nil
	}
	for i, key := range keys[0] {
		if count[key] > 0 {
			d.Left = append(d.Left, left[i])
			count[key]--
		}
	}
	for i, key := range keys[1] {
		if count[key] < 0 {
			d.Right = append(d.Right, right[i])
			count[key]++
		}
	}
	if len(d.Left) == 0 && len(d.Right) == 0 {
		d.Left, d.Right, d.Reordered = slices.Clone(left), slices.Clone(right), true
	}
	return d, nil
}

// sameCommand reports whether two commands are equal without the ids of their performances.
// If it does not, their keys may still be equal.
func sameCommand(a, b choreography.Command) bool {
	return a.Kind == b.Kind && a.At == b.At && a.Action == b.Action && a.EntityRef == b.EntityRef && a.Duration == b.Duration &&
		a.Easing == b.Easing && a.Progress == b.Progress && a.Elapsed == b.Elapsed && a.CorrelationID == b.CorrelationID &&
		a.InterruptedBy == b.InterruptedBy && reflect.DeepEqual(a.Params, b.Params)
}

// commandKey is a command without the id of its performance.
func commandKey(c choreography.Command) (string, error) {
	c.PerformanceID = ""
	key, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("compare: a command of %s: %w", c.Action, err)
	}
	return string(key), nil
}

var _ choreography.CommandSink = (*commandRecorder)(nil)

// theEnd is after every session time.
const theEnd = time.Duration(1<<63 - 1)
