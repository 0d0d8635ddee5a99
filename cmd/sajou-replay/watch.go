package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// watch tells when files change. It asks the file system again and again, which
// works on every one of them, also over a network.
type watch struct {
	files []string
	ticks <-chan time.Time
	seen  []string // a stamp a file, when they were last looked at
}

// watchInterval is how often files are looked at.
const watchInterval = 300 * time.Millisecond

// newWatch begins to watch files. Call stop at the end.
func (a *app) newWatch(files []string) (w *watch, stop func()) {
	w = &watch{files: files, seen: stamps(files)}
	if a.ticks != nil {
		w.ticks = a.ticks
		return w, func() {}
	}
	t := time.NewTicker(watchInterval)
	w.ticks = t.C
	return w, t.Stop
}

// wait waits until files have changed since they were looked at last, and
// returns which.
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

// stamps returns what tells a version of each file from another. A file that
// is not there has a stamp too: editors take one away and put another in its place.
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
