package local_test

import (
	"context"
	"errors"
	"fmt"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/local"
)

// readHeld opens the store in dir for reading, also while a server holds it.
func readHeld(ctx context.Context, dir string, read func(*sajou.Engine) error) error {
	engine, err := sajou.Open(dir, sajou.Config{ReadOnly: true})
	if errors.Is(err, eventlog.ErrLocked) {
		var holder *local.Holder
		if holder, err = local.Find(dir); err != nil {
			return err
		}
		checkpoint, err := holder.Checkpoint(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = checkpoint.Close() }()
		engine, err = sajou.Open(checkpoint.Dir, sajou.Config{ReadOnly: true})
		if err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(read(engine), engine.Close())
}

func ExampleFind() {
	err := readHeld(context.Background(), "no-such-store", func(*sajou.Engine) error { return nil })
	fmt.Println(errors.Is(err, eventlog.ErrNoStore))
	// Output: true
}
