// Package director keeps a played scene on its script.
//
// An author writes an episode: beats, which are moments that must happen, with
// the turns by which they should happen; the choices that they offer the user;
// flags, objectives and props. The characters improvise. Before each turn the
// director gives the character guidance: a beat to work in, and its urgency. After
// the turn it decides whether the beat has landed. The choice of a beat that landed
// becomes the user's next line. The rules are those of the beat contract
// (ADR-009); comments name its sections.
//
// # The fold
//
// A [State] is the result of the events of one session. Only [State.Apply] changes
// it, one event at a time. The other methods decide: they take an input, change
// nothing, and return [signal.Record] values. The caller appends these to its log,
// all or none, and then applies them. Live running and replay are therefore the
// same code, and a replay asks no model: a model's verdict is an event like any
// other.
//
//	start      [State.Start]    the episode's declaration, episodeStarted
//	turn n     [State.Guide]    turnOpened, guidanceIssued
//	           the character responds, with [Guidance.Section] in its prompt
//	           [State.Respond]  responseRecorded, verdicts, and [Question] values
//	           [State.Judge]    the answer of a model to one of them
//	           the last verdict beatLanded, choiceOffered, … turnEvaluated
//	           [State.Choose]   choiceSelected, flagSet: the input of turn n+1
//	any time   [State.ExternalEvent]  flagSet, flagCleared: by the episode's rules
//	                            about signals and about effects in the agents' world
//	           [State.Revise]   a declaration, episodeRevised
//	any event  [State.Signals]  the signals to choreographies that rules make of it
//
// The declaration of an episode is an entry of its own, as that of a choreography
// is, and events name the episode by its digest. [Declares] distinguishes a
// declaration from an event.
//
// Turns are numbered from 1, one for each exchange of the user and the character.
// A response that is generated again is another attempt of the same turn: the
// effects of the attempt before are undone, and its events stay in the log.
//
// # What is promised
//
//   - A beat lands only if it was eligible before the response and still is:
//     pending, the beat it requires completed, the flag it requires set, and no
//     choice open that replaces the input.
//   - A turn has at most one directive and offers at most one choice.
//   - A choice is made once. Making it again returns the first result.
//   - The user can never land a beat: only responses and verdicts are searched.
//   - Another attempt of a response undoes the effects of the attempt before, and
//     never the effects of external events.
//   - Rules cannot set and clear a flag without end through each other's signals:
//     package episode refuses such rules.
//   - Guidance is a function of the fold. [State.CheckGuidance] derives it again and
//     compares it with the recorded one.
//
// # Limits
//
// Word boundaries, case folding and normal forms are those of the Unicode version
// that the program was built with. The result of a search is recorded, and a replay
// does not search again. A response can deceive a judge; its material is delimited
// and escaped, which makes that harder and not impossible.
//
// The package is pure: no clock, no goroutine, no input or output.
//
// docs/glossary.md has the nouns of all packages.
package director
