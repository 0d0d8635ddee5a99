package world

import "errors"

// Errors of [World.Plan], [World.CheckAs] and [World.Apply], one for each reaction of
// a caller. Each is wrapped in an [*EffectError]. Their texts are part of the format
// too: package agents appends them to the reason of a recorded refusal.
var (
	// ErrPayload says that the effect itself is malformed.
	ErrPayload = errors.New("malformed effect")
	// ErrUnknownEntity says that the effect names an entity that does not exist.
	ErrUnknownEntity = errors.New("no such entity")
	// ErrLimit says that the world would outgrow one of its bounds.
	ErrLimit = errors.New("beyond a limit of the world")
	// ErrRefused says that the handler of the effect's kind refused it.
	ErrRefused = errors.New("refused by the handler")
)

// The reasons of an [EffectError] that a refused intent records. They are part of the
// format: entries of existing logs hold them, and a replayed refusal must be equal to
// the recorded one. No text may change. The reasons of [ErrLimit] that are not here
// never reach an entry; an agent is sent one general text in their place.
const (
	textMissing       = "missing"
	textKind          = "want 1 to %d bytes"
	textSource        = "more than %d bytes"
	textPayloadSize   = "more than %d bytes"
	textSimTime       = "no finite number"
	textBadID         = "an id has 1 to %d bytes"
	textWantID        = "%v, want an id"
	textUnknownEntity = "%q"
	textWantString    = "%v, want a string"
	textWantNumber    = "%v, want a number"
	textWantBool      = "%v, want true or false"
	textWantObject    = "%v, want an object"
	textWantNameArray = "%v, want an array of names"
	textWantNames     = "%v, want names"
	textWantType      = "want a string of at most %d bytes"
	textHiddenTypes   = "the agent is not shown the types of relations, so it cannot choose one"
	textChannel       = "%v, want public, team or private"
	textPosition      = "want an array of two or three numbers"
	textCoordinate    = "element %d is no number"
	textFar           = "element %d is beyond %g"
	textHandlerPanic  = "the handler panicked: %v"

	// Of a change that a handler returned.
	textStagedID     = "%q: %v"
	textStagedValue  = "the value of field %q is none"
	textStagedEntity = "entity %q: an entity is an object"
	textStagedPlace  = "%q is placed beyond %g"
)
