// Package partition divides the signals of one source into sessions. The names of
// the sessions are a configured name, a dot and a word that is derived from what a sender
// says: so a sender chooses among the parts of one session only, and a pattern "NAME.*"
// covers them.
//
// docs/glossary.md has the nouns of all packages.
package partition

import (
	"fmt"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/signal"
)

// Split says into which parts of one session signals go.
type Split string

// The splits.
const (
	SplitNone   Split = ""               // one session
	SplitNative Split = "native-session" // one for each session of the recorded program
	SplitSource Split = "source"         // one for each source of signals
	SplitDay    Split = "day"            // one for each day of arrival, UTC
)

// Splits returns all splits but none.
func Splits() []Split { return []Split{SplitNative, SplitSource, SplitDay} }

// Check refuses a split that does not exist, and a name to which no part can be added.
func (s Split) Check(session string) error {
	switch s {
	case SplitNone, SplitNative, SplitSource, SplitDay:
	default:
		return fmt.Errorf("no split %q: want native-session, source or day", string(s))
	}
	name := session
	if s != SplitNone {
		name = PartName(session, strings.Repeat("x", maxPart))
	}
	if err := chain.CheckName(name); err != nil {
		return fmt.Errorf("%q cannot be the name of a session: %w", session, err)
	}
	return nil
}

// maxPart bounds the derived word in the name of a part, in bytes.
const maxPart = 96

// unknownPart is the part of signals from which no word can be derived.
const unknownPart = "unknown"

// PartName returns the name of a part of a session. The word comes from a sender: letters
// and digits of ASCII, "-" and "_" stay, everything else becomes "_", and the name is
// cut. Words that differ in nothing else therefore give one part.
func PartName(session, word string) string {
	word = word[:min(len(word), maxPart)]
	safe := []byte(word)
	for i, c := range safe {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
			safe[i] = '_'
		}
	}
	if len(safe) == 0 {
		return session + "." + unknownPart
	}
	return session + "." + string(safe)
}

// Part returns the name of the session for a signal that arrives at a time.
func (s Split) Part(session string, sig *signal.Signal, now time.Time) string {
	switch s {
	case SplitNative:
		return PartName(session, nativeSession(sig))
	case SplitSource:
		return PartName(session, sig.Source)
	case SplitDay:
		return PartName(session, now.UTC().Format(time.DateOnly))
	default:
		return session
	}
}

// nativeSession returns the id of the session of the recorded program. The clients of
// Sajou send it as the correlation id.
func nativeSession(sig *signal.Signal) string {
	for _, name := range []string{"sessionId", "session_id", "session"} {
		if id := sig.Metadata.TextOf(name); id != "" {
			return id
		}
	}
	if sig.CorrelationID != nil {
		return *sig.CorrelationID
	}
	return ""
}
