package record

import (
	"bytes"
	"io"
	"net/http"
	"sync"

	"github.com/sajou-dev/sajou-go/server/limit"
)

// buffers keeps the space of bodies, which no signal refers to.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxKept is the largest buffer that is kept for later bodies.
const maxKept = 256 << 10

// readBody reads the body of a request whole, without its coding. The bytes are valid until
// release is called.
func readBody(r *http.Request, most int64) (body []byte, release func(), err error) {
	if r.ContentLength > most {
		return nil, nil, &http.MaxBytesError{Limit: most}
	}
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	release = func() {
		if b.Cap() <= maxKept {
			buffers.Put(b)
		}
	}
	if r.ContentLength >= 0 && len(r.Header["Content-Encoding"]) == 0 {
		_, err = b.ReadFrom(r.Body) // which has the bytes of its length, at most
	} else {
		var src io.ReadCloser
		if src, err = limit.Expand(r, most); err == nil {
			_, err = b.ReadFrom(src)
			_ = src.Close()
		}
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return b.Bytes(), release, nil
}
