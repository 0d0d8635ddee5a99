package view

import (
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// guarded wraps a policy of the program. Policies are evaluated while a record that
// is already in the log is folded, and again on every replay: a panic there would
// separate the state from the log for good. So each method treats a panic as a
// denial, which is the same on every replay.
type guarded struct {
	policy Policy
	deps   Dependencies
}

// guard compiles a custom policy, and treats a panic as an error.
func guard(c Custom, config signal.Value) (p Policy, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("the policy panicked: %v", r)
		}
	}()
	own, err := c.Compile(config)
	if err == nil && own == nil {
		err = errors.New("the method Compile returned no policy")
	}
	if err != nil {
		return nil, err
	}
	return guarded{own, own.Dependencies()}, nil
}

func (g guarded) Sees(vp *Viewpoint, id string) (sees bool) {
	defer func() {
		if recover() != nil {
			sees = false
		}
	}()
	return g.policy.Sees(vp, id)
}

func (g guarded) Shows(vp *Viewpoint, id, field string) (shows bool) {
	defer func() {
		if recover() != nil {
			shows = false
		}
	}()
	return g.policy.Shows(vp, id, field)
}

func (g guarded) Covers(vp *Viewpoint, at world.Position) (covered bool) {
	defer func() {
		if recover() != nil {
			covered = false
		}
	}()
	return covers(g.policy, vp, at)
}

func (g guarded) Receives(vp *Viewpoint, e world.Effect) (v Reception) {
	defer func() {
		if recover() != nil {
			v = NotReceived
		}
	}()
	return reception(g.policy, vp, e)
}

func (g guarded) Dependencies() Dependencies { return g.deps }
