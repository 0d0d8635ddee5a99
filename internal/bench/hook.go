package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server"
)

// hooks measures a hook of an agent, from the start of its process to its end: it reads an
// object, and a server on this machine makes it durable. The peer is a process that does
// nothing.
func (b *bench) hooks() (err error) {
	hook, empty, err := b.hookPrograms()
	if err != nil {
		return err
	}
	eng, err := sajou.Open(b.path("hooks"), sajou.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	srv, err := server.New(eng, server.Config{})
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(b.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(b.ctx)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, l) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()
	calls := 0
	process := func(program string) func() (measurement, error) {
		return func() (measurement, error) {
			times := make([]float64, b.scale.hooks)
			m, err := timed(len(times), func() error {
				for i := range times {
					calls++
					cmd := exec.CommandContext(b.ctx, program, "--server", "http://"+l.Addr().String(), "--dir", b.path("spool"), "--session", "bench")
					cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t%d"}`, calls))
					from := time.Now()
					if err := cmd.Run(); err != nil {
						return err
					}
					times[i] = milliseconds(time.Since(from))
				}
				return nil
			}, nil)
			slices.Sort(times)
			m.times = times
			return m, err
		}
	}
	all, err := b.interleave("a hook", side{"empty Go process", process(empty)}, side{"hook", process(hook)})
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(filepath.Join(b.path("spool"), "hook.log")); err == nil {
		return fmt.Errorf("the hook failed: %s", text)
	}
	none, some := all[0], all[1]
	goal := 2.0
	b.add(result{
		Name: "a hook, from its start to the durable answer, p50", Value: some.percentile(0.5), Unit: "ms", lower: true, Goal: &goal,
		Peer: "empty Go process", peer: none.percentile(0.5), Ratio: ptr(some.percentile(0.5) / none.percentile(0.5)),
		spread: some.spread(func(m measurement) float64 { return percentile(m.times, 0.5) }),
	}, some, none)
	return nil
}

// hookPrograms builds the program of the hook, and one that does nothing.
func (b *bench) hookPrograms() (hook, empty string, err error) {
	source := b.path("empty.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return "", "", err
	}
	hook, empty = b.path("sajou-hook"), b.path("empty")
	for program, from := range map[string]string{hook: "github.com/sajou-dev/sajou-go/cmd/sajou-hook", empty: source} {
		cmd := exec.CommandContext(b.ctx, "go", "build", "-o", program, from)
		cmd.Stderr = b.notes
		if err := cmd.Run(); err != nil {
			return "", "", fmt.Errorf("building %s: %w", from, err)
		}
	}
	return hook, empty, nil
}
