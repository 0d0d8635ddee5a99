package snapshot

import (
	"io"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// CheckFile reads the structure of a file as Open does.
func CheckFile(path string) error { return checkFile(path) }

// CheckReader reads the structure of a file of that size.
func CheckReader(r io.ReaderAt, size uint64) error {
	return (&checker{file: r, size: size}).check()
}

// Inflate inflates a frame to a declared length.
func Inflate(frame []byte, length int) ([]byte, error) { return inflate(frame, length) }

// Checksum is the checksum of a value.
func Checksum(session string, seq uint64, value []byte) uint64 {
	return checksum(session, eventlog.Seq(seq), value)
}

// Queued returns the number of images that wait to be stored.
func (w *Writer) Queued() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue)
}
