package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/privatefile"
	"github.com/sajou-dev/sajou-go/replay"
)

// recentAddress is the moment that a command used last in a session. Relative addresses
// of the next command count from it.
type recentAddress struct {
	Store   string `json:"store"` // the absolute directory, or the URL of a server
	Session string `json:"session"`
	Genesis string `json:"genesis"` // the hash of the session's Seq 0
	Seq     uint64 `json:"seq"`
	Offset  int64  `json:"offset,omitempty"` // ns
}

const (
	mostRecent     = 64      // sessions whose last address is kept
	maxRecentBytes = 1 << 20 // of the file
)

// recentMoment returns the moment that was used last in a session of the store.
func (a *App) recentMoment(session, genesis string) (replay.Moment, bool) {
	store, err := a.place()
	if err != nil {
		return replay.Moment{}, false
	}
	for _, r := range a.recent() {
		if r.Store == store && r.Session == session && r.Genesis == genesis {
			return replay.Moment{Seq: eventlog.Seq(r.Seq), Offset: time.Duration(r.Offset)}, true
		}
	}
	return replay.Moment{}, false
}

// place returns what the kept addresses of the store are found by.
func (a *App) place() (string, error) {
	if a.Server != "" {
		return a.Server, nil
	}
	return filepath.Abs(a.Store)
}

// recent returns the kept addresses. The file is disposable: one that cannot be read
// has none.
func (a *App) recent() (kept []recentAddress) {
	info, err := os.Stat(a.Recent)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRecentBytes {
		return nil
	}
	data, err := os.ReadFile(a.Recent)
	if err != nil {
		return nil
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan() && len(kept) < mostRecent; {
		var r recentAddress
		if err := json.Unmarshal(lines.Bytes(), &r); err == nil && r.Offset >= 0 {
			kept = append(kept, r)
		}
	}
	return kept
}

// KeepRecent keeps the moment that the command used last, for the next command. A file
// that cannot be written only makes relative addresses unknown to it.
func (a *App) KeepRecent() {
	if a.used == nil || a.Recent == "" {
		return
	}
	store, err := a.place()
	if err != nil {
		return
	}
	a.used.Store = store
	all := a.recent()
	if len(all) > 0 && all[0] == *a.used {
		return
	}
	all = slices.DeleteFunc(all, func(r recentAddress) bool { return r.Store == store && r.Session == a.used.Session })
	all = slices.Insert(all, 0, *a.used)
	var text []byte
	for _, r := range all[:min(len(all), mostRecent)] {
		line, err := json.Marshal(r)
		if err != nil {
			return
		}
		text = append(append(text, line...), '\n')
	}
	if os.MkdirAll(filepath.Dir(a.Recent), 0o700) == nil {
		_ = privatefile.Write(a.Recent, text)
	}
}
