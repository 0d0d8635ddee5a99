package agents

// The texts of this file and of world/problem.go are part of the format of the log.
// Records of refusals hold them, a request that is repeated is answered by them, and
// folding a log again must give the same bytes. No text may change; a new rule gets a
// new text.

// The reasons of cancellations.
const (
	ReasonStale    = "stale_due_to" // the reason of a stale generation begins with it, see textStale
	ReasonUser     = "user_requested"
	ReasonReplaced = "replaced_by_new_token"
	ReasonLeft     = "agent_left"
	ReasonTimeout  = "deadline_exceeded"
)

// ReasonConflict is the only reason of each problem of an [ErrIntentConflict]. Such a
// refusal leaves no record, because it may change; the text reveals nothing but the
// places in the agent's own intent.
const ReasonConflict = "not possible any more after what came first in its quantum"

// The declassified reasons, see [Declassified]. None of them names an entity, a
// position, a distance or a number.
const (
	reasonOccupied = "something is there"
	reasonTooFar   = "too far"
	reasonLimit    = "beyond a limit of the world"
	reasonHandler  = "refused by the handler"
	reasonTaken    = "the id is taken"
)

// The reasons of problems and refusals that are based on what the agent may know.
const (
	textForbidden = "no permission for %s"
	textStale     = "%s_seq_gap_%d_threshold_%d" // ReasonStale, the gap, the threshold
	textConflict  = "_conflict"                  // behind ReasonStale, for agents that only conflicts interrupt

	textPayloadSize = "%d bytes, at most %d"
	textUnknownKind = "%q is no kind of intent"
	textMetadata    = "a relationship keeps a type and a strength only; put metadata into an entity"
	textBodiless    = "no entity %q in the world, so the message would reach no agent; create the entity first"
	textMissing     = "missing"
	textSilence     = "nothing is said"
	textTooLong     = "more than %d characters"
	textRefusedWord = "the word %q is refused"
	textOccupiedBy  = "%q is there"
	textDistance    = "%g away, at most %g"
	textInteraction = "want one of %s"
	textPanicked    = "%s panicked: %v" // a validator's name and the value
	textEffectError = "%s: %v"          // the reason of a world.EffectError and its sentinel

	textMayNotMake   = "%s may not make the entity %q"
	textMayNotWrite  = "%s may not write %q of %q"
	textMayNotRelate = "%s may not relate %q and %q"
	textMayNot       = "%s may not %s" // the kind, and one of:
	textWrite        = "write %q of %q"
	textPlace        = "place %q"
	textRemove       = "remove %q"
	textRelate       = "relate %q and %q"
	textChangeWorld  = "change the world"
)
