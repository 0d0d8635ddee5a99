package language

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/choreography/definition"
)

// The reasons for which [CompileDeclaration], [Catalog.With] and [Catalog.Bind]
// refuse a declaration. They are part of the format of define entries: never reword
// them. [Parse] reports them too, with a place in the text.
const (
	// Of any declaration.
	reasonNotObject   = "want an object"
	reasonUnknownWord = "unknown word %q"
	reasonNameMissing = "%s is missing"
	reasonNameTooLong = "%s is longer than %d bytes"
	reasonNamePrefix  = "%s must not begin with %s"
	reasonIDPrefix    = "an id must not begin with %s"
	nameOfBinding     = "the id of the binding"
	nameOfEasing      = "the name of the easing"
	nameOfSequence    = "the name of the sequence"

	// Of a choreography that extends another.
	reasonExtendsKind   = "extends must be the id of a choreography, not %s"
	reasonExtendsItself = "choreography %s extends itself"
	reasonNoBase        = "there is no choreography %s to extend"
	reasonNotAValue     = "written out, it is nested too deeply or asks one thing twice"

	// Of a binding.
	reasonBinding      = "binding %s: %s"
	reasonNoEntity     = "the entity it is for is missing: write targetEntityId"
	reasonEntityRefers = "the entity must be named, not taken from the signal"
	reasonNotBindable  = "%s cannot be bound: there are %s"
	reasonNoSignals    = "it has no signals: write sourceType, or sourceChoreographyId"
	reasonNeedsAction  = "%s needs an action with %s"
	reasonTarget       = "targetValue must be a number, not %s"
	reasonDuration     = "durationMs must be a number of milliseconds from 0, not %s"
	reasonRevertDelay  = "revertDelayMs must be a number of milliseconds from 0, not %s"
	reasonMappingKind  = "mapping must be an object, not %s"
	reasonRange        = "%s must be an array of two numbers"
	reasonNoSource     = "binding %s: there is no choreography %s"
	reasonOtherSource  = "binding %s: it is for %s, but choreography %s answers to %s"

	// Of an easing.
	reasonEasing  = "easing %s: %w"
	reasonNoCurve = "easing %s has no curve"
	reasonIsCurve = "%s is a curve already: choose another name"

	// Of a sequence and its arguments.
	reasonSequence      = "sequence %s: %w"
	reasonNoSteps       = "sequence %s has no steps"
	reasonNoInclude     = "sequence %s: there is no sequence %s to include"
	reasonParamName     = "a parameter cannot be called %s: use letters, digits, _ and -"
	reasonParamTwice    = "two parameters are called %s"
	reasonTooManyParams = "more than %d parameters"
	reasonParamsKind    = "params must be an array of names, or an object of names and defaults, not %s"
	reasonWithKind      = "with must be an object of arguments, not %s"
	reasonNoParam       = "sequence %s has no parameter %s; %s"
	reasonTakesNone     = "it takes none"
	reasonTakes         = "it takes "
	reasonNoArgument    = "sequence %s needs an argument %s: write it in with"
	reasonUnlistedParam = "sequence %s uses param.%s, but has no such parameter"
	reasonNotAName      = "%s must be the name of an entity, but is %s"
	reasonNoSequence    = "there is no sequence %s"
	reasonIncludeCycle  = "sequences include each other without end: %s"
	reasonIncludeDepth  = "sequences include each other deeper than %d"

	// Of steps that are expanded.
	reasonStepDepth     = "steps stand inside each other deeper than %d"
	reasonTimes         = "times of repeat must be a whole number from 0, not %s"
	reasonEvery         = "every of stagger must be a number of milliseconds from 0, not %s"
	reasonEach          = "each of stagger must be an array, not %s"
	reasonTooManySteps  = "written out, there are more than %d steps"
	reasonTooManyBytes  = "written out, the steps take more than %d bytes"
	reasonTooManyVisits = "to be written out, too many steps have to be gone through that write nothing"
	reasonTooMuchWaste  = "to be written out, too many bytes have to be gone through that write nothing"
)

// refused returns the error about a declaration that cannot come into force.
func refused(reason string, args ...any) error {
	return fmt.Errorf("%w: %w", definition.ErrInvalid, fmt.Errorf(reason, args...))
}
