package limit_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server/limit"
)

func gzipOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	require.NoError(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

func zstdOf(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer func() { _ = w.Close() }()
	return w.EncodeAll(data, nil)
}

// coded returns a request with a body in a content coding.
func coded(coding string, body io.Reader) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/x", body)
	if coding != "" {
		r.Header.Set("Content-Encoding", coding)
	}
	return r
}

func expand(t testing.TB, coding string, body io.Reader, most int64) ([]byte, error) {
	t.Helper()
	out, err := limit.Expand(coded(coding, body), most)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(out)
	require.NoError(t, out.Close())
	return data, err
}

func TestExpand(t *testing.T) {
	text := []byte(strings.Repeat("a signal of an agent\n", 1000))
	noise := make([]byte, 3<<20)
	rand.New(rand.NewSource(1)).Read(noise)
	for _, data := range [][]byte{nil, text, noise} {
		for coding, body := range map[string][]byte{
			"": data, "identity": data, "gzip": gzipOf(t, data), "X-GZIP": gzipOf(t, data), " zstd ": zstdOf(t, data),
		} {
			for _, most := range []int64{int64(len(data)), 10 << 20} {
				got, err := expand(t, coding, bytes.NewReader(body), most)
				require.NoError(t, err, coding)
				require.True(t, bytes.Equal(data, got), coding)
			}
			got, err := expand(t, coding, iotest.DataErrReader(iotest.HalfReader(bytes.NewReader(body))), 10<<20)
			require.NoError(t, err, coding)
			require.True(t, bytes.Equal(data, got), coding)
			if len(data) > 0 {
				got, err = expand(t, coding, bytes.NewReader(body), int64(len(data))-1)
				e, ok := errors.AsType[*http.MaxBytesError](err)
				require.True(t, ok, "%s: %v", coding, err)
				assert.Equal(t, int64(len(data))-1, e.Limit)
				assert.Equal(t, len(data)-1, len(got))
			}
		}
	}
	two, err := expand(t, "gzip", bytes.NewReader(append(gzipOf(t, text), gzipOf(t, text)...)), 10<<20)
	require.NoError(t, err)
	assert.Len(t, two, 2*len(text), "a gzip body may have several members")
}

// endless yields a text again and again.
type endless struct {
	text []byte
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.read%len(e.text):])
	e.read += n
	return n, nil
}

// TestAttackBombs shows that a small body that expands to gigabytes ends by a bound after
// some megabytes, and that an endless one does too.
func TestAttackBombs(t *testing.T) {
	zeros := make([]byte, 16<<20)
	for coding, body := range map[string][]byte{"gzip": gzipOf(t, zeros), "zstd": zstdOf(t, zeros)} {
		got, err := expand(t, coding, bytes.NewReader(body), 1<<40)
		require.ErrorIs(t, err, limit.ErrExpands, coding)
		assert.Less(t, len(got), 12<<20, coding) // a little was read ahead
		_, err = expand(t, coding, bytes.NewReader(body), 2<<20)
		require.Error(t, err)

		member := gzipOf(t, make([]byte, 1000))
		if coding == "zstd" {
			member = zstdOf(t, make([]byte, 1000))
		}
		source := &endless{text: member}
		_, err = expand(t, coding, source, 5<<20)
		_, ok := errors.AsType[*http.MaxBytesError](err)
		require.True(t, ok, "%s: %v", coding, err)
		assert.Less(t, source.read, 10<<20)
	}
	// Frames of zstd without content, and members of gzip without content, expand to nothing.
	source := &endless{text: zstdOf(t, nil)}
	if len(source.text) == 0 {
		source.text = []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00}
	}
	_, err := expand(t, "zstd", http.MaxBytesReader(nil, io.NopCloser(source), 1<<20), 5<<20)
	_, ok := errors.AsType[*http.MaxBytesError](err)
	require.True(t, ok, "the bound of the body itself holds: %v", err)
}

func TestAttackDamagedCodings(t *testing.T) {
	text := []byte(strings.Repeat("a signal of an agent\n", 1000))
	for coding, body := range map[string][]byte{"gzip": gzipOf(t, text), "zstd": zstdOf(t, text)} {
		for n := range len(body) {
			_, err := expand(t, coding, bytes.NewReader(body[:n]), 1<<20)
			if n == 0 && coding == "zstd" {
				require.NoError(t, err) // no frame is no content
				continue
			}
			require.ErrorIs(t, err, limit.ErrDamaged, "%s cut at %d", coding, n)
			require.NotErrorIs(t, err, io.EOF)
		}
		for _, tail := range []string{"x", "garbage"} {
			_, err := expand(t, coding, bytes.NewReader(append(bytes.Clone(body), tail...)), 1<<20)
			require.ErrorIs(t, err, limit.ErrDamaged, coding)
		}
		_, err := expand(t, coding, strings.NewReader("not compressed"), 1<<20)
		require.ErrorIs(t, err, limit.ErrDamaged, coding)
		broken := errors.New("the connection broke")
		_, err = expand(t, coding, io.MultiReader(bytes.NewReader(body[:20]), iotest.ErrReader(broken)), 1<<20)
		require.ErrorIs(t, err, broken, "the error of the body counts")
	}
	// Frames that ask for a window of 8 MiB, 16 MiB and 2 GiB.
	for descriptor, want := range map[byte]error{0x68: nil, 0x70: limit.ErrExpands, 0xa8: limit.ErrExpands} {
		_, err := expand(t, "zstd", bytes.NewReader([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, descriptor, 0x01, 0x00, 0x00}), 1<<20)
		require.ErrorIs(t, err, want)
	}
	for _, coding := range []string{"br", "deflate", "gzip, gzip", "gzip,zstd", "identity, gzip", "gzip;q=1", "*", "gziр"} {
		_, err := expand(t, coding, strings.NewReader(""), 1)
		require.ErrorIs(t, err, limit.ErrCoding, coding)
	}
	r := coded("gzip", strings.NewReader(""))
	r.Header.Add("Content-Encoding", "gzip")
	_, err := limit.Expand(r, 1)
	require.ErrorIs(t, err, limit.ErrCoding)
}

// FuzzExpand shows that any body in any coding ends within the bounds.
func FuzzExpand(f *testing.F) {
	text := []byte(strings.Repeat("a signal of an agent\n", 100))
	f.Add("gzip", gzipOf(f, text))
	f.Add("zstd", zstdOf(f, text))
	f.Add("zstd", []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00})
	f.Add("gzip", gzipOf(f, make([]byte, 1<<20)))
	f.Add("", text)
	f.Fuzz(func(t *testing.T, coding string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/x", bytes.NewReader(body))
		r.Header["Content-Encoding"] = []string{coding}
		out, err := limit.Expand(r, 1<<20)
		if err != nil {
			require.ErrorIs(t, err, limit.ErrCoding)
			return
		}
		defer func() { require.NoError(t, out.Close()) }()
		data, err := io.ReadAll(out)
		require.LessOrEqual(t, len(data), 1<<20)
		if err == nil {
			return
		}
		_, long := errors.AsType[*http.MaxBytesError](err)
		require.True(t, long || errors.Is(err, limit.ErrDamaged) || errors.Is(err, limit.ErrExpands), "%v", err)
	})
}
