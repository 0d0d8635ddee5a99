package agents

// DeclassifiedAnswer is one answer that reveals something that the agent's policy hides
// from it, because the world could not keep its rules otherwise.
//
// Everything else that reaches an agent is a function of what it may see, of the
// world's configuration and of its own requests. The list does not cover wall-clock
// timing.
type DeclassifiedAnswer struct {
	Name string
	// Code, Path and Reason are those of the refusal, word for word. They are ""
	// of an accepted request.
	Code         Code
	Path, Reason string
	// Meaning says what the answer reveals, and what it does not.
	Meaning string
}

// Declassified returns all declassified answers, in the order in which they are
// documented.
func Declassified() []DeclassifiedAnswer {
	return []DeclassifiedAnswer{
		{
			"occupied", ErrInvalid, "/payload/to", reasonOccupied,
			"A Move ends closer than min_separation to something whose position the agent may not know. " +
				"It tells neither what is there nor how far away it is. It is given only if nothing that the agent may know refuses the Move.",
		},
		{
			"own-distance", ErrInvalid, "/payload/to or /payload/target_id", reasonTooFar,
			"The agent is farther from where it moves to than max_move_distance, or from the known position of its target than max_interact_distance, " +
				"and may not know its own position. The distance is told only to an agent that may know both ends of it.",
		},
		{
			"limit", ErrInvalid, "", reasonLimit,
			"The effect would take the world, or something in it, beyond one of its bounds (MaxEntities, MaxEntityBytes and their like). " +
				"It does not tell which bound or what.",
		},
		{
			"handler", ErrInvalid, "", reasonHandler,
			"The program's Handler of the kind refused the effect in the world as it is. " +
				"Its own words are told only if it says the same about the world as the agent may see it.",
		},
		{
			"validator", ErrInvalid, "", "",
			"A Validator whose member Declassifies is set refused the intent in the world as it is. Path and Reason are the validator's own. " +
				"All other validators read the world as the agent may see it.",
		},
		{
			"taken", ErrInvalid, "/payload/entity_id", reasonTaken,
			"An intent that may make entities named an id that is in use. Ids are told of those prefixes alone that the configuration lets the agent make.",
		},
		{
			"tick", "", "", "",
			"Where ticks have the authority, max_quantum bounds what one tick decides. In which tick an intent is decided depends on how many others wait.",
		},
		{
			"sim-time", "", "", "",
			"The sim_time of an accepted effect is at least that of the effect before it, whose ever that was.",
		},
		{
			"class", "", "", "",
			"A generation that names classes is interrupted by an effect that the agent observes and that is of one of these kinds or conflict classes, " +
				"also where the agent sees no change. Effects that it does not observe interrupt nothing.",
		},
		{
			"present", "", "", "",
			"An answer is about the world as the agent may see it when it is decided. News of it may still be on its way to the agent.",
		},
	}
}
