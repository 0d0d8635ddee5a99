// Package director keeps a played scene on its script.
//
// An author writes an episode: beats, which are moments that must happen, with
// the turns by which they should; the choices that they put before the user;
// flags, objectives and props. Characters improvise. Before each turn the
// director says which beat to work in, and how urgently; after it, whether the
// beat has landed. When it has, its choice becomes the user's next line.
//
// # The fold
//
// A [State] is what one session's events add up to. Only [State.Apply] changes
// it, one event at a time. Everything else decides: it takes a state and what
// happened, changes nothing, and returns [Record] values, which the caller
// appends to its log, all or none, and then applies. Live running and replay
// are therefore the same code, and a session can be read again without a model
// ever being asked anew: a model's verdict is an event like any other.
//
//	start      [State.Start]    the episode's declaration, episodeStarted
//	turn n     [State.Guide]    turnOpened, guidanceIssued
//	           the character responds, with [Guidance.Section] in its prompt
//	           [State.Respond]  responseRecorded, verdicts, and [Question] values
//	           [State.Judge]    the answer of a model to one of them
//	           then by itself   beatLanded, choiceOffered, … turnEvaluated
//	           [State.Choose]   choiceSelected, flagSet: the input of turn n+1
//	any time   [State.Heard]    flagSet, flagCleared: what rules make of signals
//	                            and of effects in the agents' world
//	           [State.Revise]   a declaration, episodeRevised
//	any event  [State.Signals]  what rules make of it for choreographies
//
// An episode is declared by itself, as a choreography is, and events name it by
// its digest: [Record.Declares] tells such a record from an event.
//
// A turn has the number of the exchange that is being prepared, from 1. All of
// an exchange has the same number, however often it is tried again. A response
// that is generated anew is another attempt of its turn: what came of the one
// before is undone, and its events stay in the log.
//
// # What is promised
//
//   - A beat lands only by a response before which it was eligible, if it still
//     is: pending, the beat it requires completed, the flag it requires set, and
//     no choice open that replaces the input.
//   - One directive a turn, and at most one choice put before the user a turn.
//   - A choice is made once. Making it again returns the first result.
//   - The user can never land a beat: only responses and verdicts are looked at.
//   - A response that is made anew undoes what came of the one before, and never
//     what was heard from outside.
//   - Rules cannot set and clear a flag by way of each other's signals for ever.
//   - Guidance is a function of the fold: what was issued can be derived again,
//     and [State.CheckGuidance] does.
//
// # Limits
//
// Word boundaries, case folding and normal forms are those of the Unicode
// version this program was built with. What was found by them is recorded and
// never searched for again. A judge that is lied to can err; its material is
// delimited and escaped, which makes that harder and not impossible.
//
// The package is pure: no clock, no goroutine, no input or output.
package director

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/sajou-dev/sajou-go/signal"
)

// Word is what an episode is declared as.
const Word = "episode"

// Version is the version of the episode format that this package reads.
const Version = 1

// Errors about episodes.
var (
	// ErrEpisode is wrapped by errors about episodes that cannot be meant.
	ErrEpisode = errors.New("director: not a valid episode")
	// ErrVersion says that an episode was written in a later format.
	ErrVersion = errors.New("director: unknown version of the episode format")
)

// Digest names content: the SHA-256 of its compact JSON.
type Digest [sha256.Size]byte

// String returns the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// DigestOf returns the digest of a text.
func DigestOf(text string) Digest { return sha256.Sum256([]byte(text)) }

func digestOfValue(v signal.Value) Digest { return sha256.Sum256(v.AppendJSON(nil)) }
