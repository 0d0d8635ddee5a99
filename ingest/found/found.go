package found

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/source"
)

// Found is a recording that was found. It has not been read.
type Found struct {
	Tool     string    // that keeps recordings at the place; the format if the place was named
	Path     string    // of the file or folder, for [source.Open]
	Modified time.Time // of the file
	Size     int64     // bytes of the file; of a folder, those of its main file
}

// maxFound bounds the recordings of one place.
const maxFound = 100_000

// List returns the recordings at places, newest first; of equal times, in the order of the
// paths. Places that do not exist have none. Remarks tell what could not be looked at.
// The error is that of the context.
func List(ctx context.Context, places []Folder) (list []Found, remarks []string, err error) {
	for _, place := range places {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		there, err := place.list()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			remarks = append(remarks, fmt.Sprintf("%s was not looked at: %v", place.Dir, err))
		}
		list = append(list, there...)
	}
	return sorted(list), remarks, nil
}

// Below returns the recordings in folders that a user names, which may be of any format,
// as [List] does. It reads the beginning of every file there.
func Below(ctx context.Context, dirs []string, config source.Config) (list []Found, remarks []string, err error) {
	for _, dir := range dirs {
		listing, err := source.Open(ctx, dir, config)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			remarks = append(remarks, fmt.Sprintf("%s was not looked at: %v", dir, err))
			continue
		}
		for i := range listing.Recordings {
			r := &listing.Recordings[i]
			if len(r.Candidates) == 0 {
				continue
			}
			at := pathOf(dir, r)
			if at == "" {
				remarks = append(remarks, fmt.Sprintf("%s in %s was left out: it lies in an archive", r.Path, dir))
				continue
			}
			list = append(list, Found{Tool: cmp.Or(r.Format.Title, "several formats"), Path: at, Modified: r.Modified, Size: max(r.Size, 0)})
		}
		if err := listing.Close(); err != nil {
			remarks = append(remarks, fmt.Sprintf("%s: %v", dir, err))
		}
	}
	return sorted(list), remarks, nil
}

// pathOf returns the path of a recording in a folder that was named, or "" if it has none.
func pathOf(dir string, r *source.Listed) string {
	at := filepath.Join(dir, filepath.FromSlash(r.Path))
	for _, suffix := range []string{"", ".gz", ".zst"} { // a compressed file is listed without it
		if _, err := os.Stat(at + suffix); err == nil {
			return at + suffix
		}
	}
	// The folder itself, or the file, is the recording.
	if info, err := os.Stat(dir); err == nil && (r.Name == "." || info.Mode().IsRegular()) && !strings.Contains(r.Path, "/") {
		return dir
	}
	return ""
}

func sorted(list []Found) []Found {
	slices.SortFunc(list, func(a, b Found) int {
		return cmp.Or(b.Modified.Compare(a.Modified), strings.Compare(a.Path, b.Path))
	})
	return slices.CompactFunc(list, func(a, b Found) bool { return a.Path == b.Path })
}

// list returns the recordings at one place.
func (f *Folder) list() ([]Found, error) {
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files := root.FS()
	names, err := fs.Glob(files, f.Pattern)
	if err != nil {
		return nil, err
	}
	var list []Found
	for _, name := range names {
		if not, err := path.Match(f.Not, path.Base(name)); not || err != nil {
			continue
		}
		// Lstat: a symbolic link is not followed, and a pipe not opened.
		info, err := root.Lstat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		at := name
		for range f.Up {
			at = path.Dir(at)
		}
		if len(list) == maxFound {
			return list, fmt.Errorf("it has more than %d recordings", maxFound)
		}
		list = append(list, Found{Tool: f.Tool, Path: filepath.Join(f.Dir, filepath.FromSlash(at)), Modified: info.ModTime(), Size: info.Size()})
	}
	return list, nil
}
