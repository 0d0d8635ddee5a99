//go:build unix

package eventlog_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
)

// A special file in place of a store's file is neither waited for nor read without end:
// Open refuses the store, and Repair ignores the file.
func TestSpecialFilesInAStore(t *testing.T) {
	ctx := context.Background()
	v := victimLife(t, "s", 3, 16, 0, byClose)
	for name := range v.files {
		if strings.HasPrefix(name, "marker.") {
			continue // never opened
		}
		for what, put := range map[string]func(path string) error{
			"a named pipe":        func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"a directory":         func(path string) error { return os.Mkdir(path, 0o700) },
			"a link to /dev/zero": func(path string) error { return os.Symlink("/dev/zero", path) },
			"a link to a FIFO": func(path string) error {
				return errors.Join(syscall.Mkfifo(path+".pipe", 0o600), os.Rename(path+".pipe", filepath.Dir(path)+".pipe"), os.Symlink(filepath.Dir(path)+".pipe", path))
			},
			"a link to a directory": func(path string) error { return os.Symlink(os.TempDir(), path) },
		} {
			dir := filepath.Join(t.TempDir(), "store")
			require.NoError(t, os.Mkdir(dir, 0o700))
			for other, b := range v.files {
				if other == name {
					continue
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, other), b, 0o600))
			}
			require.NoError(t, put(filepath.Join(dir, name)))
			within(t, name+" is "+what, func() {
				for _, readOnly := range []bool{true, false} {
					l, err := eventlog.Open(dir, eventlog.Config{ReadOnly: readOnly})
					if err == nil {
						_ = l.Close()
					}
					if _, refused := errors.AsType[*storefile.DirectoryError](err); !refused {
						t.Errorf("%s is %s, read-only %v: %v", name, what, readOnly, err)
					}
				}
				r, err := eventlog.Repair(ctx, dir, dir+".copy", eventlog.Config{})
				switch {
				case name == "LOCK": // refused as a file of others
				case err != nil || r.Found == nil || len(r.Sessions) == 0 && !strings.HasSuffix(name, ".log") && !strings.HasSuffix(name, ".sst"):
					t.Errorf("%s is %s: repaired %+v, %v", name, what, r, err)
				case name == eventlog.HeadsFile && r.Whole():
					t.Errorf("%s is %s: called whole", name, what)
				}
			})
		}
	}
}
