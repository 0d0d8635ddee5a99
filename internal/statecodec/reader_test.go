package statecodec_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/internal/statecodec"
)

var errUnknown = errors.New("unknown version")

// Whatever the bytes are, a read takes what is there or fails, and after the
// first failure everything is zero and stays so.
func FuzzReader(f *testing.F) {
	whole := msgp.AppendArrayHeader(nil, 3)
	whole = msgp.AppendInt64(whole, 1)
	whole = msgp.AppendString(whole, "one")
	whole = msgp.AppendArrayHeader(whole, 1)
	whole = msgp.AppendBytes(whole, []byte{1})
	f.Add(whole)
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff, 1}) // an array of four billion
	f.Fuzz(func(t *testing.T, data []byte) {
		r := statecodec.Reader{Rest: data}
		r.Begin(1, 3, errUnknown)
		text := r.Text()
		n := r.Array()
		if n > len(data) {
			t.Fatalf("%d elements in %d bytes", n, len(data))
		}
		for range n {
			r.Bytes()
		}
		err := r.End()
		if err != nil && (r.Int() != 0 || r.Text() != "" || r.Array() != 0 || r.Value() != nil) {
			t.Fatal("a read after a failure gave something")
		}
		if err == nil && len(text)+n > len(data) {
			t.Fatalf("%q and %d elements out of %d bytes", text, n, len(data))
		}
	})
}

func TestReaderFailsOnceAndSaysWhat(t *testing.T) {
	data := msgp.AppendInt64(msgp.AppendArrayHeader(nil, 5), 2)
	r := statecodec.Reader{Rest: data}
	r.Begin(1, 3, errUnknown)
	r.Fail("something else")
	assert.ErrorIs(t, r.End(), errUnknown, "another version")
	for name, read := range map[string]func(*statecodec.Reader){
		"too large a number": func(r *statecodec.Reader) { r.Between(0, 1, "number") },
		"an index too far":   func(r *statecodec.Reader) { r.Below(2, "index") },
		"another kind":       func(r *statecodec.Reader) { r.Text() },
		"bytes left over":    func(*statecodec.Reader) {},
	} {
		r := statecodec.Reader{Rest: msgp.AppendInt64(nil, 2)}
		if read(&r); r.End() == nil {
			t.Errorf("%s: no failure", name)
		}
	}
}
