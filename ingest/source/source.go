// Package source opens what a user names as a recording: a file, a folder, an archive or
// a stream, and lists the recordings in it with their formats.
//
// # What is opened
//
//	FILE      one recording, also if it is compressed (.gz, .zst)
//	ARCHIVE   .zip, .tar, .tar.gz, .tar.zst: as a folder
//	FOLDER    each recording in it, also below; see [Listing]
//	a reader  as a file or an archive, see [Read]; standard input, for example
//
// Compression and archives are recognized by their first bytes, not by their names.
//
// # What a recording sees
//
// The files of a recording are an [fs.FS] that ends at the folder of its main file.
// A folder is opened as an [os.Root], so that no name in a recording and no symbolic
// link leads out of it. Of archives, only regular files with names that stay inside are
// taken. What is left out is listed in [Listing.Remarks].
//
// # Bounds
//
// What comes out of compressed data is bounded by [Config.MaxRatio] and
// [Config.MaxExpanded], the files of a folder or archive by [Config.MaxFiles], and a temporary
// file by [Config.MaxSpool]. A temporary file is encrypted with a key that is only in
// memory, readable by its owner alone, and removed by [Listing.Close].
package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

// The defaults of [Config].
const (
	DefaultMaxFiles    = 100_000
	DefaultMaxRatio    = 250
	DefaultMaxExpanded = 64 << 30
	DefaultMaxSpool    = 8 << 30
)

// alwaysExpanded is how far compressed data may expand whatever its ratio: short files of
// repeated text compress well.
const alwaysExpanded = 64 << 20

// The errors of bounds. They name what was exceeded.
var (
	ErrTooManyFiles = errors.New("too many files")
	ErrExpands      = errors.New("the compressed data expands too far")
	ErrSpool        = errors.New("the data does not fit into a temporary file")
)

// ErrUnrecognized reports data of which no format recognizes anything.
var ErrUnrecognized = errors.New("no known format")

// Config are the choices and bounds of [Open] and [Read]. Zero values mean the defaults.
type Config struct {
	// Format is the name of the format of the recordings. Empty means that it is recognized.
	// A file that is named itself is taken for that format; of a folder or an
	// archive, the files that can have it.
	Format string

	MaxFiles    int   // of a folder or archive
	MaxRatio    int64 // of expanded to compressed bytes, beyond 64 MiB
	MaxExpanded int64 // bytes that come out of one compressed file or archive
	MaxSpool    int64 // bytes of one temporary file
	TempDir     string
}

func (c Config) withDefaults() Config {
	c.MaxFiles = cmp.Or(c.MaxFiles, DefaultMaxFiles)
	c.MaxRatio = cmp.Or(c.MaxRatio, DefaultMaxRatio)
	c.MaxExpanded = cmp.Or(c.MaxExpanded, DefaultMaxExpanded)
	c.MaxSpool = cmp.Or(c.MaxSpool, DefaultMaxSpool)
	return c
}

// Listed is one recording, or a file that is none.
type Listed struct {
	// FS and Name are what [recording.Format.Open] takes. FS has the folder of the
	// recording's main file as its root; Name is the name of that file, or "." for a
	// recording that is a folder. So they do not depend on where the recording lies.
	FS   fs.FS
	Name string

	// Path is where the recording lies in what was opened, with slashes; for messages.
	Path string

	// Session is the suggested name of the session: the path without extensions. It depends
	// on what was named, not on the folders above it.
	Session string

	// Candidates are the formats that the recording may have. Format and Reason are set
	// if there is one only.
	Candidates []formats.Candidate
	Format     recording.Format
	Reason     string

	Size     int64 // bytes of its files, expanded; -1 if that is not known
	Modified time.Time
}

// Recognized reports whether the format of the recording is known.
func (l *Listed) Recognized() bool { return len(l.Candidates) == 1 }

// Problem returns why the format of the recording is not known: an
// [ErrUnrecognized], or an error that names the candidates. It is nil if the recording is recognized.
func (l *Listed) Problem() error {
	switch len(l.Candidates) {
	case 0:
		return fmt.Errorf("%s: %w; name it with --format", l.Path, ErrUnrecognized)
	case 1:
		return nil
	}
	return fmt.Errorf("%s may be %s; name it with --format", l.Path, formats.Describe(l.Candidates))
}

