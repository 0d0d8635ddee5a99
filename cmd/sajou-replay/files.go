package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFile makes a file whole or not at all: what is written goes into a file
// beside it, which takes its name at the end. A crash leaves the old file or
// the new one, and at worst the one beside it.
func writeFile(name string, write func(io.Writer) error) error {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return fail(exitNo, "%s is a directory; name a file in it", name)
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

// beside makes a new file in the directory of name.
func beside(name string) (*os.File, error) {
	for n := 0; ; n++ {
		temp := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d-%d", filepath.Base(name), os.Getpid(), n))
		f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) && n < 100 {
			continue
		}
		if broken, ok := errors.AsType[*fs.PathError](err); ok {
			broken.Path = name // the one that the reader knows
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
