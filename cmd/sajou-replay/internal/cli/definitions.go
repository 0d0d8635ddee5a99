package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
)

// Definitions are the files of --define, through which a command shows a session.
type Definitions []string

// DefinitionsHelp is the part of the help that describes --define.
const DefinitionsHelp = `With --define, the session is seen through other declarations: choreographies,
sequences, easings, bindings, a scene. Each takes the place of the recorded one of
its name, at the same entry; one that the session does not have comes into force
with the first entry. Nothing is recorded.`

// Flag adds --define to a command.
func (d *Definitions) Flag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar((*[]string)(d), "define", nil, "see the session through the declarations of `FILE`; repeatable")
	_ = cmd.MarkFlagFilename("define", "json", "yaml", "yml")
}

// SeeThrough makes the session one that was recorded with other declarations. Without
// files it does nothing. Declarations that cannot come into force are a misuse.
func (a *App) SeeThrough(ctx context.Context, t *OpenedSession, files Definitions) error {
	if len(files) == 0 {
		return nil
	}
	last, err := t.Travel.At(ctx, MomentOf(t.Travel.Head().Seq))
	if err != nil {
		return err
	}
	// The files may refer to what the session declares.
	catalog := new(language.Catalog)
	if s, ok := last.State(session.ProjectionPerformances).(interface {
		Scheduler() *choreography.Scheduler
	}); ok {
		catalog = s.Scheduler().Catalog()
	}
	declared, err := a.ReadDeclared(ctx, catalog, files, "nothing was shown")
	if e, ok := errors.AsType[*ExitError](err); ok {
		return &ExitError{ExitMisuse, e.Cause}
	}
	if err != nil {
		return err
	}
	changed, err := variant.New(ctx, t.Log, variant.Edits{Define: declared})
	if errors.Is(err, variant.ErrChange) {
		return Misuse("--define: %w", err)
	}
	if err != nil {
		return err
	}
	t.changed = changed
	t.Travel = session.NewReplay(changed, t.Engine.Projections(), nil)
	t.Anchor(t.Travel)
	return nil
}
