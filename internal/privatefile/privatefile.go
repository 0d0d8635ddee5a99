// Package privatefile writes and reads files that only their owner can read.
package privatefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// Write writes a file, completely or not at all: a crash leaves the old file or the new
// one, and at worst a temporary file beside it.
func Write(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Read reads a file with a secret: a regular file of at most most bytes whose mode gives
// its group and all others nothing, as 0600 does. This is the one rule for every file of
// tokens. Windows has no such mode; there the rights of the directory count. The error of
// a file that is not there is an [os.ErrNotExist]. Info is that of the file that was read.
func Read(name string, most int64) (data []byte, info os.FileInfo, err error) {
	// A named pipe would block at opening, so the kind of the file is read first.
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err = f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, nil, fmt.Errorf("others may read or write %s; restrict it with: chmod 600 %s", name, name)
	}
	data, err = io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, nil, fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return data, info, err
}

// maxToken bounds a file with a token, in bytes.
const maxToken = 16 << 10

// Token returns the token that a client sends to a server: the content of a file, if one is
// named, else that of the variable SAJOU_TOKEN, else the content of the file that
// SAJOU_TOKEN_FILE names. Without any it is empty.
func Token(file string) (string, error) {
	where := ""
	if file == "" {
		if token := os.Getenv("SAJOU_TOKEN"); token != "" {
			return token, nil
		}
		if file = os.Getenv("SAJOU_TOKEN_FILE"); file == "" {
			return "", nil
		}
		where = "SAJOU_TOKEN_FILE: "
	}
	text, _, err := Read(file, maxToken)
	if err != nil {
		return "", fmt.Errorf("%s%w", where, err)
	}
	return string(bytes.TrimSpace(text)), nil
}