// Listing is what was opened. Its recordings can be read until it is closed.
type Listing struct {
	// Folder reports whether a folder or an archive was opened, which may hold any number
	// of recordings.
	Folder bool

	// Recordings are in the order of their paths. Those of a folder or archive are
	// recognized or have several candidates; a file that was named itself is always listed.
	Recordings []Listed

	// Others are the paths of the files of a folder or archive that no format recognizes
	// and that belong to no recording.
	Others []string

	// Remarks tell what was left out of a folder or archive, and why.
	Remarks []string

	closers []io.Closer
}

// Close releases the files. The recordings can not be read any more.
func (l *Listing) Close() error {
	var err error
	for i := len(l.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, l.closers[i].Close())
	}
	l.closers = nil
	return err
}

// Open opens a file, a folder or an archive by its path. The path may lead over symbolic
// links; what lies below it may not lead out. A path that is neither a regular file nor
// a folder is refused: the caller opens it and calls [Read].
func Open(ctx context.Context, path string, config Config) (*Listing, error) {
	if err := checkFormat(config.Format); err != nil {
		return nil, err
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if target, err = filepath.Abs(target); err != nil {
		return nil, err
	}
	info, err := os.Stat(target)
	if err != nil {
		return nil, err
	}
	o := &opening{config: config.withDefaults(), list: &Listing{}}
	switch {
	case info.IsDir():
		err = o.folder(ctx, target)
	case info.Mode().IsRegular():
		err = o.file(ctx, target, filepath.Base(path))
	default:
		err = fmt.Errorf("%s is neither a regular file nor a folder", path)
	}
	return o.result(err)
}

// Read opens a stream: standard input, or a named pipe. Name is its name for messages and
// for the session. An archive is copied into a temporary file first, and so is a
// recording whose format cannot be read by lines; one that can be is read
// from the stream, once.
func Read(ctx context.Context, name string, in io.Reader, config Config) (*Listing, error) {
	if err := checkFormat(config.Format); err != nil {
		return nil, err
	}
	o := &opening{config: config.withDefaults(), list: &Listing{}}
	return o.result(o.stream(ctx, streamName(name), in))
}

func checkFormat(name string) error {
	if name == "" {
		return nil
	}
	if _, known := formats.Named(name); !known {
		return fmt.Errorf("unknown format %q; the formats are %v", name, formats.Names())
	}
	return nil
}

// opening is the work of Open and Read.
type opening struct {
	config Config
	list   *Listing
}

func (o *opening) result(err error) (*Listing, error) {
	if err != nil {
		return nil, errors.Join(err, o.list.Close())
	}
	return o.list, nil
}

func (o *opening) keep(c io.Closer) { o.list.closers = append(o.list.closers, c) }

func (o *opening) remark(format string, args ...any) {
	const most = 100
	switch n := len(o.list.Remarks); {
	case n < most:
		o.list.Remarks = append(o.list.Remarks, fmt.Sprintf(format, args...))
	case n == most:
		o.list.Remarks = append(o.list.Remarks, "further remarks were left out")
	}
}

// root opens a folder as a root that nothing below it leaves.
func (o *opening) root(dir string) (fs.FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	o.keep(root)
	return root.FS(), nil
}

func (o *opening) folder(ctx context.Context, dir string) error {
	files, err := o.root(dir)
	if err != nil {
		return err
	}
	return o.walk(ctx, &expanded{files, o.config}, filepath.Base(dir))
}

// file opens a regular file. Its folder is the root: some formats have further
// files beside the main one.
func (o *opening) file(ctx context.Context, path, shown string) error {
	dir, base := filepath.Split(path)
	files, err := o.root(dir)
	if err != nil {
		return err
	}
	file, err := files.Open(base)
	if err != nil {
		return err
	}
	o.keep(file)
	info, err := file.Stat()
	if err != nil {
		return err
	}
	at, ok := file.(io.ReaderAt)
	if !ok {
		return fmt.Errorf("%s cannot be read at an offset", shown)
	}
	isArchive, err := o.archive(ctx, io.NewSectionReader(at, 0, info.Size()), shown)
	if isArchive || err != nil {
		return err
	}
	// A symbolic link gives the recording its name, but does not change what it is.
	return o.single(&expanded{files, o.config}, plainName(base), plainName(shown))
}
