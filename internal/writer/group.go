package writer

import (
	"context"
	"log/slog"
	"sync"
	"time"
	"weak"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// Config holds the options of the writers of one log.
type Config struct {
	Log *eventlog.Log

	// Snapshots and Snapshotter keep images of states; nil: none are taken.
	Snapshots   *snapshot.Store
	Snapshotter *snapshot.Writer

	Metrics projection.FoldMetrics // nil: nothing is measured

	Now    func() time.Time // the wall's clock
	Logger *slog.Logger     // nil discards

	// AfterFunc waits until a session is idle: it calls f once, d from now, on a
	// goroutine of its own. Nil means [time.AfterFunc]. It does not follow Now: when
	// the machine has time to fold is not a matter of session time.
	AfterFunc func(d time.Duration, f func())
}

// Group is the shared part of the writers of one log: their configuration, and the
// goroutines that closing the log waits for.
type Group struct {
	cfg  Config             // immutable
	ctx  context.Context    // ends with Stop
	stop context.CancelFunc // of ctx

	mu      sync.Mutex
	closed  bool                            // guarded by mu
	writers map[string]weak.Pointer[Writer] // those in use, by session; guarded by mu
	notes   map[string][]byte               // positions that are not stored yet; guarded by mu

	work  sync.WaitGroup // of the writers' Go; Add only with mu held and closed false
	folds sync.WaitGroup // sessions that fold their backlog aside
}

// NewGroup returns a group without writers.
func NewGroup(cfg Config) *Group {
	if cfg.AfterFunc == nil {
		cfg.AfterFunc = func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Group{cfg: cfg, writers: map[string]weak.Pointer[Writer]{}, notes: map[string][]byte{}}
	g.ctx, g.stop = context.WithCancel(context.Background())
	return g
}

// Writers returns the writers that are in use, in no order.
func (g *Group) Writers() []*Writer {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []*Writer
	for _, ref := range g.writers {
		if w := ref.Value(); w != nil {
			all = append(all, w)
		}
	}
	return all
}

// forget drops the entry of an unused writer from the table.
func (g *Group) forget(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writers[name].Value() == nil {
		delete(g.writers, name)
	}
}

// foldAside has a writer fold its backlog on a goroutine, unless the group is stopped.
func (g *Group) foldAside(w *Writer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.folds.Go(w.foldAside)
	}
}

// Stop ends the context of all work. It reports whether it is the first to do so.
func (g *Group) Stop() (first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	first = !g.closed
	g.closed = true
	g.stop()
	return first
}

// Wait returns once all work has ended. It is called after Stop.
func (g *Group) Wait() { g.work.Wait() }

// WaitFolded returns once nothing is folded aside. It is called when nothing can be
// appended any more.
func (g *Group) WaitFolded() { g.folds.Wait() }
