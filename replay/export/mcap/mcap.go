// Package mcap writes a session in MCAP, the container of recordings of robots, which
// Foxglove and other viewers open.
//
// A file has three channels of JSON messages, each with its JSON schema:
//
//	/entries   each entry, as [session.Lateness] writes it
//	/commands  each command of a performance, other than updates
//	/stage     the view of the stage, whenever it differs from the one before
//
// Times are nanoseconds: of the wall clock if the session knows it, else of the session.
// The stage is written at each entry and at each instant at which something begins or
// ends; a position under way follows from the command that began it.
//
// The metadata record "sajou" has the name and the head of the session, the range, and of
// a fork its label.
//
// The data section is in chunks of about 1 MiB, compressed with zstd and with sums, and
// the summary has an index of all messages. Memory grows with the number of chunks alone.
//
// docs/glossary.md has the nouns of all packages.
package mcap

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// ErrTime says that a session has a time that MCAP cannot hold: before 1970.
var ErrTime = errors.New("mcap: the session begins before 1970")

// The channels of a file, by their number.
const (
	entriesChannel = iota
	commandsChannel
	stageChannel
)

var channels = []channel{
	{"/entries", "sajou.Entry", `{"type":"object","properties":{"seq":{"type":"integer"},"at":{"type":"number"},"kind":{"type":"string"},"hash":{"type":"string"},"id":{"type":"string"},"type":{"type":"string"},"source":{"type":"string"},"payload":{"type":"object"}},"required":["seq","at","kind","hash"]}`},
	{"/commands", "sajou.Command", `{"type":"object","properties":{"t":{"type":"number"},"kind":{"type":"string"},"performance":{"type":"string"},"action":{"type":"string"},"entityRef":{"type":"string"},"params":{"type":"object"},"duration":{"type":"number"},"easing":{"type":"string"}},"required":["t","kind","performance"]}`},
	{"/stage", "sajou.Stage", `{"type":"object"}`},
}

// Write writes the entries from one Seq to another, 0 for the present end, with their
// commands and the stage. What follows the last entry is written for [replay.MaxRest] at
// most. Errors are those of the replay and of w; [ErrTime] says that the times do not
// fit.
func Write(ctx context.Context, w io.Writer, r *replay.Replay, from, to eventlog.Seq) error {
	head := r.Head()
	from = max(from, 1)
	if to == 0 {
		to = head.Seq
	}
	base := int64(0)
	if origin, ok := r.Origin(); ok {
		base = origin.UnixNano()
	}
	if base < 0 {
		return ErrTime
	}
	out := bufio.NewWriterSize(w, 64<<10)
	m, err := newWriter(out, channels)
	if err != nil {
		return err
	}
	about := map[string]string{"session": r.Name(), "head": head.String(), "from": fmt.Sprint(uint64(from)), "to": fmt.Sprint(uint64(to))}
	fork, err := session.ReadFork(ctx, r)
	if err != nil {
		return err
	}
	if fork != nil {
		about["fork"] = fork.String()
	}
	if err := m.note("sajou", about); err != nil {
		return err
	}
	s := stream{m: m, base: uint64(base), late: session.NewLateness(r.Entries)}
	// The walk begins one entry earlier, so that the commands at the first are seen too.
	over := replay.MomentRange{From: replay.Moment{Seq: max(from-1, 1)}, To: replay.Moment{Seq: to}, Rest: true}
	attached := false
	for step, err := range r.Moments(ctx, over, replay.NeedsState) {
		if err != nil {
			return err
		}
		if p := session.PerformancesOf(step.Fold); p != nil && !attached {
			p.Perform(&s.commands)
			defer p.Perform(nil)
			attached = true
		}
		if step.Moment.Seq >= from {
			if err := s.moment(ctx, step); err != nil {
				return err
			}
		}
		s.commands.Commands = s.commands.Commands[:0]
	}
	if err := m.close(); err != nil {
		return err
	}
	return out.Flush()
}

// stream writes the moments of a session.
type stream struct {
	m        *writer
	late     *session.Lateness
	base     uint64
	commands choreography.RecordingSink
	line     []byte
	stage    []byte // the last one
	view     []byte // memory for the next one
}

// moment writes what came with a moment: its entry, the commands since the moment before,
// and the stage.
func (s *stream) moment(ctx context.Context, step *replay.ScanStep) error {
	at := s.time(step.Fold.At())
	if step.Kind == replay.EntryMoment {
		var err error
		if s.line, err = s.late.AppendEntryJSON(ctx, s.line[:0], step.Entry); err != nil {
			return err
		}
		if err := s.m.message(entriesChannel, at, s.line); err != nil {
			return err
		}
	}
	for _, c := range s.commands.Commands {
		if c.Kind == choreography.CommandUpdate {
			continue
		}
		data, err := json.Marshal(c)
		if err != nil {
			return fmt.Errorf("mcap: a command of %s: %w", c.PerformanceID, err)
		}
		if err := s.m.message(commandsChannel, s.time(c.At), data); err != nil {
			return err
		}
	}
	view, err := appendView(s.view[:0], session.StageOf(step.Fold))
	if err != nil {
		return fmt.Errorf("mcap: the stage at %v: %w", step.Moment, err)
	}
	if bytes.Equal(view, s.stage) {
		s.view = view
		return nil
	}
	s.view, s.stage = s.stage, view
	return s.m.message(stageChannel, at, view)
}

func (s *stream) time(at time.Duration) uint64 { return s.base + uint64(max(at, 0)) }
