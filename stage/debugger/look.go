package debugger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/film"
)

// around is the number of entries that are read before and after the cursor.
const around = 25

// mostRunning bounds the performances that are listed.
const mostRunning = 40

// entryLine is one entry around the cursor.
type entryLine struct {
	seq  eventlog.Seq
	text string
}

// look reads what is shown of the position of the player. It is part of a work, so it
// must not write what [Debugger.View] reads.
func (d *Debugger) look(ctx context.Context) (scenery, error) {
	at := d.player.State().Moment
	frame, err := film.FrameOf(d.fold)
	if err != nil {
		return scenery{}, err
	}
	s := scenery{at: at, frame: frame, entries: d.seen.entries, marks: d.seen.marks}
	if at.Seq != d.seen.at.Seq || d.stale || d.seen.frame == nil {
		if s.entries, err = d.entriesAround(ctx, at.Seq); err != nil {
			return scenery{}, err
		}
	}
	s.running = runningLines(session.PerformancesOf(d.fold), d.fold.At())
	if director := session.DirectorOf(d.fold); director != nil {
		s.board = boardLines(director.View())
	}
	value, ok, err := d.inspect(ctx, d.fold, at)
	switch {
	case err != nil:
		return scenery{}, err
	case d.differ && d.pinned != nil:
		if d.pinned.path != d.path {
			// A remembers another part: fold it again.
			fold, err := d.travel.At(ctx, d.pinned.at)
			if err != nil {
				return scenery{}, err
			}
			was, _, err := d.inspect(ctx, fold, d.pinned.at)
			if err != nil {
				return scenery{}, err
			}
			d.pinned.value, d.pinned.path = bounded(was), d.path
		}
		s.value = difference(d.pinned.value, bounded(value))
	case !ok:
		s.value = []string{"the state has no " + d.path}
	default:
		s.value = outline(bounded(value))
	}
	if d.cfg.Bookmarks != nil && (d.stale || d.seen.frame == nil) {
		if s.marks, err = d.cfg.Bookmarks(); err != nil {
			return scenery{}, err
		}
	}
	d.stale = false
	return s, nil
}

// inspect returns the part of a state that is shown, or false if there is none.
func (d *Debugger) inspect(ctx context.Context, f *projection.Fold, at replay.Moment) (value any, ok bool, err error) {
	agent, ok := strings.CutPrefix(d.path, "view:")
	if !ok {
		value, ok = member(f, d.path)
		return value, ok, nil
	}
	if d.cfg.View == nil {
		return nil, false, nil
	}
	value, err = d.cfg.View(ctx, agent, at)
	if err != nil && ctx.Err() == nil {
		return err.Error(), true, nil // such as an agent that the session does not have
	}
	return value, true, err
}

// entriesAround returns the lines of the entries near seq.
func (d *Debugger) entriesAround(ctx context.Context, seq eventlog.Seq) ([]entryLine, error) {
	first := eventlog.Seq(1)
	if seq > around {
		first = seq - around
	}
	lines := []entryLine{}
	if d.travel.Head().Seq == 0 {
		return lines, nil
	}
	for e, err := range d.travel.Entries(ctx, first) {
		if err != nil {
			return nil, err
		}
		lines = append(lines, entryLine{e.Seq, termtext.Printable(film.EntryText(&e))})
		if e.Seq >= seq+around || len(lines) > 2*around {
			break
		}
	}
	return lines, ctx.Err()
}

// runningLines lists the performances under way, with how far their actions are.
func runningLines(p *session.Performances, now time.Duration) []string {
	if p == nil {
		return nil
	}
	var lines []string
	for perf := range p.Scheduler().Performances() {
		if len(lines) == mostRunning {
			return append(lines, "…")
		}
		doing := "waits"
		var acts []string
		for a := range perf.Animations() {
			raw, _ := a.Progress(now)
			acts = append(acts, fmt.Sprintf("%s %s %.0f%%", a.Action, a.Entity, 100*raw))
		}
		if len(acts) > 0 {
			doing = strings.Join(acts, ", ")
		}
		lines = append(lines, termtext.Printable(fmt.Sprintf("%s %s: %s", perf.ID(), perf.On, doing)))
	}
	return lines
}

// boardLines tells the state of the director: its turn, and its beats in their states.
func boardLines(view any) []string {
	v, ok := view.(map[string]any)
	if !ok {
		return nil
	}
	lines := []string{fmt.Sprintf("turn %v", v["turn"])}
	if beats, ok := v["beats"].(map[string]any); ok {
		all := make([]string, 0, len(beats))
		for id := range beats {
			all = append(all, id)
		}
		slices.Sort(all)
		for _, id := range all {
			if b, ok := beats[id].(map[string]any); ok {
				lines = append(lines, termtext.Printable(fmt.Sprintf("%s: %v, %v", id, b["state"], b["urgency"])))
			}
		}
	}
	return lines
}

// clock is a moment as it is shown: whole milliseconds after an entry, as in 15+437ms.
func clock(m replay.Moment) string {
	if m.Offset >= time.Millisecond {
		ms := m.Offset / time.Millisecond
		if ms < 100_000 {
			return fmt.Sprintf("%d+%dms", m.Seq, ms)
		}
		return fmt.Sprintf("%d+%v", m.Seq, m.Offset.Truncate(time.Second))
	}
	return m.String()
}

// timeText is a session time as minutes, seconds and milliseconds.
func timeText(at time.Duration) string {
	ms := at / time.Millisecond
	if h := ms / 3_600_000; h > 0 {
		return fmt.Sprintf("%d:%02d:%02d.%03d", h, ms/60_000%60, ms/1000%60, ms%1000)
	}
	return fmt.Sprintf("%02d:%02d.%03d", ms/60_000, ms/1000%60, ms%1000)
}
