package mcp

import (
	"context"
	"errors"
	"slices"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/workspace"
)

// opened is a session that a call reads.
type opened struct {
	c      *call
	name   string
	log    *eventlog.SessionReader
	travel *replay.Replay
}

// noSession is the refusal of a session that is not there, and of one that the caller may
// not read: both are the same bytes.
func noSession(name string) error {
	return refuse(problem.NoSession, "list_sessions lists the sessions that you can read.", "there is no session %q", clip(name, 200))
}

// sessionName returns the session of a call: the given one, that of the configuration, or
// the one that was begun last of those that the caller may read.
func (c *call) sessionName(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	if c.box.cfg.Session != "" {
		return c.box.cfg.Session, nil
	}
	names, err := c.engine.Sessions()
	if err != nil {
		return "", err
	}
	for _, n := range slices.Backward(names) {
		if c.rights.MayRead(n) {
			return n, nil
		}
	}
	return "", refuse(problem.NoSession, "The store has no session that you can read. Name one, or have one recorded first.", "there is no session")
}

// open opens a session for reading.
func (c *call) open(name string) (*opened, error) {
	name, err := c.sessionName(name)
	if err != nil {
		return nil, err
	}
	if !c.rights.MayRead(name) {
		return nil, noSession(name)
	}
	return c.openAllowed(name)
}

// openAs opens a session for what an agent sees of it.
func (c *call) openAs(name, agent string) (*opened, error) {
	name, err := c.sessionName(name)
	if err != nil {
		return nil, err
	}
	if !c.rights.MayRead(name) && !c.rights.MayReadAs(name, agent) {
		return nil, noSession(name)
	}
	return c.openAllowed(name)
}

func (c *call) openAllowed(name string) (*opened, error) {
	travel, err := c.engine.Replay(name)
	if errors.Is(err, eventlog.ErrNoSession) && !errors.Is(err, eventlog.ErrDeleted) || errors.Is(err, eventlog.ErrInvalid) {
		return nil, noSession(name)
	}
	if err != nil {
		return nil, err
	}
	log, err := c.engine.Log().Session(name)
	if err != nil {
		return nil, err
	}
	s := &opened{c: c, name: name, log: log, travel: travel}
	s.anchor()
	return s, nil
}

// anchor gives the addresses of the session its bookmarks.
func (s *opened) anchor() {
	if f := s.c.box.cfg.Bookmarks; f != nil {
		s.travel.Anchor(f(s.name))
	}
}

// readFor makes the states of the session have the files of the workspace, if an expression
// reads them.
func (s *opened) readFor(x *where.Expression) error {
	if x == nil || !x.Reads(workspace.Name) {
		return nil
	}
	travel, err := s.c.engine.ReplayWith(s.name, answer.Projections())
	if err != nil {
		return err
	}
	s.travel = travel
	s.anchor()
	return nil
}

// moment returns the moment of an address; the empty one is the end.
func (s *opened) moment(ctx context.Context, address string) (replay.Moment, error) {
	if address == "" {
		address = "end"
	}
	parsed, err := replay.ParseAddress(address)
	if err != nil {
		return replay.Moment{}, err
	}
	return s.travel.Resolve(ctx, parsed)
}

// fold returns the state at an address.
func (s *opened) fold(ctx context.Context, address string) (*projection.Fold, replay.Moment, error) {
	m, err := s.moment(ctx, address)
	if err != nil {
		return nil, m, err
	}
	f, err := s.travel.At(ctx, m)
	return f, m, err
}
