package cli

import (
	"errors"

	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/workspace"
)

// AsEvalError returns the error of an expression that err wraps.
func AsEvalError(err error) (*where.EvalError, bool) { return errors.AsType[*where.EvalError](err) }

// FoldFor makes the states of the session have what an expression reads, which may be
// nil: the files of the workspace, if it names them.
func (t *OpenedSession) FoldFor(x *where.Expression) error {
	if x == nil || !x.Reads(workspace.Name) {
		return nil
	}
	if t.changed != nil {
		t.Travel = session.NewReplay(t.changed, answer.Projections(), nil)
		t.Anchor(t.Travel)
		return nil
	}
	travel, err := t.Engine.ReplayWith(t.Name, answer.Projections())
	if err != nil {
		return err
	}
	t.Anchor(travel)
	t.Travel = travel
	return nil
}

// ExpressionHelp is the part of the help that describes expressions.
const ExpressionHelp = `Expressions are written in CEL (https://cel.dev). The variables are
  seq, at       the number of the entry, and its session time in ms (a double, as
                in at > 1500.0)
  entry         the entry: seq, at, kind, hash; for a signal id, type, timestamp,
                source, correlationId, metadata, payload, problem, raw; for other
                kinds define, effect, beat or session
  state, prev   the states after and before the entry: seq, at, session,
                performances, stage (entities, beams, sounds, diagnostics),
                world, director (turn, beats, flags, choices_made, directive),
                workspace (the files by their paths, each with text, exists, sure,
                complete, certainty, lines, by, touched, pending, spans)
A condition that reads a missing member is false; test one with
has(entry.payload.x). A name with a hyphen is written in brackets, as in
state.world.entities["agent-1"]; test it with "agent-1" in state.world.entities.
A file is found by the end of its path if one file alone has it, as in
state.workspace["main.go"].text.contains("panic("). Names are checked before the
first entry is read.`

// ScanError returns the error of an expression without the errors around it, which
// repeat the entry.
func ScanError(err error) error {
	if failure, ok := AsEvalError(err); ok {
		return failure
	}
	return err
}
