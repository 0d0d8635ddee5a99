package forward

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// drainPatience is how long [Drain] waits for hooks that deliver.
const drainPatience = 10 * time.Second

// Drain delivers what waits for a server, the oldest first, and returns how many items
// were delivered. It goes on until nothing is left, the server does not take an item, or ctx
// ends; [Config.Deadline] does not matter.
func Drain(ctx context.Context, cfg Config) (delivered int, err error) {
	cfg = cfg.withDefaults()
	if _, err := os.Stat(spoolPath(cfg.Dir, cfg.Server)); errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	to, err := cfg.target()
	if err != nil {
		return 0, err
	}
	s, err := openSpool(cfg)
	if err != nil {
		return 0, err
	}
	defer s.close()
	return s.drain(ctx, to, drainPatience)
}

// Deliver delivers one item, without the spool. The error is an [*UndeliverableError] if the
// server will never take it.
func Deliver(ctx context.Context, cfg Config, item HookItem) error {
	to, err := cfg.withDefaults().target()
	if err != nil {
		return err
	}
	return to.post(ctx, item)
}

// SpoolQueue is what waits for one server.
type SpoolQueue struct {
	File  string
	Items int
	Bytes int64 // of the items
	Err   error // if it cannot be read
}

// Queues returns the spools of a directory in which something waits, by the names of
// their files.
func Queues(dir string) []SpoolQueue {
	names, err := filepath.Glob(filepath.Join(dir, "spool-*.jsonl"))
	if err != nil {
		return nil // dir is a pattern by its name
	}
	slices.Sort(names)
	var list []SpoolQueue
	for _, name := range names {
		q := SpoolQueue{File: name}
		q.Items, q.Bytes, q.Err = count(name)
		if q.Items > 0 || q.Err != nil {
			list = append(list, q)
		}
	}
	return list
}

// count counts the items of a spool.
func count(path string) (items int, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, 0, err
	}
	s := &spool{cfg: Config{}.withDefaults(), path: path, file: f}
	h := s.readHeader(info.Size())
	size = info.Size() - h.next
	r := bufio.NewReaderSize(io.NewSectionReader(f, h.next, size), 64<<10)
	for {
		line, n, err := readLine(r)
		if err != nil || n == 0 {
			return items, size, err
		}
		var item HookItem
		if json.Unmarshal(line, &item) == nil && item.Key != "" {
			items++
		}
	}
}
