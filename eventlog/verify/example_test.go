package verify_test

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// A head that was kept elsewhere proves that nothing was cut off: here it is ahead of the
// log, as after the loss of the last entry.
func ExampleSessionReport() {
	if err := check(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// true 1
	// false 1
	// 2 missing
}

func check(ctx context.Context) error {
	l, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer l.Close()
	s, err := l.Session("a")
	if err != nil {
		return err
	}
	head, err := s.Append(ctx, eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, Data: []byte{0xc0}}}})
	if err != nil {
		return err
	}
	for _, kept := range []eventlog.Head{head, {Seq: head.Seq + 1, Hash: head.Hash}} {
		report, err := l.Verify(ctx, "a", verify.Options{Expect: kept})
		if err != nil { // the check could not run; a finding is not an error
			return err
		}
		fmt.Println(report.Whole(), report.Head.Seq)
		if report.Fault != nil {
			fmt.Println(report.Fault.Seq, report.Fault.Kind)
		}
	}
	return nil
}
