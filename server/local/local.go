// Package local connects commands with the server that holds their store, on the same
// machine and for the same user.
//
// A server listens on a Unix socket beside its store ([Listen]):
//
//	STORE/server/          0700, while a server runs
//	STORE/server/socket    0600, the socket
//	STORE/server/address   0600, instead of the socket where it has to be elsewhere
//
// The path of a socket has at most 103 bytes on some systems, and not every file system
// has sockets. Where the socket cannot be beside the store it is in a folder for temporary
// files, and the address names it, as JSON: {"socket":"/tmp/sajou-1234/socket"}.
//
// A command that finds the store locked looks for the server ([Find]) and asks it for a
// checkpoint ([Holder.Checkpoint]): a copy of the store that costs little and that the
// command opens as any store. The server answers with the directory, keeps the request
// open, and removes the checkpoint when the connection ends. So a command that is killed
// leaves nothing; of a server that is killed, the next one removes the rest.
//
// # Trust
//
// The modes of the folder and of the socket let only their owner connect, so a caller on
// the socket may do everything. Find uses no folder, address or socket that belongs to
// another user or that others can write to, and follows no link.
//
// docs/glossary.md has the nouns of all packages.
package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// The names of the files beside a store.
const (
	folderName  = "server"
	socketName  = "socket"
	addressName = "address"
)

// maxSocketPath is the length of the longest path that every system can connect to.
const maxSocketPath = 103

// maxAddress bounds an address file, in bytes.
const maxAddress = 4 << 10

// address is the content of an address file.
type address struct {
	Socket string `json:"socket"`
}

// Listen listens on the socket of the store in dir, which the caller holds open: files that
// an earlier server left are replaced. remove removes the files; call it after the listener
// is closed. The error is that of the file system.
func Listen(dir string) (l *net.UnixListener, remove func() error, err error) {
	folder, err := folderOf(dir)
	if err != nil {
		return nil, nil, err
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil, fmt.Errorf("local: %w", err)
	}
	if err := checkFolder(folder, dir); err != nil {
		return nil, nil, err
	}
	removeStale(folder, dir)
	remove = func() error { return removeIfThere(folder) }
	path := filepath.Join(folder, socketName)
	if len(path) <= maxSocketPath {
		if l, err = listen(path); err == nil {
			return l, remove, nil
		}
	}
	elsewhere, err := os.MkdirTemp("", "sajou-")
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("local: %w", err), remove())
	}
	place := filepath.Join(folder, addressName)
	remove = func() error {
		return errors.Join(removeIfThere(place), removeIfThere(elsewhere), removeIfThere(folder))
	}
	path = filepath.Join(elsewhere, socketName)
	if l, err = listen(path); err == nil {
		if err = writeAddress(place, path); err == nil {
			return l, remove, nil
		}
		err = errors.Join(err, l.Close())
	}
	return nil, nil, errors.Join(err, remove())
}

func listen(path string) (*net.UnixListener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("local: the path of the socket %s has more than %d bytes; set TMPDIR to a shorter one", path, maxSocketPath)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	// The folder has kept others away since before.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("local: %w", err), l.Close())
	}
	return l, nil
}

// writeAddress writes an address file, completely or not at all.
func writeAddress(place, socket string) error {
	data, err := json.Marshal(address{socket})
	if err != nil {
		return err
	}
	unfinished := place + ".new"
	if err := errors.Join(os.WriteFile(unfinished, append(data, '\n'), 0o600), os.Rename(unfinished, place)); err != nil {
		return fmt.Errorf("local: %w", err)
	}
	return nil
}

// removeStale removes the files that a killed server left, as far as they are ones that
// Find would use.
func removeStale(folder, dir string) {
	if path, err := socketOf(folder, dir); err == nil {
		_ = os.Remove(path)
		if parent := filepath.Dir(path); strings.HasPrefix(filepath.Base(parent), "sajou-") {
			_ = os.Remove(parent) // fails if it has other files
		}
	}
	_ = os.Remove(filepath.Join(folder, addressName))
	_ = os.Remove(filepath.Join(folder, addressName+".new"))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("local: %w", err)
	}
	return nil
}

// folderOf returns the folder of the store in dir under its one canonical path, so that
// server and command agree on the length of the path.
func folderOf(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("local: %w", err)
	}
	return filepath.Join(path, folderName), nil
}
