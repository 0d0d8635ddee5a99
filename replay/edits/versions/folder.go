// Package versions reads the versions of a definition file for package edits: the files of
// a folder, or the commits of a git repository.
//
// # Folders
//
// Each file of declarations in the folder is a version, and each folder in it that has such
// files is one of several files. Their order is that of their names, with numbers by their
// value: v2.json comes before v10.json. The endings are .json, .yaml, .yml and .zip. Hidden
// files and others are not looked at.
//
// # Repositories
//
// Each commit that changed a file, or anything in a folder, is a version. [Repository] asks
// the git program, which it starts without a shell, a pager, a prompt or the network. It
// follows the first parents: a merge counts as one edit, so neighbouring versions differ by
// one edit of the main line. Names that the file had before are not followed. Only what was
// committed counts.
//
// # Bounds
//
// There are at most [MaxVersions] versions, and a version has at most [MaxBytes] bytes and
// [MaxFiles] files.
//
// docs/glossary.md has the nouns of all packages.
package versions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/edits"
)

// The bounds of a history.
const (
	MaxVersions = 10_000
	MaxFiles    = 1000
	MaxBytes    = 64 << 20
)

// ErrNoHistory is wrapped by the errors for a place that has no versions, and for names of
// versions that it does not have.
var ErrNoHistory = errors.New("no such version")

// ErrTooMuch is wrapped by the errors for a history beyond the bounds.
var ErrTooMuch = errors.New("too much to read")

// Folder returns the versions in a folder, in the natural order of their names. Reading one
// fails if it was changed since.
func Folder(ctx context.Context, dir string) ([]edits.Version, error) {
	names, err := listed(dir, true)
	if err != nil {
		return nil, err
	}
	var all []edits.Version
	for _, name := range names {
		full := filepath.Join(dir, name)
		content, files, err := readFiles(ctx, full)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			continue // a folder without declarations
		}
		if len(all) == MaxVersions {
			return nil, fmt.Errorf("versions: %w: %s has more than %d versions", ErrTooMuch, dir, MaxVersions)
		}
		all = append(all, edits.Version{Name: name, Content: content, Read: func(ctx context.Context) ([]edits.VersionFile, error) {
			now, files, err := readFiles(ctx, full)
			if err == nil && now != content {
				err = fmt.Errorf("versions: %s was changed during the search; search again", full)
			}
			return files, err
		}})
	}
	return all, nil
}

// listed returns the names in a folder that may have declarations, in natural order.
func listed(dir string, folders bool) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("versions: %w", err)
	}
	var names []string
	for _, e := range list {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, e.Name())) // of the file that a link names
		if err != nil {
			continue // a link to nothing
		}
		if info.IsDir() && folders || info.Mode().IsRegular() && declares(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, natural)
	return names, nil
}

// declares reports whether a file of this name may have declarations.
func declares(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".json", ".yaml", ".yml", ".zip":
		return true
	}
	return false
}

// readFiles reads a file, or the files of a folder, and returns a hash of them.
func readFiles(ctx context.Context, name string) (hash bisect.InputHash, files []edits.VersionFile, err error) {
	paths := []string{name}
	info, err := os.Stat(name)
	if err != nil {
		return hash, nil, fmt.Errorf("versions: %w", err)
	}
	if info.IsDir() {
		names, err := listed(name, false)
		if err != nil {
			return hash, nil, err
		}
		paths = paths[:0]
		for _, n := range names {
			paths = append(paths, filepath.Join(name, n))
		}
	}
	var parts [][]byte
	b := budget{of: name}
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return hash, nil, err
		}
		text, err := b.read(p)
		if err != nil {
			return hash, nil, err
		}
		files = append(files, edits.VersionFile{Name: p, Text: text})
		parts = append(parts, []byte(filepath.Base(p)), text)
	}
	if !info.IsDir() {
		parts = parts[1:] // files of other names and equal contents are equal versions
	}
	return bisect.HashInput(parts...), files, nil
}

// budget is what a version may still have.
type budget struct {
	of    string // the version, for messages
	files int
	bytes int64
}

func (b *budget) take(n int64) error {
	b.files++
	b.bytes += n
	if b.files > MaxFiles || b.bytes > MaxBytes {
		return fmt.Errorf("versions: %w: %s has more than %d files or %d bytes", ErrTooMuch, b.of, MaxFiles, MaxBytes)
	}
	return nil
}

// read reads a file within the budget.
func (b *budget) read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("versions: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, MaxBytes-b.bytes+1))
	if err != nil {
		return nil, fmt.Errorf("versions: %w", err)
	}
	return text, b.take(int64(len(text)))
}

// natural compares names with the numbers in them by their value, so that v2 is before v10.
func natural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		i, j := digits(x), digits(y)
		if i > 0 && j > 0 {
			m, n := strings.TrimLeft(x[:i], "0"), strings.TrimLeft(y[:j], "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(m, n)); c != 0 {
				return c
			}
			x, y = x[i:], y[j:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digits returns the number of digits at the beginning of s.
func digits(s string) int {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// Between returns the versions from one to another, by their names. The empty name stands
// for the first or the last one.
func Between(all []edits.Version, from, to string) ([]edits.Version, error) {
	first, last := 0, len(all)-1
	for _, end := range []struct {
		name string
		at   *int
	}{{from, &first}, {to, &last}} {
		if end.name == "" {
			continue
		}
		*end.at = slices.IndexFunc(all, func(v edits.Version) bool { return v.Name == end.name })
		if *end.at < 0 {
			return nil, fmt.Errorf("versions: %w: there is no version %q; the first is %s, the last is %s", ErrNoHistory, end.name, all[0].Name, all[len(all)-1].Name)
		}
	}
	if first > last {
		return nil, fmt.Errorf("versions: %w: %s does not come before %s", ErrNoHistory, from, to)
	}
	return all[first : last+1], nil
}
