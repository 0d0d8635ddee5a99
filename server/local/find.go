package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNoServer says that no server answers for a store.
var ErrNoServer = errors.New("no server holds the store")

// Holder is a server that holds a store, as it is found beside the store. It need not be
// there any more.
type Holder struct {
	dir    string // of the store
	socket string
}

// Find returns the server of the store in dir. The error is [ErrNoServer] if no server has
// left its socket there, and another one if the files beside the store are not to be
// trusted.
func Find(dir string) (*Holder, error) {
	folder, err := folderOf(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoServer
	}
	if err != nil {
		return nil, err
	}
	if err := checkFolder(folder, dir); err != nil {
		return nil, err
	}
	socket, err := socketOf(folder, dir)
	if err != nil {
		return nil, err
	}
	return &Holder{dir, socket}, nil
}

// Socket returns the path of the server's socket.
func (h *Holder) Socket() string { return h.socket }

// socketOf returns the path of the socket that the files in a folder name.
func socketOf(folder, dir string) (string, error) {
	socket := filepath.Join(folder, socketName)
	if _, err := os.Lstat(socket); err == nil {
		return socket, checkSocket(socket, dir)
	}
	place := filepath.Join(folder, addressName)
	info, err := lstat(place)
	if err != nil {
		return "", err
	}
	switch {
	case !info.Mode().IsRegular() || info.Size() > maxAddress:
		return "", untrusted(place, "it is not a small regular file")
	case info.Mode().Perm()&0o077 != 0:
		return "", untrusted(place, fmt.Sprintf("its mode is %v, so that other users can use it", info.Mode().Perm()))
	}
	if err := checkOwner(place, info, dir); err != nil {
		return "", err
	}
	data, err := os.ReadFile(place)
	if err != nil {
		return "", fmt.Errorf("local: %w", err)
	}
	var a address
	if err := json.Unmarshal(data, &a); err != nil || !filepath.IsAbs(a.Socket) || filepath.Clean(a.Socket) != a.Socket {
		return "", untrusted(place, "it does not name a socket")
	}
	if err := checkFolder(filepath.Dir(a.Socket), dir); err != nil {
		return "", err
	}
	return a.Socket, checkSocket(a.Socket, dir)
}

// checkSocket refuses anything but a socket of the user.
func checkSocket(path, dir string) error {
	info, err := lstat(path)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return untrusted(path, "it is not a socket")
	}
	return checkOwner(path, info, dir)
}

// checkFolder refuses a folder that another user could have put files into. The error is
// [ErrNoServer] if it does not exist.
func checkFolder(path, dir string) error {
	info, err := lstat(path)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return untrusted(path, "it is not a folder")
	case info.Mode().Perm()&0o022 != 0:
		return untrusted(path, fmt.Sprintf("its mode is %v, so that other users can write to it", info.Mode().Perm()))
	}
	return checkOwner(path, info, dir)
}

// checkOwner refuses a file that belongs neither to this user nor to the owner of the
// store in dir.
func checkOwner(path string, info fs.FileInfo, dir string) error {
	store, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("local: %w", err)
	}
	if !sameOwner(info, store) {
		return untrusted(path, "it belongs to another user")
	}
	return nil
}

// lstat is [os.Lstat]. A file that is missing means that there is no server.
func lstat(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoServer
	}
	if err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	return info, nil
}

func untrusted(path, fact string) error {
	return fmt.Errorf("local: %s is not used to find the server: %s; remove it", path, fact)
}
