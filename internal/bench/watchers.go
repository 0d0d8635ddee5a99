package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/signal"
)

// watchedPeriod is the time from one signal to the next while clients watch.
const watchedPeriod = 5 * time.Millisecond

// watchers measures what clients that watch a session cost its writer and the memory of
// the server. The clients are a process of their own, which checks that each sees every
// entry in order.
func (b *bench) watchers() error {
	signals, err := makeSignals(b.scale.watched)
	if err != nil {
		return err
	}
	var perWatcher []float64
	all, err := b.interleave("watchers",
		side{"nobody watches", func() (measurement, error) {
			return b.onServer(func(_ string, ses *sajou.Session) (measurement, error) { return b.steady(ses, signals) })
		}},
		side{"watched", func() (measurement, error) {
			return b.onServer(func(address string, ses *sajou.Session) (measurement, error) {
				before := memoryInUse()
				done, err := b.watch(address, uint64(ses.Head().Seq)+1)
				if err != nil {
					return measurement{}, err
				}
				m, err := b.steady(ses, signals)
				// They have all received entries, and keep what they need for that.
				perWatcher = append(perWatcher, (memoryInUse()-before)/1024/float64(b.scale.watchers))
				return m, errors.Join(err, done())
			})
		}})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d watchers at %d entries/s", b.scale.watchers, time.Second/watchedPeriod)
	b.beside(name+", their writer", "signals", all[1], "nobody watches", all[0], 0.9)
	for _, p := range []float64{0.5, 0.99} {
		b.add(result{
			Name: fmt.Sprintf("  a durable signal, p%g", 100*p), Value: all[1].percentile(p), Unit: "ms", lower: true,
			Peer: "nobody watches", peer: all[0].percentile(p), Ratio: ptr(all[1].percentile(p) / all[0].percentile(p)),
		}, all[1], all[0])
	}
	b.add(result{Name: "  memory of the server for each", Value: slices.Max(perWatcher), Unit: "KiB", Goal: ptr(64), lower: true, onUnit: true})
	return nil
}

// steady records signals at a pace, each durable before the next one. A late one does not
// delay those behind it.
func (b *bench) steady(ses *sajou.Session, signals []*signal.Signal) (measurement, error) {
	return pacedBy(1, len(signals), watchedPeriod, func(_, k int) error {
		_, err := ses.Signal(b.ctx, signals[k])
		return err
	})
}

// memoryInUse returns the bytes of the heap and of the stacks that are in use.
func memoryInUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// watch starts the process that watches from an entry on, and returns when all its
// connections are streams. Done waits until each has seen every signal.
func (b *bench) watch(address string, first uint64) (done func() error, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(b.ctx, exe, "-child", fmt.Sprintf("%s%d %d %d", watchJob, b.scale.watchers, first, b.scale.watched), "-dir", address)
	cmd.Stderr = b.notes
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("the watchers: %w", err), cmd.Wait())
	}
	return cmd.Wait, nil
}

// watchJob begins the name of the job of the process that watches: the number of its
// connections, the first entry, and the number of entries.
const watchJob = "watch "

// watchChild opens connections to the server at an address, prints a line when all are
// open, and returns when each has seen all entries in order.
func watchChild(ctx context.Context, job, address string, stdout io.Writer) error {
	var watchers, first, count int
	if _, err := fmt.Sscanf(job, watchJob+"%d %d %d", &watchers, &first, &count); err != nil {
		return err
	}
	bodies := make([]*bufio.Scanner, watchers)
	for i := range bodies {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if _, err := fmt.Fprintf(conn, "GET /api/v1/sessions/bench/live?from=%d HTTP/1.1\r\nHost: localhost\r\n\r\n", first); err != nil {
			return err
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // to close it is to read to its end, which does not come
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return errors.New(res.Status)
		}
		bodies[i] = bufio.NewScanner(res.Body)
		bodies[i].Buffer(make([]byte, 8<<10), 1<<20)
	}
	if _, err := fmt.Fprintln(stdout, "watching"); err != nil {
		return err
	}
	return spread(watchers, watchers, func(i int) error { return seesAll(bodies[i], first, count) })
}

// seesAll reads events until all entries were seen.
func seesAll(events *bufio.Scanner, first, count int) error {
	for next := first; next < first+count; {
		if !events.Scan() {
			return fmt.Errorf("a stream ended before entry %d: %w", next, errors.Join(events.Err(), io.ErrUnexpectedEOF))
		}
		if id, ok := bytes.CutPrefix(events.Bytes(), []byte("id: ")); ok && string(id) != strconv.Itoa(first-1) { // where the stream begins
			if string(id) != strconv.Itoa(next) {
				return fmt.Errorf("a stream has entry %s after entry %d", id, next-1)
			}
			next++
		}
	}
	return nil
}

// isWatch reports whether a job is that of [watchChild].
func isWatch(job string) bool { return strings.HasPrefix(job, watchJob) }
