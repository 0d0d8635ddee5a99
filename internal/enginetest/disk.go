package enginetest

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Disk is a disk in memory that can be slow or full.
type Disk struct {
	vfs.FS
	mu   sync.Mutex
	gate chan struct{} // writes wait until it is closed; nil: they do not; guarded by mu
	Full atomic.Bool   // writes fail
	Deaf atomic.Bool   // reads fail

	fault atomic.Pointer[error] // of each write; nil if they succeed
}

// ErrFull is the error of a write while the disk is full.
var ErrFull = errors.New("no space left on device")

// ErrRead is the error of a read while the disk cannot be read.
var ErrRead = errors.New("the disk cannot be read")

// NewDisk returns a disk in memory that works.
func NewDisk() *Disk {
	d := &Disk{}
	d.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && d.Deaf.Load() {
			return ErrRead
		}
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpLock {
			return nil
		}
		d.mu.Lock()
		gate := d.gate
		d.mu.Unlock()
		if gate != nil {
			<-gate
		}
		if d.Full.Load() {
			return ErrFull
		}
		if err := d.fault.Load(); err != nil {
			return *err
		}
		return nil
	}))
	return d
}

// Fail makes all writes fail with an error.
func (d *Disk) Fail(err error) { d.fault.Store(&err) }

// Hold makes the disk slow, until the function is called.
func (d *Disk) Hold() (release func()) {
	gate := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gate = gate
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.gate = nil
		close(gate)
	}
}
