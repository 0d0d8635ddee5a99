package forward

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/sajou-dev/sajou-go/internal/privatefile"
)

// LogFile is the name of the log in [Config.Dir]. At [MaxLog] bytes it becomes LogFile.old.
const LogFile = "hook.log"

// MaxLog bounds the log, in bytes; there are at most two of that size.
const MaxLog = 256 << 10

// maxMessage bounds one line of the log.
const maxMessage = 1000

// writeLog adds a line to the log. There is nowhere to report that it cannot.
func writeLog(dir string, at time.Time, err error) {
	path := filepath.Join(dir, LogFile)
	f, failed := openPrivate(path)
	if errors.Is(failed, os.ErrNotExist) && os.MkdirAll(dir, 0o700) == nil {
		f, failed = openPrivate(path)
	}
	if failed != nil {
		return
	}
	defer func() { _ = f.Close() }()
	if privatefile.Lock(f) != nil {
		return
	}
	size, failed := f.Seek(0, io.SeekEnd)
	if failed != nil {
		return
	}
	if size > MaxLog {
		// Those who wait for the lock write their lines to the old file.
		_ = os.Rename(path, path+".old")
		next, failed := openPrivate(path)
		if failed != nil {
			return
		}
		defer func() { _ = next.Close() }()
		f = next
	}
	_, _ = f.WriteString(logLine(at, err))
}

func logLine(at time.Time, err error) string {
	message := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(err.Error(), ""))
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return fmt.Sprintf("%s %s\n", at.UTC().Format(time.RFC3339), message)
}

// LastFailure returns the last line of the log in a directory, "" if there is none.
func LastFailure(dir string) string {
	f, err := os.Open(filepath.Join(dir, LogFile))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	tail := make([]byte, min(size, 2*maxMessage))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return ""
	}
	text := strings.TrimSpace(string(tail))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
