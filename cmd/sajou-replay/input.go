package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// This file is how commands read the files that they are given. One that cannot
// be read is misuse in each of them; one that holds something else than it
// should is told of by whoever reads it.

// openInput opens a file that is to be read.
func openInput(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	if info.IsDir() {
		return nil, misuse("%s is a directory, and a file is wanted", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	return f, nil
}

func unreadable(name string, err error) error {
	if broken, ok := errors.AsType[*fs.PathError](err); ok {
		err = broken.Err
	}
	if name == "" {
		return misuse("the name of a file is empty")
	}
	return misuse("%s cannot be read: %w", name, err)
}

// input reads a file whole, or stdin where - is its name; shown is what it is
// called in messages. It ends with the context.
func (a *app) input(ctx context.Context, name string, limit int64) (shown string, text []byte, err error) {
	if name == "-" {
		text, err = allOf(newInterruptible(ctx, a.stdin), "stdin", limit)
		return "stdin", text, err
	}
	text, err = readBounded(name, limit)
	return name, text, err
}

// readBounded reads a file whole that has to be no larger than limit bytes.
func readBounded(name string, limit int64) ([]byte, error) {
	f, err := openInput(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return allOf(f, name, limit)
}

func allOf(r io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d MiB", name, limit>>20)
	}
	return data, nil
}
