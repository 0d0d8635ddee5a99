package agents

import (
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/signal"
)

// guarded is a policy of the program's own. It is asked when a record is folded
// that is in the log already, and on every replay: a panic there would part the
// state from the log for good.
type guarded struct {
	policy Policy
	reach  Reach
}

// guard makes a custom policy.
func guard(c Custom, config signal.Value) (p Policy, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("the policy panicked: %v", r)
		}
	}()
	own, err := c.Compile(config)
	if err == nil && own == nil {
		err = errors.New("no policy came of it")
	}
	if err != nil {
		return nil, err
	}
	return guarded{own, own.Reach()}, nil
}

func (g guarded) Sees(eye *Eye, id string) (sees bool) {
	defer func() {
		if recover() != nil {
			sees = false
		}
	}()
	return g.policy.Sees(eye, id)
}

func (g guarded) Shows(eye *Eye, id, field string) (shows bool) {
	defer func() {
		if recover() != nil {
			shows = false
		}
	}()
	return g.policy.Shows(eye, id, field)
}

func (g guarded) Covers(eye *Eye, at Point) (covered bool) {
	defer func() {
		if recover() != nil {
			covered = false
		}
	}()
	return covers(g.policy, eye, at)
}

func (g guarded) Hears(eye *Eye, e Effect) (v Verdict) {
	defer func() {
		if recover() != nil {
			v = Unheard
		}
	}()
	return hears(g.policy, eye, e)
}

func (g guarded) Reach() Reach { return g.reach }
