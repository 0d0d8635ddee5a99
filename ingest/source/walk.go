package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

// passedOver are folders that hold many files and no recording.
var passedOver = map[string]bool{".git": true, "node_modules": true}

// stored is a file of a folder or an archive.
type stored struct {
	path     string
	size     int64
	modified time.Time
}

// walk lists the recordings of a folder or an archive. Name is the name of it.
func (o *opening) walk(ctx context.Context, files fs.FS, name string) error {
	o.list.Folder = true
	all, dirs, err := o.files(ctx, files, name)
	if err != nil {
		return err
	}
	left := all
	for _, dir := range dirs {
		// A folder within a recording has none of its files left.
		if below := within(left, dir); len(below) > 0 {
			if l, is := o.folderRecording(files, name, dir, below); is {
				o.list.Recordings = append(o.list.Recordings, l)
				left = slices.DeleteFunc(slices.Clone(left), func(f stored) bool { return inside(f.path, dir) })
			}
		}
	}
	if err := o.fileRecordings(ctx, files, left); err != nil {
		return err
	}
	slices.SortFunc(o.list.Recordings, func(a, b Listed) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(o.list.Others)
	return nil
}

// files returns the regular files and the folders, both sorted by path.
func (o *opening) files(ctx context.Context, files fs.FS, name string) (all []stored, dirs []string, err error) {
	err = fs.WalkDir(files, ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && p == ".":
			return err
		case err != nil:
			o.remark("%s was left out: %v", p, cause(err))
			return nil
		case e.IsDir() && passedOver[e.Name()]:
			return fs.SkipDir
		case e.IsDir():
			dirs = append(dirs, p)
			return nil
		case e.Type()&fs.ModeSymlink != 0:
			o.remark("%s was left out: it is a symbolic link", p)
			return nil
		case !e.Type().IsRegular():
			o.remark("%s was left out: it is no regular file", p)
			return nil
		}
		info, err := e.Info()
		if err != nil {
			o.remark("%s was left out: %v", p, cause(err))
			return nil
		}
		if len(all) == o.config.MaxFiles {
			return fmt.Errorf("%s: %w: at most %d are read; name a folder below it", name, ErrTooManyFiles, o.config.MaxFiles)
		}
		all = append(all, stored{p, info.Size(), info.ModTime()})
		return nil
	})
	slices.SortFunc(all, func(a, b stored) int { return strings.Compare(a.path, b.path) })
	slices.Sort(dirs)
	return all, dirs, err
}

// cause returns an error without the path that a message names already.
func cause(err error) error {
	if broken, ok := errors.AsType[*fs.PathError](err); ok {
		return broken.Err
	}
	return err
}

func inside(p, dir string) bool { return dir == "." || strings.HasPrefix(p, dir+"/") }

// within returns the files below a folder, of a sorted list.
func within(all []stored, dir string) []stored {
	if dir == "." {
		return all
	}
	prefix := dir + "/"
	from, _ := slices.BinarySearchFunc(all, prefix, func(f stored, p string) int { return strings.Compare(f.path, p) })
	to := from
	for to < len(all) && strings.HasPrefix(all[to].path, prefix) {
		to++
	}
	return all[from:to]
}

// folderRecording returns a folder as one recording, if a format recognizes it.
func (o *opening) folderRecording(files fs.FS, name, dir string, below []stored) (Listed, bool) {
	l := Listed{Name: ".", Path: dir, Session: sessionName(dir), FS: sub(files, dir)}
	if dir == "." {
		l.Path, l.Session = name, sessionName(name)
	}
	var paths []string
	for _, f := range below {
		paths = append(paths, strings.TrimPrefix(f.path, dir+"/"))
		l.add(f)
	}
	o.choose(&l, formats.Detect(recording.NewFolderSample(l.Path, paths)))
	return l, len(l.Candidates) > 0
}

// add counts a file of the recording.
func (l *Listed) add(f stored) {
	if f.size < 0 || l.Size < 0 {
		l.Size = -1
	} else {
		l.Size += f.size
	}
	if f.modified.After(l.Modified) {
		l.Modified = f.modified
	}
}

// choose sets the candidates for a recording of a folder or archive.
func (o *opening) choose(l *Listed, candidates []formats.Candidate) {
	if o.config.Format != "" {
		candidates = slices.DeleteFunc(candidates, func(c formats.Candidate) bool { return c.Format.Name != o.config.Format })
	}
	l.Candidates = candidates
	if len(candidates) == 1 {
		l.Format, l.Reason = candidates[0].Format, candidates[0].Reason
	}
}

