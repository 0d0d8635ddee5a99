package writer

import (
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// Measure sets the metrics of a group without turns under way.
func (g *Group) Measure(m projection.FoldMetrics) { g.cfg.Metrics = m }

// Misplace puts an empty fold in the place of the newest state, which then refuses every
// further entry.
func (w *Writer) Misplace() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fold = projection.NewFold(nil, eventlog.Hash{})
}
