package sajou

import (
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	directorlive "github.com/sajou-dev/sajou-go/director/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/snapshot"
	stagelive "github.com/sajou-dev/sajou-go/stage/live"
)

// Metrics receives measurements of an engine, each concern through an interface of its
// own. A nil field is not reported to, and what would be measured for it costs one
// comparison. No two interfaces share the name of a method, so one type can implement
// several; packages adapter/prometheus and adapter/otel implement all.
//
// Measurements decide nothing and are not recorded; a replay reports nothing. The
// methods are called on the paths that they measure, from many goroutines at once and
// some of them under locks of the engine. They must not wait, must not call the engine,
// and must not panic. Durations are of [Config.Now] and never negative. Sessions, worlds
// and agents are named as their creators named them: an implementation that keeps a
// value for each name must bound their number.
type Metrics struct {
	Log       eventlog.LogMetrics          // rounds of appends, syncs of files, the failure of the log
	Folds     projection.FoldMetrics       // the making of states, and the folding of entries
	Snapshots snapshot.ImageMetrics        // images stored and dropped
	Sinks     stagelive.SinkMetrics        // sinks attached and detached, and their calls
	Director  directorlive.DirectorMetrics // calls of directors and judges
	Agents    agentslive.AgentMetrics      // worlds, intents, observations and generations
}
