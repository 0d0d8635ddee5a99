package episode

import "slices"

// The words of events, in about the order in which a session has them. They are part
// of the format of the log. Each event is an object; its member turn is the turn it
// belongs to.
const (
	EpisodeStarted     = "episodeStarted"     // with the digests of the episode and its doctrine, and the flags
	EpisodeRevised     = "episodeRevised"     // another version of the episode replaces it
	TurnOpened         = "turnOpened"         // with the digest of the user's text, or the choice
	ChoiceDeclined     = "choiceDeclined"     // the user typed, or a revision removed it
	GuidanceIssued     = "guidanceIssued"     // a replay derives it again
	ResponseRecorded   = "responseRecorded"   // with the digest and the end of the response
	AttemptDropped     = "attemptDropped"     // the effects of the response are undone
	JudgementAsked     = "judgementAsked"     // with the digest of the prompt
	VerdictRecorded    = "verdictRecorded"    // of a judge, or of a search for keywords
	BeatHeld           = "beatHeld"           // found, but another choice is pending
	BeatLanded         = "beatLanded"         // verified, assumed or forced
	BeatForced         = "beatForced"         // the authored line is part of the scene
	BeatMissed         = "beatMissed"         // the beat was given up
	DeadlineMissed     = "deadlineMissed"     // once for each beat
	ChoiceOffered      = "choiceOffered"      // to the user
	ChoiceSelected     = "choiceSelected"     // by the user
	FlagSet            = "flagSet"            // with its cause
	FlagCleared        = "flagCleared"        // by an option or a rule of the author
	ObjectiveCompleted = "objectiveCompleted" // with the condition that held
	ObjectiveFailed    = "objectiveFailed"    // with the condition that held
	EpisodeFailed      = "episodeFailed"      // by a beat whose on_miss is fail
	PropRevealed       = "propRevealed"       // once for each prop
	VisualTriggered    = "visualTriggered"    // a picture of the scene is due
	SuggestionMade     = "suggestionMade"     // of an episode to play next
	TurnEvaluated      = "turnEvaluated"      // the turn is over
)

// Words returns the words of all events. [Word], that of declarations, is not one of
// them.
func Words() []string { return slices.Clone(eventWords) }

var eventWords = []string{
	EpisodeStarted, EpisodeRevised, TurnOpened, ChoiceDeclined, GuidanceIssued, ResponseRecorded, AttemptDropped, JudgementAsked, VerdictRecorded,
	BeatHeld, BeatLanded, BeatForced, BeatMissed, DeadlineMissed, ChoiceOffered, ChoiceSelected, FlagSet, FlagCleared,
	ObjectiveCompleted, ObjectiveFailed, EpisodeFailed, PropRevealed, VisualTriggered, SuggestionMade, TurnEvaluated,
}
