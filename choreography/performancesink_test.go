package choreography_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
)

// lives is a sink that notes when performances are made and end.
type lives struct {
	choreography.RecordingSink

	lines []string
}

func (l *lives) OnPerformance(p choreography.Performance) {
	l.lines = append(l.lines, fmt.Sprintf("%v %s of %q, handler %t", p.Began, p.ID(), p.Name(), p.Handler))
}

func (l *lives) OnPerformanceEnd(at time.Duration, id string) {
	l.lines = append(l.lines, fmt.Sprintf("%v %s ends", at, id))
}

// TestPerformanceSink: a sink hears of performances that end by themselves, are
// interrupted, wait for a guard, and handle an interruption, each once. A sink of
// commands alone does not.
func TestPerformanceSink(t *testing.T) {
	definitions, diagnostics := language.Parse("definitions.json", []byte(`[
		{"id":"walk","on":"go","guard":{"entity":"door"},"steps":[{"action":"move","entity":"a","duration":100},{"action":"wait","duration":30},
			{"action":"onInterrupt","steps":[{"action":"fall","entity":"a","duration":10}]}]},
		{"on":"stop","interrupts":true,"steps":[{"action":"playSound"}]}]`))
	require.NoError(t, diagnostics.Err(definition.ErrInvalid))
	s := choreography.NewScheduler()
	for _, d := range definitions {
		define(t, s, d)
	}
	var l lives
	s.SetSink(&l)
	s.Signal(1, scriptSignal(t, `go {}`))
	s.Signal(2, scriptSignal(t, `go id=c {}`))
	s.Advance(150 * time.Millisecond)
	s.Signal(3, scriptSignal(t, `stop id=c {}`))
	s.Advance(time.Second)
	assert.Equal(t, []string{
		`0s p-1-1 of "walk", handler false`,
		`0s p-2-1 of "walk", handler false`,
		`130ms p-1-1 ends`,
		`150ms p-2-1 ends`,
		`150ms p-3-1 of "walk", handler true`,
		`150ms p-3-2 of "", handler false`,
		`150ms p-3-2 ends`,
		`160ms p-3-1 ends`,
	}, l.lines)
	s.SetSink(&choreography.RecordingSink{})
	s.Signal(4, scriptSignal(t, `go {}`))
	assert.Len(t, l.lines, 8)
}
