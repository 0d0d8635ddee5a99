//go:build unix

package eventlog_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// killEnv makes the test binary a writer to the store that it names.
const killEnv = "SAJOU_EVENTLOG_TEST_WRITE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killEnv); dir != "" {
		fmt.Fprintln(os.Stderr, writeForEver(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForEver appends to three sessions from six goroutines, and prints each
// Head once it is acknowledged. It returns only when something fails.
func writeForEver(dir string) error {
	l, err := eventlog.Open(dir, eventlog.Config{})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	errs := make(chan error, 6) // one a goroutine
	for w := range 6 {
		go func() {
			name := fmt.Sprintf("s%d", w%3)
			s, err := l.Session(name)
			for i := 0; err == nil; i++ {
				data := text(strings.Repeat("x", (i%7)*(w+1)*600))
				var head eventlog.Head
				head, err = s.Append(context.Background(), eventlog.Batch{Drafts: []eventlog.Draft{
					{Kind: eventlog.KindSignal, Data: data}, {Kind: eventlog.KindEffect, Data: data},
				}})
				mu.Lock()
				if err == nil {
					fmt.Printf("%s %v\n", name, head)
				}
				mu.Unlock()
			}
			errs <- err
		}()
	}
	return <-errs
}

// A writing process is killed repeatedly, on the real disk. Each time, everything that
// it had acknowledged is in the store, and the chains are intact.
func TestKill(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "store")
	rng := rand.New(rand.NewPCG(3, 9))
	acks := acknowledged{}
	for round := range 10 {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), killEnv+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		// Lines still in the pipe after the kill were acknowledged too.
		limit, lines := 1+rng.IntN(150), 0
		for in := bufio.NewScanner(out); in.Scan(); {
			if lines++; lines == limit {
				require.NoError(t, cmd.Process.Kill())
			}
			name, at, _ := strings.Cut(in.Text(), " ")
			head, err := eventlog.ParseHead(at)
			if err != nil {
				continue // a line cut short by the kill
			}
			if head.Seq > acks[name].Seq {
				acks[name] = head
			}
		}
		if err := cmd.Wait(); err == nil || lines < limit {
			t.Fatalf("round %d: the writer ended by itself after %d lines: %v", round, lines, err)
		}
		l, err := eventlog.Open(dir, eventlog.Config{})
		require.NoErrorf(t, err, "round %d", round)
		holds(t, l, acks, fmt.Sprintf("round %d", round))
		require.NoError(t, l.Close())
	}
	t.Logf("acknowledged at the end: %v", acks)
}
