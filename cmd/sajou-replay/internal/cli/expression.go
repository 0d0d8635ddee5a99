package cli

import (
	"errors"

	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
)

// AsEvalError returns the error of an expression that err wraps.
func AsEvalError(err error) (*where.EvalError, bool) { return errors.AsType[*where.EvalError](err) }

// Needs returns the data that an expression reads, for a scan.
func Needs(x *where.Expression) replay.Needs {
	n := replay.NeedsEntry
	if x.NeedsState() {
		n |= replay.NeedsState
	}
	if x.NeedsPrev() {
		n |= replay.NeedsPrev
	}
	return n
}

// InputOf returns the input of an expression at one step of a scan. It points into
// the step.
func InputOf(s *replay.ScanStep) where.Input {
	return where.Input{Entry: s.Entry, State: s.Fold, Prev: s.Prev()}
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
                world, director (turn, beats, flags, choices_made, directive)
A condition that reads a missing member is false; test one with
has(entry.payload.x). A name with a hyphen is written in brackets, as in
state.world.entities["agent-1"]; test it with "agent-1" in state.world.entities.
Names are checked before the first entry is read.`

// ScanError returns the error of an expression without the errors around it, which
// repeat the entry.
func ScanError(err error) error {
	if failure, ok := AsEvalError(err); ok {
		return failure
	}
	return err
}
