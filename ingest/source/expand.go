package source

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// compression is a way in which a single file is compressed.
type compression uint8

const (
	plain compression = iota
	gzipped
	zstandard
)

// maxWindow is the memory that a zstd stream may ask for.
const maxWindow = 128 << 20

// compressionOf recognizes a compression by the first bytes.
func compressionOf(head []byte) compression {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b, 0x08}):
		return gzipped
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return zstandard
	}
	return plain
}

// compressedSuffixes are the ends of names that an expanded file does without.
var compressedSuffixes = []string{".gz", ".zst"}

// plainName returns the name of a file after it was expanded.
func plainName(name string) string {
	for _, suffix := range compressedSuffixes {
		if short, cut := strings.CutSuffix(name, suffix); cut && short != "" && !strings.HasSuffix(short, "/") {
			return short
		}
	}
	if short, cut := strings.CutSuffix(name, ".tgz"); cut && short != "" {
		return short + ".tar"
	}
	return name
}

// expand returns the bytes of a file as they were before they were compressed, once at
// most. Closing the result does not close the file.
func expand(in io.Reader, config Config) (io.ReadCloser, bool, error) {
	compressed := &counter{r: in}
	buffered := bufio.NewReaderSize(compressed, 64<<10)
	head, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	var out io.ReadCloser
	switch compressionOf(head) {
	case plain:
		return io.NopCloser(buffered), false, nil
	case gzipped:
		if out, err = gzip.NewReader(buffered); err != nil {
			return nil, false, err
		}
	case zstandard:
		d, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, false, err
		}
		out = d.IOReadCloser()
	}
	return &bounded{ReadCloser: out, compressed: compressed, config: config}, true, nil
}

// counter counts what was read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// bounded is an expanded file that ends with an error where it expands too far.
type bounded struct {
	io.ReadCloser
	compressed *counter
	config     Config
	n          int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	if failed := checkExpanded(b.n, b.compressed.n, b.config); failed != nil {
		return 0, failed
	}
	return n, err
}

// checkExpanded checks the bounds of n bytes that come out of compressed ones.
func checkExpanded(n, compressed int64, config Config) error {
	switch {
	case n > config.MaxExpanded:
		return fmt.Errorf("%w: to more than %d MiB", ErrExpands, config.MaxExpanded>>20)
	case n > alwaysExpanded && n/config.MaxRatio > compressed:
		return fmt.Errorf("%w: to more than %d times its size", ErrExpands, config.MaxRatio)
	}
	return nil
}

// expanded is a file system in which each compressed file is seen expanded, under its
// name without .gz or .zst. It opens only regular files and folders, so that it cannot
// block on a pipe.
type expanded struct {
	fs.FS
	config Config
}

// Open implements [fs.FS].
func (e *expanded) Open(name string) (fs.File, error) {
	stored, info, err := e.find(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("neither a regular file nor a folder")}
	}
	file, err := e.FS.Open(stored)
	if err != nil || info.IsDir() {
		return file, err
	}
	r, was, err := expand(file, e.config)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.Join(err, file.Close())}
	}
	size := info.Size()
	if was {
		size = -1
	}
	return &expandedFile{r, file, fileInfo{path.Base(name), size, info}}, nil
}

// find returns the name under which a file is stored.
func (e *expanded) find(name string) (string, fs.FileInfo, error) {
	info, err := fs.Stat(e.FS, name)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return name, info, err
	}
	for _, suffix := range compressedSuffixes {
		if info, err := fs.Stat(e.FS, name+suffix); err == nil && info.Mode().IsRegular() {
			return name + suffix, info, nil
		}
	}
	if short, cut := strings.CutSuffix(name, ".tar"); cut {
		if info, err := fs.Stat(e.FS, short+".tgz"); err == nil && info.Mode().IsRegular() {
			return short + ".tgz", info, nil
		}
	}
	return name, nil, err
}

// Stat implements [fs.StatFS]. The size of a compressed file is -1.
func (e *expanded) Stat(name string) (fs.FileInfo, error) {
	stored, info, err := e.find(name)
	if err != nil || stored == name {
		return info, err
	}
	return fileInfo{path.Base(name), -1, info}, nil
}

// ReadDir implements [fs.ReadDirFS].
func (e *expanded) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(e.FS, name)
	taken := map[string]bool{}
	for _, entry := range entries {
		taken[entry.Name()] = true
	}
	var list []fs.DirEntry
	for _, entry := range entries {
		if short := plainName(entry.Name()); short != entry.Name() && entry.Type().IsRegular() {
			if taken[short] {
				continue // the file stands beside its compressed copy
			}
			taken[short] = true
			entry = renamed{entry, short}
		}
		list = append(list, entry)
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}

// renamed is an entry of a folder whose file is seen expanded.
type renamed struct {
	fs.DirEntry
	name string
}

func (r renamed) Name() string { return r.name }

func (r renamed) Info() (fs.FileInfo, error) {
	info, err := r.DirEntry.Info()
	if err != nil {
		return nil, err
	}
	return fileInfo{r.name, -1, info}, nil
}

// fileInfo is the description of a file with another name and size.
type fileInfo struct {
	name string
	size int64
	fs.FileInfo
}

func (i fileInfo) Name() string { return i.name }
func (i fileInfo) Size() int64  { return i.size }

// expandedFile is an open file that is read through an expander.
type expandedFile struct {
	io.ReadCloser
	file fs.File
	info fs.FileInfo
}

func (f *expandedFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close closes the file beneath too.
func (f *expandedFile) Close() error { return errors.Join(f.ReadCloser.Close(), f.file.Close()) }
