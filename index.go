package sajou

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/postings"
)

// IndexFile begins the names of the files beside the snapshots that make questions about
// long sessions fast, in the format of package replay/postings: one a session and part.
// They are derived. A question builds what it needs when it is first asked, also of a
// store that was opened for reading, and each file can be deleted at any time.
const IndexFile = SnapshotFile + ".index"

// indexes holds the open tables of an engine.
type indexes struct {
	mu     sync.Mutex // held while a table is built
	tables map[string]*postings.Table
	stale  []*postings.Table // replaced, and perhaps still read; closed with the engine
}

// close closes all tables.
func (x *indexes) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var err error
	for _, t := range x.tables {
		err = errors.Join(err, t.Close())
	}
	for _, t := range x.stale {
		err = errors.Join(err, t.Close())
	}
	x.tables, x.stale = nil, nil
	return err
}

// sessionIndexes are the tables of one session. It implements [replay.Indexes].
type sessionIndexes struct {
	e   *Engine
	log *eventlog.SessionReader
}

// indexesOf returns the tables of a session, nil for an engine that works without.
func (e *Engine) indexesOf(log *eventlog.SessionReader) replay.Indexes {
	if e.snapsPath == "" || e.cfg.NoSnapshots || e.cfg.IndexFrom < 0 {
		return nil
	}
	return &sessionIndexes{e, log}
}

// path returns the path of the file of a part.
func (s *sessionIndexes) path(part string) string { return s.e.indexPath(s.log.Name()) + "." + part }

// indexPath returns the beginning of the paths of the files of a session.
func (e *Engine) indexPath(name string) string {
	genesis := eventlog.Genesis(name)
	return e.snapsPath + ".index." + hex.EncodeToString(genesis[:8])
}

// Head implements [postings.SessionHistory].
func (s *sessionIndexes) Head() eventlog.Head { return s.log.Head() }

// Has implements [postings.SessionHistory].
func (s *sessionIndexes) Has(head eventlog.Head) (bool, error) {
	if head.Seq > s.log.Head().Seq {
		return false, nil
	}
	e, err := s.log.Entry(context.Background(), head.Seq)
	return err == nil && e.Head() == head, err
}

// Table implements [replay.Indexes].
func (s *sessionIndexes) Table(ctx context.Context, part replay.IndexPart) (*postings.Table, error) {
	if s.log.Head().Seq < eventlog.Seq(s.e.cfg.IndexFrom) {
		return nil, nil
	}
	x := &s.e.indexes
	x.mu.Lock()
	defer x.mu.Unlock()
	path := s.path(part.Name)
	id := postings.Identity{Genesis: s.log.Genesis(), What: part.Name + " " + part.Version}
	key := path + " " + part.Version
	if t := x.tables[key]; t != nil {
		if s.log.Head().Seq-t.Head().Seq <= postings.TailEntries {
			return t, nil
		}
		x.stale = append(x.stale, t)
		delete(x.tables, key)
	}
	t, err := postings.Update(path, id, s, func(after eventlog.Seq, b *postings.TableBuilder) error {
		if report := s.e.cfg.OnIndex; report != nil {
			total := s.log.Head().Seq
			b.Progress = func(done eventlog.Seq) { report(s.log.Name(), done, total) }
		}
		return part.Fill(ctx, after, b)
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		// The question is then answered by a pass, which also meets an error of the log.
		s.e.cfg.Logger.Debug("working without an index", slog.String("path", path), slog.Any("err", err))
		return nil, nil
	}
	if x.tables == nil {
		x.tables = map[string]*postings.Table{}
	}
	x.tables[key] = t
	return t, nil
}

// Discard implements [replay.Indexes].
func (s *sessionIndexes) Discard(part replay.IndexPart) {
	x := &s.e.indexes
	x.mu.Lock()
	defer x.mu.Unlock()
	path := s.path(part.Name)
	key := path + " " + part.Version
	if t := x.tables[key]; t != nil {
		x.stale = append(x.stale, t)
		delete(x.tables, key)
	}
	err := os.Remove(path)
	s.e.cfg.Logger.Warn("an index was wrong and is dropped", slog.String("path", path), slog.Any("err", err))
}

// IndexUsage returns the number of the index files of a session, and their bytes.
func (e *Engine) IndexUsage(name string) (files int, bytes int64, err error) {
	paths, err := e.indexFiles(name)
	for _, path := range paths {
		info, statErr := os.Stat(path)
		if errors.Is(statErr, os.ErrNotExist) {
			continue
		}
		if err = errors.Join(err, statErr); statErr == nil {
			files++
			bytes += info.Size()
		}
	}
	return files, bytes, err
}

// indexFiles returns the paths of the index files of a session, also of unfinished ones.
func (e *Engine) indexFiles(name string) ([]string, error) {
	if e.snapsPath == "" {
		return nil, nil
	}
	prefix := filepath.Base(e.indexPath(name)) + "."
	list, err := os.ReadDir(filepath.Dir(e.snapsPath))
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, f := range list {
		if strings.HasPrefix(f.Name(), prefix) {
			paths = append(paths, filepath.Join(filepath.Dir(e.snapsPath), f.Name()))
		}
	}
	return paths, nil
}

// DropIndexes deletes the index files of a session. The next question that needs one
// builds it again.
func (e *Engine) DropIndexes(name string) error {
	x := &e.indexes
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, t := range x.tables {
		if strings.HasPrefix(key, e.indexPath(name)+".") {
			x.stale = append(x.stale, t)
			delete(x.tables, key)
		}
	}
	paths, err := e.indexFiles(name)
	for _, path := range paths {
		if removed := os.Remove(path); !errors.Is(removed, os.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}
