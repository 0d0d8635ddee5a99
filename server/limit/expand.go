package limit

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// ErrCoding is wrapped by the errors about a content coding that is not supported.
var ErrCoding = errors.New("unsupported content coding")

// ErrDamaged is wrapped by the errors about a body that its content coding cannot have.
var ErrDamaged = errors.New("the compressed body is damaged")

// ErrIncomplete is wrapped by the errors about a body that did not arrive whole, or not in
// the form of HTTP.
var ErrIncomplete = errors.New("the body did not arrive whole")

// ErrExpands is wrapped by the error about a body that expands to far more than it has.
var ErrExpands = errors.New("the body expands too much")

// The bounds of an expanded body beside the one of its bytes.
const (
	maxRatio = 200     // bytes of the result for each byte of the body, beyond
	freeSize = 1 << 20 // these bytes of the result
	window   = 8 << 20 // memory that a body in zstd may ask for
)

// Expand returns the body of a request without its content coding: gzip, zstd or none.
// The caller closes it. The result has at most maxBytes; beyond them Read returns an
// [*http.MaxBytesError]. Beyond 1 MiB it has at most 200 times the bytes of the body that
// were read for it; else Read returns an error that wraps [ErrExpands]. An error about
// the coding wraps [ErrCoding], one about the bytes of the body [ErrDamaged], and errors
// of the body itself are returned as they are.
func Expand(r *http.Request, maxBytes int64) (io.ReadCloser, error) {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ",")))
	in := &countingReader{r: r.Body}
	e := &expanded{in: in, left: maxBytes, max: maxBytes}
	switch coding {
	case "", "identity":
		e.out, e.plain = in, true
	case "gzip", "x-gzip":
		// A gzip reader reads the header of the body at once, so it is made at the
		// first Read.
		e.open = func() (io.Reader, error) { return gzip.NewReader(in) }
	case "zstd":
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(window))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		e.out, e.end = d, d.Close
	default:
		return nil, fmt.Errorf("%w: %.40q; use gzip, zstd or none", ErrCoding, coding)
	}
	e.body = r.Body
	return e, nil
}

// countingReader counts what was read of a body, and keeps the body's own error apart
// from those of the coding.
type countingReader struct {
	r   io.Reader
	n   int64
	err error // of r; nil before, and at the end
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// expanded is the body without its coding.
type expanded struct {
	body  io.Closer
	in    *countingReader
	open  func() (io.Reader, error) // makes out; nil if it is made
	out   io.Reader
	end   func() // ends out; nil if nothing has to be ended
	plain bool   // there is no coding
	left  int64  // bytes of the result that may follow
	max   int64
	made  int64 // bytes of the result
	err   error // sticks
}

func (e *expanded) Read(p []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	n, err := e.read(p)
	e.err = err
	return n, err
}

func (e *expanded) read(p []byte) (int, error) {
	if e.open != nil {
		out, err := e.open()
		if err != nil {
			return 0, e.explained(err)
		}
		e.out, e.open = out, nil
	}
	// One byte beyond the bound tells a result of the bound from a longer one.
	if int64(len(p)) > e.left+1 {
		p = p[:e.left+1]
	}
	n, err := e.out.Read(p)
	if int64(n) > e.left {
		return int(e.left), &http.MaxBytesError{Limit: e.max}
	}
	e.left -= int64(n)
	e.made += int64(n)
	if !e.plain && e.made > freeSize && e.made > maxRatio*e.in.n {
		return n, fmt.Errorf("%w: %d bytes became more than %d; send it in parts, or with less compression", ErrExpands, e.in.n, e.made)
	}
	if err != nil {
		err = e.explained(err)
	}
	return n, err
}

// explained returns the error of the reading as [Expand] describes it.
func (e *expanded) explained(err error) error {
	switch {
	case e.in.err != nil:
		return e.in.err
	case e.plain, errors.Is(err, io.EOF) && e.open == nil:
		return err
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
		return fmt.Errorf("%w: %w", ErrExpands, err)
	}
	return fmt.Errorf("%w: %v", ErrDamaged, err) // not the end of the body, even where the coding says so
}

func (e *expanded) Close() error {
	if e.end != nil {
		e.end()
	}
	return e.body.Close()
}
