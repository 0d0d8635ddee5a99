// Package rehearsal plays choreographies without a store: it parses scenarios,
// runs them on a scheduler, and compares the commands with the expected ones.
//
// A scenario is a JSON object; a file holds one or an array of them:
//
//	{ "id", "name", "tags", "notes"?, "quantised"?,
//	  "definitions": [ declaration ],
//	  "script":      [ {"signal": envelope} | {"advance": ms} ],
//	  "expected"?:   [ command ],
//	  "scene"?:      scene,
//	  "values"?:     [ {"path": "stage.entities.ann.x", "value": 100} ] }
//
// A declaration is a choreography, a sequence, an easing or a binding;
// [language.WordFor] tells them apart by their members. A scenario runs on an
// empty scheduler at time 0 that has the declarations in the order given. A signal
// is applied at the current time, whatever its timestamp is; an advance moves time
// on and runs everything up to and including the new instant. Performances are
// renamed p1, p2, … in the order of their first command, because the scheduler's
// own ids are no part of what a scenario says.
//
// With a scene or values, a scenario has a stage, which answers the conditions of steps,
// and the values are those of its view at the end; [CompareValues] compares them. A value
// of null says that there is none.
//
// The package is pure: it neither reads files nor looks at a clock.
//
// docs/glossary.md has the nouns of all packages.
package rehearsal

import (
	"math"
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Scenario is one script of signals with the commands that it should give.
type Scenario struct {
	ID          string
	Name        string
	Tags        []string
	Notes       string
	Definitions []language.Declaration
	Script      []ScriptStep
	Expected    []choreography.Command
	// Judged reports whether the file has an "expected", even an empty one.
	Judged bool

	Scene  *scene.Scene // nil: the default one
	Values []ExpectedValue
}

// ExpectedValue is a value of the stage at the end of a scenario.
type ExpectedValue struct {
	Path  string       // with dots, or as a JSON Pointer; its first name is "stage"
	Value signal.Value // null: none
}

// staged reports whether the scenario has a stage.
func (s *Scenario) staged() bool { return s.Scene != nil || len(s.Values) > 0 }

// ScriptStep is one step of a script: a signal, or an advance if Signal is nil.
type ScriptStep struct {
	Signal  *signal.Signal
	Advance time.Duration
}

// Run runs a scenario and returns its commands, with performances renamed.
// Signals are numbered from 1, as a log would number them.
func Run(s *Scenario) []choreography.Command {
	commands, _ := RunAtMost(s, math.MaxInt)
	return commands
}

// RunAtMost is [Run] with a bound: a scenario that gives limit commands or more
// returns none, and complete is false.
func RunAtMost(s *Scenario, limit int) (commands []choreography.Command, complete bool) {
	commands, _, complete = run(s, limit)
	return commands, complete
}

// run returns the commands, and the stage at the end if the scenario has one.
func run(s *Scenario, limit int) (commands []choreography.Command, st *stage.Stage, complete bool) {
	sink := choreography.RecordingSink{Most: limit}
	scheduler := choreography.NewScheduler()
	scheduler.SetSink(&sink)
	if s.staged() {
		st = stage.New(stage.Config{})
		scheduler.Observe(st, st)
		if s.Scene != nil {
			st.SetScene(s.Scene)
		}
	}
	for _, d := range s.Definitions {
		if err := scheduler.Define(d); err != nil {
			panic("rehearsal: " + err.Error()) // Parse compiled it against the same declarations
		}
		if st != nil && scheduler.Performing() {
			st.Choreographed()
		}
	}
	seq := uint64(0)
	for _, step := range s.Script {
		if len(sink.Commands) >= limit {
			return nil, nil, false
		}
		if step.Signal != nil {
			seq++
			scheduler.Signal(seq, step.Signal)
			if st != nil {
				st.Signal(seq, step.Signal)
			}
			continue
		}
		to := scheduler.Now() + step.Advance
		if to < scheduler.Now() {
			to = math.MaxInt64
		}
		scheduler.Advance(to)
		if st != nil {
			st.Advance(to)
		}
	}
	if len(sink.Commands) >= limit {
		return nil, nil, false
	}
	rename(sink.Commands)
	return sink.Commands, st, true
}

func rename(commands []choreography.Command) {
	names := map[string]string{}
	for i := range commands {
		id := commands[i].PerformanceID
		name, ok := names[id]
		if !ok {
			name = "p" + strconv.Itoa(len(names)+1)
			names[id] = name
		}
		commands[i].PerformanceID = name
	}
}
