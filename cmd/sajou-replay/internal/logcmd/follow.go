package logcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/signal"
)

// followInterval is the time between two looks at the folder.
const followInterval = 300 * time.Millisecond

// folderFollower records the recordings of a folder while they grow (import --watch). Each
// file has a goroutine that reads it and waits at its end; those of one session share its
// recorder. Signals are recorded in the order in which they arrive.
type folderFollower struct {
	imports *foreignImport
	engine  *sajou.Engine
	root    *os.Root
	dir     string

	mu       sync.Mutex
	grown    *sync.Cond // a look has passed, or the end has come
	looks    int
	ended    bool
	sessions map[string]*followedSession
	known    map[string]bool // files
	failed   error
	running  sync.WaitGroup
}

// followedSession is a session to which files are recorded.
type followedSession struct {
	mu       sync.Mutex
	name     string
	recorder *ingest.Recorder
	present  map[string]bool // ids of the signals that the session has
	told     int             // signals that were reported
}

// follow records what is in a folder and what comes, until ctx ends.
func (f *foreignImport) follow(ctx context.Context, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return cli.Unreadable(dir, err)
	}
	defer root.Close()
	engine, err := f.app.OpenWriting()
	if err != nil {
		return err
	}
	w := &folderFollower{imports: f, engine: engine, root: root, dir: dir, sessions: map[string]*followedSession{}, known: map[string]bool{}}
	w.grown = sync.NewCond(&w.mu)
	fmt.Fprintf(f.app.Stderr, "sajou-replay: following %s; end with Ctrl-C\n", termtext.Printable(dir))
	ticks := f.app.Ticks
	if ticks == nil {
		t := time.NewTicker(followInterval)
		defer t.Stop()
		ticks = t.C
	}
	for err == nil {
		err = w.look(ctx)
		if err == nil {
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-ticks:
			}
		}
	}
	w.mu.Lock()
	w.ended = true
	w.grown.Broadcast()
	w.mu.Unlock()
	w.running.Wait()
	for _, s := range w.sessions {
		s.recorder.Close()
	}
	err = errors.Join(w.failed, engine.Close())
	if err == nil {
		return nil // Ctrl-C is the usual end
	}
	return err
}

// look finds new files and lets those that wait look for more.
func (w *folderFollower) look(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return w.failed
	}
	err := fs.WalkDir(w.root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || w.known[path] {
			return nil //nolint:nilerr // a file that goes while the folder is read is no error
		}
		return w.begin(ctx, path)
	})
	w.looks++
	w.grown.Broadcast()
	return err
}

// begin begins to follow a file, if its format is known by now.
func (w *folderFollower) begin(ctx context.Context, path string) error {
	format, ok := w.imports.growing(w.root.FS(), path)
	if !ok {
		return nil // it may become a recording when it grows
	}
	w.known[path] = true
	main := path
	if format.PartOf != nil {
		// The file of a subagent belongs to the session of its main file.
		if of := format.PartOf(path); of != "" {
			main = of
		}
	}
	s, err := w.session(ctx, w.imports.followName(main), format)
	if err != nil {
		return err
	}
	w.running.Go(func() {
		if err := w.record(ctx, s, format, path); err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.failed = errors.Join(w.failed, fmt.Errorf("%s: %w", path, err))
		}
	})
	return nil
}

// session returns a session and its recorder.
func (w *folderFollower) session(ctx context.Context, name string, format recording.Format) (*followedSession, error) {
	if s := w.sessions[name]; s != nil {
		return s, nil
	}
	log, err := w.engine.Log().Session(name)
	if err != nil {
		return nil, err
	}
	s := &followedSession{name: name, present: map[string]bool{}}
	cfg := ingest.Config{Lenient: true}
	if !log.Exists() {
		cfg.Definitions = w.imports.definitions(format)
	}
	for e, err := range log.Entries(ctx, 1) {
		if err != nil {
			return nil, err
		}
		if sig, err := signal.Decode(e.Data); e.Kind == eventlog.KindSignal && err == nil {
			s.present[sig.ID] = true
		}
	}
	session, err := w.engine.Session(ctx, name)
	if err != nil {
		return nil, err
	}
	s.recorder, err = ingest.NewRecorder(ctx, session, cfg)
	w.sessions[name] = s
	return s, err
}

