package source

import (
	"archive/tar"
	"archive/zip"
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

	"github.com/klauspost/compress/zstd"
)

// archive opens data as an archive, if it is one. Name is its name for messages.
func (o *opening) archive(ctx context.Context, data *io.SectionReader, name string) (bool, error) {
	head := make([]byte, tarBlock)
	n, err := io.ReadFull(data, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, err
	}
	if _, err := data.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	head = head[:n]
	stem := archiveName(name)
	switch {
	case isZip(head):
		return true, o.zip(ctx, data, stem)
	case isTar(head):
		return true, o.tar(ctx, data, stem)
	case compressionOf(head) == plain:
		return false, nil
	}
	// A compressed tar is expanded into a temporary file, since its files are not read
	// in their order.
	inner, _, err := expand(data, o.config)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	defer inner.Close()
	n, err = io.ReadFull(inner, head[:min(cap(head), tarBlock)])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	head = head[:n]
	if isZip(head) {
		return true, fmt.Errorf("%s is a compressed zip archive; expand it first", name)
	}
	if !isTar(head) {
		return false, nil
	}
	spooled, err := o.spool(ctx, io.MultiReader(bytes.NewReader(head), inner))
	if err != nil {
		return true, fmt.Errorf("%s: %w", name, err)
	}
	return true, o.tar(ctx, spooled, stem)
}

// archiveName returns the name of an archive without its extensions.
func archiveName(name string) string {
	name = plainName(path.Base(name))
	for _, suffix := range []string{".tar", ".zip"} {
		if short, cut := strings.CutSuffix(name, suffix); cut && short != "" {
			return short
		}
	}
	return name
}

const tarBlock = 512

func isZip(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
}

// isTar reports whether a block is the head of a tar archive of POSIX or GNU.
func isTar(head []byte) bool {
	return len(head) == tarBlock && bytes.Equal(head[257:262], []byte("ustar"))
}

// packed is a file system of the regular files of an archive.
type packed struct {
	files map[string]*packedFile
	dirs  map[string]map[string]bool // the names in each folder
}

// packedFile is one file of an archive.
type packedFile struct {
	name     string
	size     int64
	modified time.Time
	open     func() (io.ReadCloser, error)
}

func newPacked() *packed {
	return &packed{files: map[string]*packedFile{}, dirs: map[string]map[string]bool{".": {}}}
}

// laterOne is the reason of [packed.add] for leaving out the earlier file of a name.
const laterOne = "a later file has the same name"

