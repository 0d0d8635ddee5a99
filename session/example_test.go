package session_test

import (
	"context"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Entries have a meaning by their kind; an export has what other programs need of them.
func ExampleExport() {
	if err := export(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1 0s opened {"time":"manual","rules":2}
	// 2 1.5s thinking
	// {"id":"1","type":"thinking","timestamp":1500,"source":"example","payload":{"agentId":"ada","content":"Hm."}}
}

func export(ctx context.Context) error {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Begin(ctx, "a", session.TimeManual)
	if err != nil {
		return err
	}
	sig, err := signal.Parse([]byte(`{"id":"1","type":"thinking","timestamp":1500,"source":"example","payload":{"agentId":"ada","content":"Hm."}}`))
	if err != nil {
		return err
	}
	if _, err := ses.Signal(ctx, sig); err != nil {
		return err
	}
	for e, err := range ses.Entries(ctx, 1) {
		if err != nil {
			return err
		}
		if recorded, err := session.SignalOf(&e); err == nil {
			fmt.Println(e.Seq, e.At, recorded.Type)
			continue
		}
		word, value, err := session.WordOf(&e)
		if err != nil {
			return err
		}
		fmt.Printf("%d %v %s %s\n", e.Seq, e.At, word, value.AppendJSON(nil))
	}
	log, err := eng.Log().Session("a")
	if err != nil {
		return err
	}
	return session.Export(ctx, os.Stdout, log, session.ExportSignals, 1, 0)
}