// record records a file until the end has come.
func (w *folderFollower) record(ctx context.Context, s *followedSession, format recording.Format, path string) error {
	growing := &growingFS{FS: w.root.FS(), name: path, wait: w.wait}
	reading := format.Open(growing, path, w.imports.options())
	seen := 0
	growing.idle = func() error {
		reading.Idle()
		return w.flush(ctx, s, path)
	}
	for item, err := range reading.Items() {
		if errors.Is(err, errFollowEnds) {
			break
		}
		if err != nil {
			fmt.Fprintf(w.imports.app.Stderr, "sajou-replay: %s: %s\n", termtext.Printable(path), cli.OneLine(err.Error()))
			break
		}
		seen++
		if err := s.add(ctx, item); err != nil {
			return err
		}
	}
	return w.flush(context.WithoutCancel(ctx), s, path)
}

// add records a signal, unless the session has it.
func (s *followedSession) add(ctx context.Context, item recording.Item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.present[item.Signal.ID] {
		return nil
	}
	s.present[item.Signal.ID] = true
	return s.recorder.Add(ctx, item)
}

// flush makes durable what was read, and reports it.
func (w *folderFollower) flush(ctx context.Context, s *followedSession, path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.recorder.Flush(ctx); err != nil {
		return err
	}
	n := s.recorder.Tally().Signals
	if n == s.told {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.imports.app.Output()
	err := out.ItemOf(fmt.Sprintf("%s: %s from %s, head %v", s.name, cli.Plural(n-s.told, "signal", "signals"), termtext.Printable(path), s.recorder.Tally().Head), struct {
		Session string       `json:"session"`
		File    string       `json:"file"`
		Signals int          `json:"signals"`
		Head    cli.HeadView `json:"head"`
	}{s.name, path, n - s.told, cli.ViewHead(s.recorder.Tally().Head)})
	s.told = n
	return errors.Join(err, out.Flush())
}

// wait waits for the look after the one that a reader has seen. False means that the end
// has come.
func (w *folderFollower) wait(seen int) (looks int, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.looks == seen && !w.ended {
		w.grown.Wait()
	}
	return w.looks, !w.ended
}

var errFollowEnds = errors.New("the following has ended")

// growingFS has files that do not end: a read at the end calls idle once and waits for
// more.
type growingFS struct {
	fs.FS
	name string // the file that grows; others are not there, since each is followed by itself
	wait func(seen int) (looks int, more bool)
	idle func() error
}

// Open opens a file that does not end.
func (g *growingFS) Open(name string) (fs.File, error) {
	f, err := g.FS.Open(name)
	if err != nil {
		return nil, err
	}
	if name != g.name {
		info, err := f.Stat()
		if err == nil && info.Size() <= maxBeside && !info.IsDir() && !strings.HasSuffix(name, filepath.Ext(g.name)) {
			return f, nil // a small description of another kind
		}
		return nil, errors.Join(f.Close(), &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist})
	}
	return &growingFile{File: f, fs: g}, nil
}

// maxBeside is the length of a file beside a recording that describes it.
const maxBeside = 1 << 20

type growingFile struct {
	fs.File
	fs    *growingFS
	looks int
}

func (f *growingFile) Read(p []byte) (int, error) {
	idle := false
	for {
		n, err := f.File.Read(p)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		if !idle {
			if err := f.fs.idle(); err != nil {
				return 0, err
			}
			idle = true
		}
		looks, more := f.fs.wait(f.looks)
		if f.looks = looks; !more {
			return 0, errFollowEnds
		}
	}
}

// growing returns the format of a file that grows by lines.
func (f *foreignImport) growing(files fs.FS, path string) (recording.Format, bool) {
	file, err := files.Open(path)
	if err != nil {
		return recording.Format{}, false
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, recording.SampleBytes))
	if err != nil || len(head) == 0 {
		return recording.Format{}, false
	}
	for _, c := range formats.Detect(recording.NewSample(path, head, len(head) < recording.SampleBytes)) {
		if c.Format.Grows && c.Format.Map != nil && (f.flags.format == "" || f.flags.format == c.Format.Name) {
			return c.Format, true
		}
	}
	return recording.Format{}, false
}

// followName is the session of a file in a followed folder.
func (f *foreignImport) followName(path string) string {
	if f.app.Session != "" {
		return f.app.Session
	}
	return sessionName(filepath.Base(path))
}
