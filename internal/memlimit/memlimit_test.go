package memlimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sajou-dev/sajou-go/internal/memlimit"
)

const mib, gib = 1 << 20, 1 << 30

// TestParse shows the forms of a limit.
func TestParse(t *testing.T) {
	for _, tc := range []struct {
		text string
		want uint64
	}{
		{"512MiB", 512 * mib},
		{"512 mib", 512 * mib},
		{"1g", gib},
		{"1.5GiB", gib + gib/2},
		{"2GB", 2_000_000_000},
		{"134217728", 128 * mib},
		{"25%", 2 * gib},
		{"100%", 8 * gib},
		{"0.001%", memlimit.Least},
		{"off", 0},
		{"0", 0},
		{"100000KiB", 100000 << 10},
		{"1TiB", 1 << 40},
	} {
		if got, err := memlimit.Parse(tc.text, 8*gib); err != nil || got != tc.want {
			t.Errorf("Parse(%q) = %d, %v, want %d", tc.text, got, err, tc.want)
		}
	}
	for _, text := range []string{
		"", "much", "-1GiB", "101%", "1%%", "12", "1MiB", "63MiB", "NaN", "Inf", "1e99", "0x10GiB", "5 XiB", "1GiB1", "MiB", "9999999TiB", "--", "1_0GiB",
	} {
		if got, err := memlimit.Parse(text, 8*gib); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", text, got)
		}
	}
}

// TestTotal reads the limits of machines and control groups.
func TestTotal(t *testing.T) {
	machine := "MemTotal:        8388608 kB\nMemFree: 1 kB\n"
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  uint64
	}{
		{"a machine", map[string]string{"proc/meminfo": machine}, 8 * gib},
		{"nothing", nil, memlimit.Unknown},
		{"version 2", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/user/job\n", "sys/fs/cgroup/user/job/memory.max": "1073741824\n",
		}, gib},
		{"version 2, none", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/memory.max": "max\n"}, 8 * gib},
		{"a group above", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/user/job\n", "sys/fs/cgroup/user/job/memory.max": "max\n", "sys/fs/cgroup/user/memory.max": "2147483648\n",
		}, 2 * gib},
		{"in a container", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/docker/abc\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 * mib},
		{"version 1", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "5:cpu,memory:/a/b\n0::/\n", "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "3221225472\n",
		}, 3 * gib},
		{"a group that has more than the machine", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "99999999999\n"}, 8 * gib},
		{"rubbish", map[string]string{
			"proc/meminfo": "MemTotal: much kB\n", "proc/self/cgroup": ":::\n0\n0::/../../etc\n7:memory:" + strings.Repeat("/x", 1000), "sys/fs/cgroup/memory.max": "-5",
		}, memlimit.Unknown},
	} {
		root := fstest.MapFS{}
		for name, text := range tc.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := memlimit.Total(root); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

// TestWatch shows the behaviour above the limit, check by check.
func TestWatch(t *testing.T) {
	tick, used := make(chan time.Time), make(chan uint64)
	look := func(now uint64) { tick <- time.Time{}; used <- now }
	var ended *memlimit.ExceededError
	w := memlimit.Watcher{Used: func() uint64 { return <-used }, Tick: tick, End: func(e *memlimit.ExceededError) { ended = e }}

	ctx, stop := w.Watch(context.Background(), 100*mib)
	look(100 * mib)
	look(99 * mib)
	if ctx.Err() != nil {
		t.Error("cancelled below the limit")
	}
	look(101 * mib)
	look(90 * mib) // when this value is received, the previous check is over
	if over, ok := errors.AsType[*memlimit.ExceededError](context.Cause(ctx)); !ok || over.Limit != 100*mib || over.Used != 101*mib {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
	if over := stop(); over == nil || ended != nil {
		t.Errorf("stop = %v, ended %v; want an error and no end", over, ended)
	}

	// If the command does not end, the watch ends the process.
	_, stop = w.Watch(context.Background(), 100*mib)
	look(101 * mib)
	for range memlimit.Grace {
		look(1)
	}
	if err := stop(); err == nil || ended == nil {
		t.Error("a command that goes on was not ended")
	}
	ended = nil
	_, stop = w.Watch(context.Background(), 100*mib)
	look(126 * mib)
	if err := stop(); err == nil || ended == nil || ended.Used != 126*mib {
		t.Errorf("a command that goes far beyond was not ended: %v", ended)
	}

	ctx, stop = memlimit.Watcher{}.Watch(context.Background(), 0)
	if stop() != nil || ctx.Err() != nil {
		t.Error("no limit is one")
	}
	ctx, stop = memlimit.Watcher{}.Watch(context.Background(), 1<<50)
	if stop() != nil || !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}

// FuzzParse shows that every accepted text gives a valid limit.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"512MiB", "25%", "off", "1e3", "0x1p4", "١GiB", ".5%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := memlimit.Parse(text, gib); err == nil && n != 0 && n < memlimit.Least {
			t.Errorf("Parse(%q) = %d", text, n)
		}
	})
}
