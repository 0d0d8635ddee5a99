// Package corpus checks recordings against the digests that were kept of their states:
// the regression test of a program over what it has recorded.
//
// A corpus is a folder with recordings, at any depth. [Find] lists them:
//
//   - a store, which is a folder with the files of one. All its sessions are checked.
//   - NAME.raw.jsonl, a raw export of a session.
//   - NAME.jsonl, signals. They are recorded as session NAME, in memory. The files with
//     declarations beside it (.json, .yaml, .yml) come into force before, in the order
//     of their names.
//
// Beside each recording, NAME.digests.json keeps the digests of its projections at some
// entries and at the end, in the format of package replay/sentinel. [StoredRecording.Check]
// verifies the chain of each session, folds it from its first entry without snapshots
// and compares. [StoredRecording.Update] writes the file.
//
// Checking changes nothing in a recording.
//
// docs/glossary.md has the nouns of all packages.
package corpus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/replay/sentinel"
)

// RecordingKind says how a recording is kept.
type RecordingKind string

// The kinds of recordings.
const (
	KindStore   RecordingKind = "store"
	KindRaw     RecordingKind = "raw"
	KindSignals RecordingKind = "signals"
)

// StoredRecording is one recording of a corpus.
type StoredRecording struct {
	Kind RecordingKind
	Name string // the path below the corpus, with slashes

	path   string
	expect string // the path of its file of digests
}

const (
	digestsSuffix = ".digests.json"
	rawSuffix     = ".raw.jsonl"
	signalsSuffix = ".jsonl"
)

// DefaultPoints is the number of entries of each session whose digests are kept.
const DefaultPoints = 32

// Find lists the recordings of a corpus in the order of their names. The error is that
// of reading a folder.
func Find(dir string) ([]StoredRecording, error) {
	var found []StoredRecording
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		r := StoredRecording{Name: filepath.ToSlash(name), path: path}
		switch {
		case d.IsDir() && isStore(path):
			r.Kind, r.expect = KindStore, path+digestsSuffix
			found = append(found, r)
			return filepath.SkipDir
		case d.IsDir() || !isRegular(path):
			return nil
		case strings.HasSuffix(path, rawSuffix):
			r.Kind, r.expect = KindRaw, strings.TrimSuffix(path, rawSuffix)+digestsSuffix
		case strings.HasSuffix(path, signalsSuffix):
			r.Kind, r.expect = KindSignals, strings.TrimSuffix(path, signalsSuffix)+digestsSuffix
		default:
			return nil
		}
		found = append(found, r)
		return nil
	})
	return found, err
}

// isRegular reports whether a file can be read to an end, which a pipe or a device may not
// have. A link to no file counts, so that its check says so.
func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

// isStore reports whether a folder has the files of a store of any version.
func isStore(dir string) bool {
	for _, pattern := range []string{"SAJOU", "MANIFEST-*"} {
		if names, _ := filepath.Glob(filepath.Join(dir, pattern)); len(names) > 0 {
			return true
		}
	}
	return false
}

// SessionCheck is the outcome for one session of a recording.
type SessionCheck struct {
	Session string
	Head    eventlog.Head

	Fault   *verify.Fault        // where the chain is broken; nil if it is whole
	Points  int                  // that were compared and are the same
	Diverge *sentinel.Divergence // the first point that differs
	Unkept  bool                 // no digests are kept of it
	Missing bool                 // digests are kept of it, and the recording does not have it
	Err     error                // why it could not be replayed
}

// Whole reports whether the session is as it was.
func (c *SessionCheck) Whole() bool {
	return c.Fault == nil && c.Diverge == nil && !c.Unkept && !c.Missing && c.Err == nil
}

// Check is the outcome for one recording.
type Check struct {
	StoredRecording
	Sessions []SessionCheck
	Entries  eventlog.Seq // folded
	Err      error        // why it could not be opened or recorded, or its digests not read
}

// Whole reports whether all sessions are as they were.
func (c *Check) Whole() bool {
	return c.Err == nil && !slices.ContainsFunc(c.Sessions, func(s SessionCheck) bool { return !s.Whole() })
}

// ErrNoDigests says that nothing is kept of a recording yet.
var ErrNoDigests = errors.New("corpus: no digests are kept of this recording")

// Check verifies and replays the recording, and compares it with the digests beside it.
// Only the end of ctx is an error; all others are in the outcome.
func (r StoredRecording) Check(ctx context.Context) (Check, error) {
	c := Check{StoredRecording: r}
	kept, err := readDigests(r.expect)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNoDigests
	}
	if err != nil {
		c.Err = err
		return c, ctx.Err()
	}
	fine := &sentinel.DigestDocument{}
	if r.Kind == KindStore {
		// Digests that the store itself keeps can tell the place more exactly. They are
		// disposable, so an unreadable file is none.
		if d, err := readDigests(filepath.Join(r.path, sajou.DigestFile)); err == nil {
			fine = d
		}
	}
	c.Err = r.with(ctx, func(eng *sajou.Engine) error {
		names, err := eng.Sessions()
		if err != nil {
			return err
		}
		for _, name := range names {
			want := kept.Of(name)
			if want != nil {
				if more := fine.Of(name); more != nil {
					want = sentinel.Merge(want, more)
				}
			}
			s, folded := checkSession(ctx, eng, name, want)
			c.Sessions, c.Entries = append(c.Sessions, s), c.Entries+folded
		}
		for _, s := range kept.Sessions {
			if !slices.Contains(names, s.Session) {
				c.Sessions = append(c.Sessions, SessionCheck{Session: s.Session, Missing: true})
			}
		}
		return nil
	})
	return c, ctx.Err()
}

