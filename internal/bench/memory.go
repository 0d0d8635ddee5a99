package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/replay"
)

// child measures one job in a process of its own.
func (b *bench) child(job, dir string) (mib float64, err error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(b.ctx, exe, "-child", job, "-dir", dir)
	cmd.Stderr = b.notes
	out, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
}

// memoryChild does one job over the store in dir and prints its peak memory in
// MiB.
func memoryChild(ctx context.Context, job, dir string, stdout io.Writer) error {
	if err := doJob(ctx, job, dir); err != nil {
		return err
	}
	peak, err := peakMiB()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%.1f\n", peak)
	return err
}

func doJob(ctx context.Context, job, dir string) error {
	if job == "import" {
		return copySession(ctx, dir)
	}
	eng, err := sajou.Open(dir, sajou.Config{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	switch job {
	case "state":
		travel, err := eng.Replay("bench")
		if err != nil {
			return err
		}
		_, err = travel.At(ctx, replay.Moment{Seq: travel.Head().Seq / 2})
		return err
	case "scan":
		return scanExpression(ctx, eng, expressionText, true)
	case "verify":
		r, err := eng.Log().Verify(ctx, "bench", verify.Options{})
		if err == nil && r.Fault != nil {
			err = fmt.Errorf("verify: %v", r.Fault)
		}
		return err
	}
	return fmt.Errorf("no job %q", job)
}

// copySession records as many signals as the session in dir has into a store
// beside it.
func copySession(ctx context.Context, dir string) error {
	src, err := sajou.Open(dir, sajou.Config{ReadOnly: true})
	if err != nil {
		return err
	}
	travel, err := src.Replay("bench")
	if err != nil {
		return err
	}
	n := int(travel.Head().Seq)
	if err := src.Close(); err != nil {
		return err
	}
	target := filepath.Join(filepath.Dir(dir), filepath.Base(dir)+"-import")
	defer func() { _ = os.RemoveAll(target) }()
	eng, err := sajou.Open(target, sajou.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	ses, err := eng.Session(ctx, "bench")
	if err != nil {
		return err
	}
	return record(ctx, ses, n, 1000, nil)
}

func lines(b []byte) iter.Seq[string] { return strings.SplitSeq(string(bytes.TrimSpace(b)), "\n") }

// cutPrefix returns the number that follows a label in /proc.
func cutPrefix(line, label string) (string, bool) {
	rest, ok := strings.CutPrefix(line, label)
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), ok
}
