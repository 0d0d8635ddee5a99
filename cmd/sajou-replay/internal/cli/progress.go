package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"
)

// ProgressMeter shows progress in one line of a terminal. It is silent on anything
// else. Several goroutines may use it.
type ProgressMeter struct {
	w     io.Writer // nil: silent
	mu    sync.Mutex
	last  time.Time
	shown bool
}

// NewProgress returns a meter that shows its text if w is a terminal.
func NewProgress(w io.Writer) *ProgressMeter {
	if IsTerminal(w) {
		return &ProgressMeter{w: w}
	}
	return &ProgressMeter{}
}

// IsTerminal reports whether w is a terminal that understands control sequences.
// Other devices, such as /dev/null, are not.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(f.Fd())
}

// IsInteractive reports whether stdin and stdout are terminals, so that a command can
// read single keys and draw in place.
func (a *App) IsInteractive() bool {
	keys, ok := a.Stdin.(*os.File)
	return ok && IsTerminal(keys) && IsTerminal(a.Stdout)
}

// Show replaces the text, at most ten times a second.
func (m *ProgressMeter) Show(text string) {
	if m.w == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.last) < 100*time.Millisecond {
		return
	}
	m.last, m.shown = time.Now(), true
	fmt.Fprintf(m.w, "\r\x1b[K%s", text)
}

// Clear removes the text.
func (m *ProgressMeter) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.w != nil && m.shown {
		fmt.Fprint(m.w, "\r\x1b[K")
	}
}
