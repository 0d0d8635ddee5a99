package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// MaxDefinitions bounds a file of definitions.
const MaxDefinitions = 64 << 20

// Scheduling is a projection that has a scheduler.
type Scheduling interface {
	Scheduler() *choreography.Scheduler
}

// ReadDeclared reads files of declarations. They may refer to earlier ones and to
// the catalog c. Diagnostics go to stderr. If one is an error, ReadDeclared fails
// with the consequence, such as "nothing was recorded".
func (a *App) ReadDeclared(ctx context.Context, c *language.Catalog, files []string, consequence string) ([]language.Declaration, error) {
	var all []language.Declaration
	for _, file := range files {
		text, err := ReadFile(ctx, file, MaxDefinitions)
		if err != nil {
			return nil, err
		}
		var declared []lint.Declared
		var diagnostics authored.Diagnostics
		next := c
		if err := Interruptibly(ctx, func() { declared, next, diagnostics = lint.Read(c, file, text) }); err != nil {
			return nil, err
		}
		for _, d := range diagnostics {
			fmt.Fprintln(a.Stderr, termtext.Printable(d.String()))
		}
		if diagnostics.Refused() {
			return nil, Fail(ExitNo, "%s has %s; %s", file, Plural(len(diagnostics.Only(authored.SeverityError)), "error", "errors"), consequence)
		}
		for _, d := range declared {
			all = append(all, d.Declaration)
		}
		c = next
	}
	return all, nil
}

// InForce is what is in force at the end of a session. If the session does not exist,
// it is a scheduler without declarations and the zero values.
type InForce struct {
	*choreography.Scheduler
	Scene *scene.Scene
	Head  eventlog.Head
}

// InForce returns what is in force at the end of a session.
func (a *App) InForce(ctx context.Context, name string) (InForce, error) {
	none := InForce{Scheduler: choreography.NewScheduler()}
	engine, err := a.OpenReading()
	if e, ok := errors.AsType[*ExitError](err); ok && e.Code == ExitNotFound {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	defer engine.Close()
	travel, err := engine.Replay(name)
	if errors.Is(err, eventlog.ErrNoSession) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	last, err := travel.At(ctx, MomentOf(travel.Head().Seq))
	if err != nil {
		return none, err
	}
	p, ok := last.State(session.ProjectionPerformances).(Scheduling)
	if !ok {
		return none, fmt.Errorf("the performances of %q have no scheduler", name)
	}
	return InForce{p.Scheduler(), session.StageOf(last).Scene(), last.Head()}, nil
}

// Changed returns the declarations that would have an effect if all came into force in
// their order.
func (f *InForce) Changed(all []language.Declaration) (changed []language.Declaration) {
	return lint.Changed(f.Unchanged(all), f.Scene, all)
}

// DeclarationsText counts declarations by kind: "2 choreographies and 1 scene".
func DeclarationsText(all []language.Declaration) string {
	many := map[string]string{"choreography": "choreographies", "sequence": "sequences", "easing": "easings", "binding": "bindings", "scene": "scenes"}
	counts := map[string]int{}
	var words []string
	for _, d := range all {
		word := d.Word()
		if counts[word] == 0 {
			words = append(words, word)
		}
		counts[word]++
	}
	var parts []string
	for _, word := range words {
		parts = append(parts, Plural(counts[word], word, many[word]))
	}
	if n := len(parts) - 1; n > 0 {
		return strings.Join(parts[:n], ", ") + " and " + parts[n]
	}
	return strings.Join(parts, "")
}

// ReadScene reads the scene of a file, of several the last; nil for no file.
func (a *App) ReadScene(ctx context.Context, file string) (*scene.Scene, error) {
	if file == "" {
		return nil, nil
	}
	declared, err := a.ReadDeclared(ctx, new(language.Catalog), []string{file}, "nothing was drawn")
	if err != nil {
		return nil, err
	}
	var found *scene.Scene
	for _, d := range declared {
		if sc, ok := d.(*scene.Scene); ok {
			found = sc // a scene replaces the one before it
		}
	}
	if found == nil {
		return nil, Fail(ExitNo, "%s has no scene; a scene has the member \"sajou\": \"scene\"", file)
	}
	return found, nil
}
