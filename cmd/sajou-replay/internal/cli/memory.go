package cli

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sajou-dev/sajou-go/internal/memlimit"
)

// MemoryLimit limits the memory of a command.
type MemoryLimit struct {
	limit string // --max-memory
	doing string // the command
	stop  func() *memlimit.ExceededError

	// End ends the process if a cancelled command does not return. Nil in tests,
	// which share the process.
	End func(error)
}

// Flag adds --max-memory.
func (m *MemoryLimit) Flag(flags *pflag.FlagSet) {
	limit := os.Getenv("SAJOU_MAX_MEMORY")
	if limit == "" {
		limit = memlimit.Default
	}
	flags.StringVar(&m.limit, "max-memory", limit,
		"end the command above `SIZE` of memory, such as 512MiB, 2GB, 25% of the machine, or off; SAJOU_MAX_MEMORY sets the default")
}

// Watch cancels a command that uses more than the limit.
func (m *MemoryLimit) Watch(cmd *cobra.Command) error {
	limit, err := memlimit.Parse(m.limit, memlimit.Total(os.DirFS("/")))
	if err != nil {
		return Misuse("--max-memory: %w", err)
	}
	m.doing = cmd.CommandPath()
	var watcher memlimit.Watcher
	if m.End != nil {
		watcher.End = func(over *memlimit.ExceededError) {
			err := m.exceeded(over)
			if GivesVerdict(cmd) {
				err = VerdictOnly(err, true)
			}
			m.End(err)
		}
	}
	ctx, stop := watcher.Watch(cmd.Context(), limit)
	m.stop = stop
	cmd.SetContext(ctx)
	return nil
}

// Watched ends the watch and returns the error of the command, or the error of the
// limit if the command exceeded it. The result of a command above the limit is
// incomplete, even if the command returned no error.
func (m *MemoryLimit) Watched(err error) error {
	if m.stop == nil {
		return err
	}
	if over := m.stop(); over != nil {
		return m.exceeded(over)
	}
	return err
}

func (m *MemoryLimit) exceeded(over *memlimit.ExceededError) error {
	return Fail(ExitInconclusive, "%s was ended: %w; its result is incomplete; allow more with --max-memory SIZE, or request less", m.doing, over)
}

// ParseBytes reads the value of a flag that is a size.
func ParseBytes(flag, text string) (uint64, error) {
	n, err := memlimit.ParseBytes(text)
	if err != nil {
		return 0, Misuse("--%s: %w", flag, err)
	}
	return n, nil
}