func checkSession(ctx context.Context, eng *sajou.Engine, name string, want *sentinel.KeptDigests) (s SessionCheck, folded eventlog.Seq) {
	s.Session = name
	report, err := eng.Log().Verify(ctx, name, verify.Options{Workers: 1})
	if err != nil {
		s.Err = err
		return s, 0
	}
	s.Head, s.Fault = report.Head, report.Fault
	if want == nil {
		s.Unkept = true
		return s, 0
	}
	travel, err := eng.Replay(name) // refuses the rules of a newer program
	if err == nil {
		var log *eventlog.SessionReader
		if log, err = eng.Log().Session(travel.Name()); err == nil {
			var c sentinel.DigestComparison
			c, err = sentinel.Check(ctx, log, eng.Projections(), want)
			s.Points, s.Diverge, folded = c.Points, c.Diverge, c.Folded
		}
	}
	if s.Fault == nil { // of a broken chain, the fault says why it cannot be read
		s.Err = err
	}
	return s, folded
}

// Update replays the recording and writes its file of digests, with those of the given
// number of entries of each session. It reports whether the file changed. A recording
// with a broken chain is refused.
func (r StoredRecording) Update(ctx context.Context, points int) (changed bool, err error) {
	var doc sentinel.DigestDocument
	err = r.with(ctx, func(eng *sajou.Engine) error {
		names, err := eng.Sessions()
		if err != nil {
			return err
		}
		for _, name := range names {
			report, err := eng.Log().Verify(ctx, name, verify.Options{Workers: 1})
			if err != nil {
				return err
			}
			if f := report.Fault; f != nil {
				return fmt.Errorf("corpus: the chain of %q is broken at entry %d: %s; nothing was written", name, f.Seq, f.Detail)
			}
			log, err := eng.Log().Session(name)
			if err != nil {
				return err
			}
			kept, err := sentinel.Take(ctx, log, eng.Projections(), points)
			if err != nil {
				return err
			}
			doc.Put(kept)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	text := doc.Text()
	if old, err := os.ReadFile(r.expect); err == nil && bytes.Equal(old, text) {
		return false, nil
	}
	return true, writeAtomically(r.expect, text)
}

// with opens the recording, calls do and closes it.
func (r StoredRecording) with(ctx context.Context, do func(*sajou.Engine) error) (err error) {
	cfg := sajou.Config{ReadOnly: true, NoSnapshots: true}
	dir := r.path
	if r.Kind != KindStore {
		cfg, dir = sajou.Config{FS: vfs.NewMem(), NoSnapshots: true}, "corpus"
	}
	eng, err := sajou.Open(dir, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	switch r.Kind {
	case KindStore:
	case KindRaw:
		err = r.recordRaw(ctx, eng)
	case KindSignals:
		err = r.recordSignals(ctx, eng)
	}
	if err != nil {
		return err
	}
	return do(eng)
}

func (r StoredRecording) recordRaw(ctx context.Context, eng *sajou.Engine) error {
	f, err := os.Open(r.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = ingest.Raw(ctx, eng, f, ingest.RawConfig{File: r.Name})
	return err
}

func (r StoredRecording) recordSignals(ctx context.Context, eng *sajou.Engine) error {
	declarations, err := r.declarations()
	if err != nil {
		return err
	}
	f, err := os.Open(r.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	ses, err := eng.Session(ctx, strings.TrimSuffix(filepath.Base(r.path), signalsSuffix))
	if err != nil {
		return err
	}
	rec, err := ingest.NewRecorder(ctx, ses, ingest.Config{Definitions: declarations, Lenient: true})
	if err != nil {
		return err
	}
	defer rec.Close()
	return rec.All(ctx, ingest.JSONL(f, r.Name, true))
}

// maxDeclarations bounds a file of declarations.
const maxDeclarations = 64 << 20

// declarations reads the files of declarations beside a recording of signals.
func (r StoredRecording) declarations() (all []language.Declaration, err error) {
	folder := filepath.Dir(r.path)
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	catalog := new(language.Catalog)
	for _, file := range files {
		name := file.Name()
		if file.IsDir() || !isRegular(filepath.Join(folder, name)) || !slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(name)) || strings.HasSuffix(name, digestsSuffix) {
			continue
		}
		text, err := readBounded(filepath.Join(folder, name), maxDeclarations)
		if err != nil {
			return nil, err
		}
		declared, next, diagnostics := lint.Read(catalog, name, text)
		if diagnostics.Refused() {
			return nil, fmt.Errorf("corpus: %w", diagnostics.Only(authored.SeverityError).Err(definition.ErrInvalid))
		}
		for _, d := range declared {
			all = append(all, d.Declaration)
		}
		catalog = next
	}
	return all, nil
}

func readDigests(path string) (*sentinel.DigestDocument, error) {
	text, err := readBounded(path, sentinel.MaxDocument)
	if err != nil {
		return nil, err
	}
	d, err := sentinel.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return d, nil
}

// readBounded reads a file that must not be larger than a bound.
func readBounded(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("corpus: %s is not a regular file", filepath.Base(path))
	case info.Size() > most:
		return nil, fmt.Errorf("corpus: %s is larger than %d MiB", filepath.Base(path), most>>20)
	}
	return os.ReadFile(path)
}

// writeAtomically writes a file that appears as a whole or not at all.
func writeAtomically(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(0o644) // a corpus is shared, unlike a store
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
