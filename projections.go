package sajou

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
)

// ErrProjection is wrapped by the errors of [State].
var ErrProjection = errors.New("sajou: no state of this projection")

// set returns the projections of a session: the engine's and the program's.
func (c *Config) set() projection.Set {
	set := session.Projections(session.ProjectionConfig{Actions: c.Actions, World: c.World})
	for _, p := range c.Projections {
		set = append(set, projection.Contain(p))
	}
	return set
}

// checkProjections returns why the program's projections cannot be used.
func (c *Config) checkProjections() error {
	for _, p := range c.Projections {
		if p.Join != nil {
			return fmt.Errorf("sajou: projection %q has a Join: only the engine's own projections depend on each other", p.Name)
		}
		if strings.Contains(p.Name, "\x00") {
			return fmt.Errorf("sajou: the name of projection %q holds a zero byte", p.Name)
		}
	}
	if err := append(session.Projections(session.ProjectionConfig{}), c.Projections...).Check(); err != nil {
		return fmt.Errorf("sajou: Config.Projections: %w", err)
	}
	return nil
}

// State returns the state of a projection of [Config.Projections] where a
// fold stands: T is the type of what its New and Restore return. The state belongs to
// the fold and changes with it. The error wraps [ErrProjection]: the fold has no such
// projection, its state is of another type, or one of its functions has panicked, and
// then the error says where.
//
// A projection is a function of the entries; see package projection for the rules. Its
// Apply is called for each entry in the order of the log, its Advance when session time
// passes. It must not change an entry. When one of its functions panics, the projection
// is out of use in that session until the session is opened again, the engine's Logger
// gets an error, and everything else goes on. Its Version must change with its bytes
// and with its rules: the new version is then folded from the first entry when a state
// is asked for, and the images of the old one stay until it has come as far.
func State[T projection.State](f *projection.Fold, name string) (state T, err error) {
	own, ok := f.State(name).(*projection.Contained)
	if !ok {
		return state, fmt.Errorf("%w: %q is not in Config.Projections", ErrProjection, name)
	}
	st, err := own.State()
	if err != nil {
		return state, fmt.Errorf("%w: %q: %w", ErrProjection, name, err)
	}
	state, ok = st.(T)
	if !ok {
		return state, fmt.Errorf("%w: %q is a %T, not a %T", ErrProjection, name, st, state)
	}
	return state, nil
}
