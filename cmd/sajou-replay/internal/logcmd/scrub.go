package logcmd

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/redact"
	"github.com/sajou-dev/sajou-go/redact/content"
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
func (f *scrubFlags) stages(ctx context.Context, a *cli.App) (stages []func(*signal.Signal), notes signal.Value, err error) {
	o := signal.NewObject(2)
	if f.rules != "" {
		rules := redact.Default()
		if f.rules != "default" {
			shown, text, err := a.ReadInput(ctx, f.rules, maxRules)
			if err != nil {
				return nil, nil, err
			}
			var found authored.Diagnostics
			rules, found = redact.Compile(shown, text)
			for _, d := range found {
				fmt.Fprintln(a.Stderr, termtext.Printable(d.String()))
			}
			if found.Refused() {
				return nil, nil, cli.Fail(cli.ExitNo, "%s has %s; nothing was recorded", f.rules,
					cli.Plural(len(found.Only(authored.SeverityError)), "error", "errors"))
			}
		}
		redactor := rules.NewRedactor()
		stages = append(stages, func(sig *signal.Signal) { redactor.Redact(sig) })
		o.Text("redact", rules.Digest())
	}
	if f.digestKey != "" && !f.noContent {
		return nil, nil, cli.Misuse("--digest-key is for --no-content: name both")
	}
	if f.noContent {
		var key []byte
		if f.digestKey != "" {
			if _, key, err = a.ReadInput(ctx, f.digestKey, maxRules); err != nil {
				return nil, nil, err
			}
			key = bytes.TrimRight(key, "\r\n")
		}
		remover, err := content.NewRemover(key)
		if err != nil {
			return nil, nil, cli.Misuse("--digest-key %s: %w", f.digestKey, err)
		}
		stages = append(stages, func(sig *signal.Signal) { remover.Remove(sig) })
		o.Text("content", "removed")
	}
	return locked(stages), o.Value(), nil
}

// locked makes stages of one that may be called concurrently, by the readers of --watch.
func locked(stages []func(*signal.Signal)) []func(*signal.Signal) {
	if len(stages) == 0 {
		return nil
	}
	var mu sync.Mutex
	return []func(*signal.Signal){func(sig *signal.Signal) {
		mu.Lock()
		defer mu.Unlock()
		for _, stage := range stages {
			stage(sig)
		}
	}}
}

// maxRules bounds a file of rules.
const maxRules = 1 << 20