// add takes a file of an archive, or says why one is left out.
func (p *packed) add(f *packedFile) (reason string) {
	name := strings.ReplaceAll(f.name, `\`, "/")
	name = strings.TrimPrefix(name, "./")
	if !fs.ValidPath(name) || name == "." || strings.ContainsRune(name, 0) || len(name) > 1 && name[1] == ':' {
		return "its name leads outside or is not valid"
	}
	if p.dirs[name] != nil {
		return "a folder has the same name"
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if p.files[dir] != nil {
			return "it lies below a file"
		}
	}
	if p.files[name] != nil {
		reason = laterOne
	}
	f.name = name
	p.files[name] = f
	for at := name; at != "."; at = path.Dir(at) {
		dir := path.Dir(at)
		if p.dirs[dir] == nil {
			p.dirs[dir] = map[string]bool{}
		}
		p.dirs[dir][path.Base(at)] = true
	}
	return reason
}

// Open implements [fs.FS].
func (p *packed) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if f := p.files[name]; f != nil {
		in, err := f.open()
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return &openPacked{in, f}, nil
	}
	if p.dirs[name] != nil {
		return &packedDir{fs: p, name: name}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadDir implements [fs.ReadDirFS].
func (p *packed) ReadDir(name string) ([]fs.DirEntry, error) {
	names, is := p.dirs[name]
	if !is {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	var list []fs.DirEntry
	for base := range names {
		list = append(list, fs.FileInfoToDirEntry(p.info(path.Join(name, base))))
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

func (p *packed) info(name string) fs.FileInfo {
	if f := p.files[name]; f != nil {
		return packedInfo{path.Base(name), f.size, 0o400, f.modified}
	}
	return packedInfo{path.Base(name), 0, fs.ModeDir | 0o500, time.Time{}}
}

// openPacked is an open file of an archive.
type openPacked struct {
	io.ReadCloser
	file *packedFile
}

func (f *openPacked) Stat() (fs.FileInfo, error) {
	return packedInfo{path.Base(f.file.name), f.file.size, 0o400, f.file.modified}, nil
}

// packedDir is an open folder of an archive.
type packedDir struct {
	fs   *packed
	name string
	read bool
}

func (d *packedDir) Stat() (fs.FileInfo, error) { return d.fs.info(d.name), nil }
func (d *packedDir) Close() error               { return nil }

func (d *packedDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("is a folder")}
}

// ReadDir implements [fs.ReadDirFile]; it returns all entries at once.
func (d *packedDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if d.read {
		if n > 0 {
			return nil, io.EOF
		}
		return nil, nil
	}
	d.read = true
	return d.fs.ReadDir(d.name)
}

type packedInfo struct {
	name     string
	size     int64
	mode     fs.FileMode
	modified time.Time
}

func (i packedInfo) Name() string       { return i.name }
func (i packedInfo) Size() int64        { return i.size }
func (i packedInfo) Mode() fs.FileMode  { return i.mode }
func (i packedInfo) ModTime() time.Time { return i.modified }
func (i packedInfo) IsDir() bool        { return i.mode.IsDir() }
func (i packedInfo) Sys() any           { return nil }

// zip lists the files of a zip archive.
func (o *opening) zip(ctx context.Context, data *io.SectionReader, name string) error {
	r, err := zip.NewReader(data, data.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(r.File) > o.config.MaxFiles {
		return fmt.Errorf("%s: %w: %d, at most %d are read", name, ErrTooManyFiles, len(r.File), o.config.MaxFiles)
	}
	r.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor(zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxWindow), zstd.WithDecoderLowmem(true)))
	files := newPacked()
	var total uint64
	for _, f := range r.File {
		if f.Mode().IsDir() {
			continue
		}
		if reason := zipRefusal(f); reason != "" {
			o.leftOut(f.Name, name, reason)
			continue
		}
		// Files of a zip archive can share their bytes, so the sum counts.
		if total += f.UncompressedSize64; f.UncompressedSize64 > 1<<62 || total > 1<<62 {
			total = 1 << 62
		}
		if err := checkExpanded(int64(total), data.Size(), o.config); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		open := func() (io.ReadCloser, error) {
			in, err := f.Open()
			if err != nil {
				return nil, err
			}
			return &declared{in, int64(f.UncompressedSize64)}, nil
		}
		o.leftOut(f.Name, name, files.add(&packedFile{f.Name, int64(f.UncompressedSize64), f.Modified, open}))
	}
	return o.walk(ctx, &expanded{files, o.config}, name)
}

// leftOut remarks on a file of an archive that was left out, if there is a reason.
func (o *opening) leftOut(file, archive, reason string) {
	switch reason {
	case "":
	case laterOne:
		o.remark("an earlier %s in %s was left out: %s", file, archive, reason)
	default:
		o.remark("%s in %s was left out: %s", file, archive, reason)
	}
}

func zipRefusal(f *zip.File) string {
	switch {
	case !f.Mode().IsRegular():
		return "it is no regular file"
	case f.Flags&1 != 0:
		return "it is encrypted"
	}
	return ""
}

// declared is a file of an archive that ends with an error behind its declared size.
type declared struct {
	io.ReadCloser
	left int64
}

func (d *declared) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if d.left -= int64(n); d.left < 0 {
		return 0, fmt.Errorf("%w: beyond the size that the archive declares", ErrExpands)
	}
	return n, err
}

// tar lists the files of a tar archive.
func (o *opening) tar(ctx context.Context, data *io.SectionReader, name string) error {
	// A tar.Reader skips the contents of files by seeking, and reads whole blocks, so the
	// position after a header is that of the file.
	r := tar.NewReader(data)
	files := newPacked()
	for n := 0; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if n == 0 {
				return fmt.Errorf("%s: %w", name, err)
			}
			// What stands before a broken header is whole.
			o.remark("%s is read up to byte %d only: %v", name, position(data), err)
			break
		}
		if n >= o.config.MaxFiles {
			return fmt.Errorf("%s: %w: at most %d are read", name, ErrTooManyFiles, o.config.MaxFiles)
		}
		if h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		at := position(data)
		reason := tarRefusal(h)
		if reason == "" && h.Size > data.Size()-at {
			reason = "the archive ends within it"
		}
		if reason == "" {
			open := func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(data, at, h.Size)), nil }
			reason = files.add(&packedFile{h.Name, h.Size, h.ModTime, open})
		}
		o.leftOut(h.Name, name, reason)
	}
	return o.walk(ctx, &expanded{files, o.config}, name)
}

func position(data *io.SectionReader) int64 {
	at, _ := data.Seek(0, io.SeekCurrent)
	return at
}

func tarRefusal(h *tar.Header) string {
	if h.Typeflag != tar.TypeReg {
		return "it is no regular file"
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return "it is a sparse file"
		}
	}
	return ""
}

// IsPacked reports whether a file that begins with head is compressed or an archive.
func IsPacked(head []byte) bool {
	return compressionOf(head) != plain || isZip(head) || isTar(head)
}
