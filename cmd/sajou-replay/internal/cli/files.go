package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile writes a file completely or not at all: it writes a temporary file in
// the same directory and renames it. A crash leaves the old file or the new one,
// and at worst the temporary file.
func WriteFile(name string, write func(io.Writer) error) error {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return Fail(ExitNo, "%s is a directory; name a file in it", name)
	case err == nil && !info.Mode().IsRegular():
		return writeThrough(name, write) // a pipe or a device cannot be replaced
	}
	f, err := beside(name)
	if err != nil {
		return err
	}
	if info != nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = writeTo(f, write)
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// beside creates a temporary file in the directory of name.
func beside(name string) (*os.File, error) {
	for n := 0; ; n++ {
		temp := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d-%d", filepath.Base(name), os.Getpid(), n))
		f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) && n < 100 {
			continue
		}
		if broken, ok := errors.AsType[*fs.PathError](err); ok {
			// The user gave name, and does not know the temporary file.
			return nil, fmt.Errorf("cannot write %s: %w", name, broken.Err)
		}
		return f, err
	}
}

func writeThrough(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(writeTo(f, write), f.Close())
}

func writeTo(w io.Writer, write func(io.Writer) error) error {
	b := bufio.NewWriterSize(w, 64<<10)
	if err := write(b); err != nil {
		return err
	}
	return b.Flush()
}

// WritePicture writes one picture to a file, or to stdout if name is -.
func (a *App) WritePicture(name string, write func(io.Writer) error) error {
	if name == "-" {
		return writeTo(a.Stdout, write)
	}
	if err := HasDirectory(name); err != nil {
		return err
	}
	return WriteFile(name, write)
}

// MakeDirectory creates a directory for output, with its parents.
func MakeDirectory(name string) error {
	err := os.MkdirAll(name, 0o777)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return Fail(ExitNo, "cannot create the directory %s: %w", name, e.Err)
	}
	return err
}

// HasDirectory checks that the directory of a file exists.
func HasDirectory(name string) error {
	switch info, err := os.Stat(filepath.Dir(name)); {
	case errors.Is(err, fs.ErrNotExist):
		return Fail(ExitNo, "cannot write %s: there is no directory %s; create it first", name, filepath.Dir(name))
	case err == nil && !info.IsDir():
		return Fail(ExitNo, "cannot write %s: %s is not a directory", name, filepath.Dir(name))
	}
	return nil
}
