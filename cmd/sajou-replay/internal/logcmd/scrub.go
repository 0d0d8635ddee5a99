package logcmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/signal"
)

// scrubFlags are the flags of import that keep secrets and content out of a session.
type scrubFlags struct {
	rules     string
	noContent bool
	digestKey string
}

func (f *scrubFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.rules, "redact", "", "remove secrets by the rules of a `FILE`, or by the built-in ones: default")
	cmd.Flags().BoolVar(&f.noContent, "no-content", false, "record the lengths of prompts, texts, arguments and outputs in their place")
	cmd.Flags().StringVar(&f.digestKey, "digest-key", "", "with --no-content: `FILE` of a key; record keyed digests beside the lengths")
}

func (f *scrubFlags) any() bool { return f.rules != "" || f.noContent || f.digestKey != "" }

// stages returns what each signal passes before it is recorded, and the note of it for the
// first signal of a recording.
func (f *scrubFlags) stages(context.Context, *cli.App) ([]func(*signal.Signal), signal.Value, error) {
	return nil, nil, nil
}
