package source_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/source"
)

const (
	ann = `{"id":"1","type":"thinking","timestamp":1,"source":"a","payload":{"agentId":"ann","content":"hm"}}` + "\n"
	bob = `{"id":"2","type":"thinking","timestamp":2,"source":"a","payload":{"agentId":"bob","content":"oh"}}` + "\n"
)

func gzipOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func zstdOf(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer w.Close()
	return w.EncodeAll(data, nil)
}

func tarOf(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := h.Uname // where the tests put it
		h.Uname, h.Mode = "", 0o600
		if h.Typeflag == tar.TypeReg || h.Typeflag == 0 {
			h.Size = int64(len(content))
		} else {
			content = ""
		}
		require.NoError(t, w.WriteHeader(&h))
		_, err := io.WriteString(w, content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func zipOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		require.NoError(t, err)
		_, err = io.WriteString(f, files[i+1])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(t, os.WriteFile(name, data, 0o600))
	return name
}

func open(t testing.TB, path string, c source.Config) *source.Listing {
	t.Helper()
	l, err := source.Open(t.Context(), path, c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

// shown returns each recording as "PATH SESSION FORMAT", and its text.
func shown(t testing.TB, l *source.Listing) (list []string, texts []string) {
	t.Helper()
	for i := range l.Recordings {
		r := &l.Recordings[i]
		list = append(list, r.Path+" "+r.Session+" "+r.Format.Name)
		text, err := fs.ReadFile(r.FS, r.Name)
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	return list, texts
}

// A recording is the same however it is packed.
func TestPacked(t *testing.T) {
	tarred := tarOf(t, tar.Header{Name: "./in/ann.jsonl", Uname: ann}, tar.Header{Name: "in/bob.jsonl", Uname: bob})
	zipped := zipOf(t, "in/ann.jsonl", ann, `in\bob.jsonl`, bob)
	var both []string
	for _, tt := range []struct {
		name string
		data []byte
		want []string
	}{
		{"ann.jsonl", []byte(ann), []string{"ann.jsonl ann sajou"}},
		{"ann.jsonl.gz", gzipOf(t, []byte(ann)), []string{"ann.jsonl ann sajou"}},
		{"ann.jsonl.zst", zstdOf(t, []byte(ann)), []string{"ann.jsonl ann sajou"}},
		{"x.tar", tarred, nil},
		{"x.tar.gz", gzipOf(t, tarred), nil},
		{"x.tgz", gzipOf(t, tarred), nil},
		{"x.tar.zst", zstdOf(t, tarred), nil},
		{"x.zip", zipped, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			texts := []string{ann}
			if tt.want == nil {
				texts = []string{ann, bob}
				tt.want = []string{"in/ann.jsonl in/ann sajou", "in/bob.jsonl in/bob sajou"}
			}
			temp := t.TempDir()
			l := open(t, write(t, filepath.Join(t.TempDir(), tt.name), tt.data), source.Config{TempDir: temp})
			got, is := shown(t, l)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, texts, is)
			assert.Empty(t, l.Remarks)
			assert.Equal(t, len(texts) > 1, l.Folder)

			// The same as a stream, whose name says nothing.
			l, err := source.Read(t.Context(), "stdin", bytes.NewReader(tt.data), source.Config{TempDir: temp})
			require.NoError(t, err)
			got, is = shown(t, l)
			if len(texts) == 1 {
				tt.want = []string{"stdin stdin sajou"}
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, texts, is)
			require.NoError(t, l.Close())
			left, err := os.ReadDir(temp)
			require.NoError(t, err)
			assert.Empty(t, left, "temporary files are removed")
			both = append(both, tt.name)
		})
	}
	assert.Len(t, both, 8)
}

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	outside := write(t, filepath.Join(t.TempDir(), "secret.jsonl"), []byte(ann))
	write(t, filepath.Join(dir, "b", "ann.jsonl.gz"), gzipOf(t, []byte(ann)))
	write(t, filepath.Join(dir, "bob.jsonl"), []byte(bob))
	write(t, filepath.Join(dir, "notes.txt"), []byte("nothing"))
	write(t, filepath.Join(dir, "broken.json.gz"), []byte("\x1f\x8b\x08broken"))
	write(t, filepath.Join(dir, ".git", "bob.jsonl"), []byte(bob))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link.jsonl")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "links")))
	l := open(t, dir, source.Config{})
	got, texts := shown(t, l)
	assert.Equal(t, []string{"b/ann.jsonl b/ann sajou", "bob.jsonl bob sajou"}, got)
	assert.Equal(t, []string{ann, bob}, texts)
	assert.Equal(t, []string{"broken.json", "notes.txt"}, l.Others)
	assert.Equal(t, []string{
		"link.jsonl was left out: it is a symbolic link",
		"links was left out: it is a symbolic link",
		"broken.json was left out: unexpected EOF",
	}, l.Remarks)

	// A recording has no way out of its folder.
	for _, name := range []string{"link.jsonl", "links/secret.jsonl", "../bob.jsonl", "../../secret.jsonl", outside} {
		for _, r := range l.Recordings {
			_, err := r.FS.Open(name)
			assert.Error(t, err, name)
		}
	}

	// A name that leads to the folder over a link is the user's.
	link := filepath.Join(t.TempDir(), "mine")
	require.NoError(t, os.Symlink(dir, link))
	assert.Len(t, open(t, link, source.Config{}).Recordings, 2)
	link = filepath.Join(t.TempDir(), "today.jsonl")
	require.NoError(t, os.Symlink(outside, link))
	got, texts = shown(t, open(t, link, source.Config{}))
	assert.Equal(t, []string{"today.jsonl today sajou"}, got)
	assert.Equal(t, []string{ann}, texts)
}

func TestFormat(t *testing.T) {
	text := write(t, filepath.Join(t.TempDir(), "a.txt"), []byte("nothing"))
	l := open(t, text, source.Config{})
	require.ErrorIs(t, l.Recordings[0].Problem(), source.ErrUnrecognized)
	assert.ErrorContains(t, l.Recordings[0].Problem(), "a.txt: no known format; name it with --format")
	l = open(t, text, source.Config{Format: formats.Sajou})
	require.NoError(t, l.Recordings[0].Problem())
	assert.Equal(t, formats.Sajou, l.Recordings[0].Format.Name)
	l = open(t, filepath.Dir(text), source.Config{Format: formats.Sajou})
	assert.Empty(t, l.Recordings)
	assert.Equal(t, []string{"a.txt"}, l.Others)

	_, err := source.Open(t.Context(), text, source.Config{Format: "nothing"})
	assert.ErrorContains(t, err, `unknown format "nothing"`)
	_, err = source.Open(t.Context(), filepath.Join(t.TempDir(), "absent"), source.Config{})
	assert.ErrorIs(t, err, fs.ErrNotExist)
	l = open(t, write(t, filepath.Join(t.TempDir(), "empty"), nil), source.Config{})
	assert.ErrorIs(t, l.Recordings[0].Problem(), source.ErrUnrecognized)
}

// Names in archives that lead out, links and devices are left out with their reasons.
func TestArchiveTricks(t *testing.T) {
	data := tarOf(
		t,
		tar.Header{Name: "../up.jsonl", Uname: ann},
		tar.Header{Name: "/root.jsonl", Uname: ann},
		tar.Header{Name: "a/../../b.jsonl", Uname: ann},
		tar.Header{Name: `C:\x.jsonl`, Uname: ann},
		tar.Header{Name: "link.jsonl", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		tar.Header{Name: "hard.jsonl", Typeflag: tar.TypeLink, Linkname: "ann.jsonl"},
		tar.Header{Name: "pipe", Typeflag: tar.TypeFifo},
		tar.Header{Name: "ann.jsonl", Uname: bob},
		tar.Header{Name: "ann.jsonl/below.jsonl", Uname: bob},
		tar.Header{Name: "dir/x.jsonl", Uname: bob},
		tar.Header{Name: "dir", Uname: bob},
		tar.Header{Name: "ann.jsonl", Uname: ann},
	)
	l := open(t, write(t, filepath.Join(t.TempDir(), "x.tar"), data), source.Config{})
	got, texts := shown(t, l)
	assert.Equal(t, []string{"ann.jsonl ann sajou", "dir/x.jsonl dir/x sajou"}, got)
	assert.Equal(t, []string{ann, bob}, texts, "the later file of a name counts")
	const invalid = " was left out: its name leads outside or is not valid"
	assert.Equal(t, []string{
		"../up.jsonl in x" + invalid, "/root.jsonl in x" + invalid, "a/../../b.jsonl in x" + invalid, `C:\x.jsonl in x` + invalid,
		"link.jsonl in x was left out: it is no regular file", "hard.jsonl in x was left out: it is no regular file",
		"pipe in x was left out: it is no regular file", "ann.jsonl/below.jsonl in x was left out: it lies below a file",
		"dir in x was left out: a folder has the same name", "an earlier ann.jsonl in x was left out: a later file has the same name",
	}, l.Remarks)

	// An archive that was cut: what is whole can be read.
	cut := tarOf(t, tar.Header{Name: "ann.jsonl", Uname: ann}, tar.Header{Name: "bob.jsonl", Uname: bob})
	l = open(t, write(t, filepath.Join(t.TempDir(), "cut.tar"), cut[:1536+20]), source.Config{})
	got, _ = shown(t, l)
	assert.Equal(t, []string{"ann.jsonl ann sajou"}, got)
	require.Len(t, l.Remarks, 2)
	assert.Equal(t, "bob.jsonl in cut was left out: the archive ends within it", l.Remarks[0])
	assert.Contains(t, l.Remarks[1], "cut is read up to byte")

	zipped := zipOf(t, "ann.jsonl", ann, "../up.jsonl", ann)
	l = open(t, write(t, filepath.Join(t.TempDir(), "x.zip"), zipped), source.Config{})
	got, _ = shown(t, l)
	assert.Equal(t, []string{"ann.jsonl ann sajou"}, got)
	assert.Equal(t, []string{"../up.jsonl in x" + invalid}, l.Remarks)
}

func TestBounds(t *testing.T) {
	zeros := make([]byte, 66<<20)
	bomb := gzipOf(t, zeros)
	dir := t.TempDir()
	read := func(name string, data []byte, c source.Config) error {
		l, err := source.Open(t.Context(), write(t, filepath.Join(dir, name), data), c)
		if err != nil {
			return err
		}
		defer l.Close()
		_, err = fs.ReadFile(l.Recordings[0].FS, l.Recordings[0].Name)
		return err
	}
	assert.ErrorIs(t, read("a.gz", bomb, source.Config{}), source.ErrExpands, "the ratio")
	assert.NoError(t, read("a.gz", bomb, source.Config{MaxRatio: 2000}))
	assert.ErrorIs(t, read("b.gz", gzipOf(t, zeros[:2<<20]), source.Config{MaxExpanded: 1 << 20}), source.ErrExpands, "the sum")
	assert.ErrorIs(t, read("b.zst", zstdOf(t, zeros[:2<<20]), source.Config{MaxExpanded: 1 << 20}), source.ErrExpands)
	assert.ErrorIs(t, read("c.zip", zipOf(t, "a", string(zeros[:600_000]), "b", string(zeros[:600_000])), source.Config{MaxExpanded: 1 << 20}), source.ErrExpands)
	assert.ErrorIs(t, read("d.zip", zipOf(t, "a", "", "b", "", "c", ""), source.Config{MaxFiles: 2}), source.ErrTooManyFiles)
	three := tarOf(t, tar.Header{Name: "a"}, tar.Header{Name: "b"}, tar.Header{Name: "c"})
	assert.ErrorIs(t, read("d.tar", three, source.Config{MaxFiles: 2}), source.ErrTooManyFiles)
	big := tarOf(t, tar.Header{Name: "a", Uname: strings.Repeat("x", 100_000)})
	assert.ErrorIs(t, read("e.tar.gz", gzipOf(t, big), source.Config{MaxSpool: 50_000}), source.ErrSpool)
	_, err := source.Read(t.Context(), "stdin", bytes.NewReader(big), source.Config{MaxSpool: 50_000})
	assert.ErrorIs(t, err, source.ErrSpool)

	// A file of a zip archive may not be longer than it says.
	lying := zipOf(t, "a.jsonl", strings.Repeat("x", 5000))
	at := bytes.LastIndex(lying, []byte("PK\x01\x02"))
	lying[at+24], lying[at+25] = 10, 0
	l := open(t, write(t, filepath.Join(dir, "f.zip"), lying), source.Config{})
	assert.Empty(t, l.Recordings)
	assert.Len(t, l.Remarks, 1)
	files := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		write(t, filepath.Join(files, name), []byte(ann))
	}
	_, err = source.Open(t.Context(), files, source.Config{MaxFiles: 2})
	assert.ErrorIs(t, err, source.ErrTooManyFiles)
}

// A stream of lines is listed when its first line has come: the sender may be at work.
func TestLiveStream(t *testing.T) {
	in, sender := io.Pipe()
	go func() { _, _ = io.WriteString(sender, ann) }()
	l, err := source.Read(t.Context(), "/dev/fd/63", in, source.Config{})
	require.NoError(t, err)
	defer l.Close()
	r := l.Recordings[0]
	assert.Equal(t, "63", r.Session)
	assert.Equal(t, int64(-1), r.Size)
	long := strings.Repeat(bob, recording.SampleBytes/len(bob)+1)
	go func() {
		_, _ = io.WriteString(sender, bob)
		_, _ = io.WriteString(sender, long)
		_ = sender.Close()
	}()
	// A format may look at the beginning first.
	first, err := r.FS.Open(r.Name)
	require.NoError(t, err)
	head := make([]byte, len(ann)+10)
	_, err = io.ReadFull(first, head)
	require.NoError(t, err)
	assert.Equal(t, (ann + bob)[:len(head)], string(head))
	text, err := fs.ReadFile(r.FS, r.Name)
	require.NoError(t, err)
	assert.True(t, ann+bob+long == string(text))
	_, err = r.FS.Open(r.Name)
	assert.ErrorIs(t, err, source.ErrReadOnce)
}
