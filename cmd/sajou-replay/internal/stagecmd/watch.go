package stagecmd

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

// watch reports changes of files. It polls, because notifications do not work on
// every file system, such as one over a network.
type watch struct {
	files []string
	ticks <-chan time.Time
	seen  []string // the stamp of each file at the last look
}

// watchInterval is the time between two looks at the files.
const watchInterval = 300 * time.Millisecond

// newWatch begins to watch files until stop is called.
func newWatch(a *cli.App, files []string) (w *watch, stop func()) {
	w = &watch{files: files, seen: stamps(files)}
	if a.Ticks != nil {
		w.ticks = a.Ticks
		return w, func() {}
	}
	t := time.NewTicker(watchInterval)
	w.ticks = t.C
	return w, t.Stop
}

// wait waits until a file has changed since the last look, and returns the changed
// files.
func (w *watch) wait(ctx context.Context) ([]string, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-w.ticks:
		}
		now := stamps(w.files)
		var changed []string
		for i, file := range w.files {
			if now[i] != w.seen[i] {
				changed = append(changed, file)
			}
		}
		w.seen = now
		if len(changed) > 0 {
			return changed, nil
		}
	}
}

// stamps returns a text for each file that changes with its content. A missing file
// has a stamp too, because editors replace a file by removing it first.
func stamps(files []string) []string {
	all := make([]string, len(files))
	for i, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			all[i] = err.Error()
			continue
		}
		all[i] = fmt.Sprint(info.ModTime().UnixNano(), info.Size())
	}
	return all
}