// fileRecordings lists the files that are recordings. Files that belong to one of
// them are parts of it, not recordings.
func (o *opening) fileRecordings(ctx context.Context, files fs.FS, left []stored) error {
	known := map[string]int{} // the recordings by their main files
	for i, l := range o.list.Recordings {
		known[l.Path] = i
	}
	type part struct {
		file stored
		main string
		of   string // the format
	}
	var parts []part
	one := func(f stored) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		l := Listed{Name: path.Base(f.path), Path: f.path, Session: sessionName(f.path), FS: sub(files, path.Dir(f.path))}
		l.add(f)
		sample, err := sampleOf(files, f.path)
		if err != nil {
			o.remark("%s was left out: %v", f.path, cause(err))
			o.list.Others = append(o.list.Others, f.path)
			return nil
		}
		if o.choose(&l, formats.Detect(sample)); len(l.Candidates) == 0 {
			o.list.Others = append(o.list.Others, f.path)
			return nil
		}
		known[f.path] = len(o.list.Recordings)
		o.list.Recordings = append(o.list.Recordings, l)
		return nil
	}
	for _, f := range left {
		if main, of := mainOf(f.path, left); main != "" {
			parts = append(parts, part{f, main, of})
			continue
		}
		if err := one(f); err != nil {
			return err
		}
	}
	for _, p := range parts {
		i, is := known[p.main]
		if is && slices.ContainsFunc(o.list.Recordings[i].Candidates, func(c formats.Candidate) bool { return c.Format.Name == p.of }) {
			o.list.Recordings[i].add(p.file)
			continue
		}
		if err := one(p.file); err != nil {
			return err
		}
	}
	return nil
}

// mainOf returns the main file to which a file belongs, if it is there, and the format
// that says so.
func mainOf(p string, all []stored) (main, format string) {
	for _, f := range formats.All() {
		if f.PartOf == nil {
			continue
		}
		main := f.PartOf(p)
		if main == "" || main == p {
			continue
		}
		if _, is := slices.BinarySearchFunc(all, main, func(s stored, p string) int { return strings.Compare(s.path, p) }); is {
			return main, f.Name
		}
	}
	return "", ""
}

func sub(files fs.FS, dir string) fs.FS {
	if dir == "." {
		return files
	}
	below, err := fs.Sub(files, dir)
	if err != nil {
		return files // the dir comes from a walk, so it is valid
	}
	return below
}

// single lists one file, which was named itself.
func (o *opening) single(files fs.FS, name, shown string) error {
	sample, err := sampleOf(files, name)
	if err != nil {
		return fmt.Errorf("%s: %w", shown, cause(err))
	}
	info, err := fs.Stat(files, name)
	if err != nil {
		return err
	}
	o.named(Listed{FS: files, Name: name, Path: shown, Session: sessionName(shown), Size: info.Size(), Modified: info.ModTime()}, sample)
	return nil
}

// named lists a recording that was named itself.
func (o *opening) named(l Listed, sample *recording.Sample) {
	if f, known := formats.Named(o.config.Format); known {
		l.Candidates = []formats.Candidate{{Format: f, Reason: "it was named"}}
		l.Format, l.Reason = f, l.Candidates[0].Reason
	} else {
		o.choose(&l, formats.Detect(sample))
	}
	o.list.Recordings = append(o.list.Recordings, l)
}

// sampleOf reads the beginning of a file: the lines that formats look at, or as much as a
// sample may have.
func sampleOf(files fs.FS, name string) (*recording.Sample, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head, whole, err := readHead(file, nil, firstRead)
	if err != nil {
		return nil, err
	}
	if !whole && !hasLines(head) {
		if head, whole, err = readHead(file, head, recording.SampleBytes); err != nil {
			return nil, err
		}
	}
	return recording.NewSample(name, head, whole), nil
}

const (
	firstRead   = 64 << 10
	sampleLines = 20 // that a sample looks at
)

// hasLines reports whether a head has all the lines that are looked at.
func hasLines(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"), []byte("{")) && bytes.Count(head, []byte("\n{")) > sampleLines
}

// readHead reads on behind a head, up to a size. Whole tells that the file has no more.
func readHead(in io.Reader, head []byte, size int) ([]byte, bool, error) {
	head = slices.Grow(head, size-len(head))
	n, err := io.ReadFull(in, head[len(head):size])
	head = head[:len(head)+n]
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return head, true, nil
	}
	return head, false, err
}
