package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// An input file that cannot be read is misuse in every command. The command that
// parses a file reports mistakes in its contents.

// OpenInput opens an input file. Opening a named pipe waits for its writer, and
// reading it for data; both end with the context.
func OpenInput(ctx context.Context, name string) (io.ReadCloser, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, Unreadable(name, err)
	}
	if info.IsDir() || info.Mode().IsRegular() {
		return OpenFile(name)
	}
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened)
	left := make(chan struct{})
	go func() {
		f, err := OpenFile(name)
		select {
		case done <- opened{f, err}:
		case <-left:
			if err == nil {
				_ = f.Close()
			}
		}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		return &pipe{newInterruptible(ctx, o.f), o.f}, nil
	case <-ctx.Done():
		close(left) // the goroutine ends with the process, or when a writer opens the pipe
		return nil, ctx.Err()
	}
}

// OpenStdin returns stdin as an input whose reads end with ctx. Closing it does
// nothing.
func (a *App) OpenStdin(ctx context.Context) io.ReadCloser {
	return &pipe{newInterruptible(ctx, a.Stdin), io.NopCloser(nil)}
}

// pipe is an input whose reads may block.
type pipe struct {
	*interruptible
	io.Closer
}

// OpenFile opens an input file. Unlike [OpenInput] it may block forever.
func OpenFile(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, Unreadable(name, err)
	}
	if info.IsDir() {
		return nil, Misuse("%s is a directory; name a file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, Unreadable(name, err)
	}
	return f, nil
}

// Unreadable returns the error for an input file that cannot be read.
func Unreadable(name string, err error) error {
	if broken, ok := errors.AsType[*fs.PathError](err); ok {
		err = broken.Err
	}
	if name == "" {
		return Misuse("the name of a file is empty")
	}
	return Misuse("%s cannot be read: %w", name, err)
}

// ReadInput reads a file, or stdin if name is -. Shown is its name for messages. The
// read ends with the context.
func (a *App) ReadInput(ctx context.Context, name string, limit int64) (shown string, text []byte, err error) {
	if name == "-" {
		text, err = readAll(newInterruptible(ctx, a.Stdin), "stdin", limit)
		return "stdin", text, err
	}
	text, err = ReadFile(ctx, name, limit)
	return name, text, err
}

// ReadFile reads a file of at most limit bytes.
func ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	f, err := OpenInput(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, name, limit)
}

func readAll(r io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than the limit of %d MiB", name, limit>>20)
	}
	return data, nil
}

// Interruptibly runs work, and returns early if ctx ends. The work then goes on
// until the process exits, so the caller must not read its results.
func Interruptibly(ctx context.Context, work func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// interruptible reads from r until ctx ends. A blocked read of a terminal or a pipe
// cannot be cancelled, so each read has a goroutine. The goroutine that is blocked
// when ctx ends is left behind; it ends with the process or at the next byte.
type interruptible struct {
	ctx     context.Context // of the command; Read receives none
	r       io.Reader
	done    chan readResult // holds one, so that its sender never waits
	reading bool
	left    []byte // read by the goroutine, not yet returned by Read
	err     error
}

type readResult struct {
	data []byte
	err  error
}

func newInterruptible(ctx context.Context, r io.Reader) *interruptible {
	return &interruptible{ctx: ctx, r: r, done: make(chan readResult, 1)}
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	if len(i.left) == 0 && i.err == nil {
		if !i.reading {
			i.reading = true
			go func() {
				b := make([]byte, 64<<10)
				n, err := i.r.Read(b)
				i.done <- readResult{b[:n], err}
			}()
		}
		select {
		case got := <-i.done:
			i.reading, i.left, i.err = false, got.data, got.err
		case <-i.ctx.Done():
			return 0, i.ctx.Err()
		}
	}
	n := copy(p, i.left)
	i.left = i.left[n:]
	if len(i.left) == 0 && i.err != nil {
		return n, i.err
	}
	return n, nil
}
