// Package session says what a session's log means: which entries there are, how
// each is encoded and shown, and which projections fold them.
//
// Package eventlog stores entries of a few kinds and does not look into them.
// This package gives each its meaning. It reads no clock, waits for nothing and
// writes to no store, so that everything above it, the writer of a live session as
// well as a replay, agrees on one reading of a log.
//
// # What a session records
//
// The data of a signal entry is the signal itself, as package signal encodes it. The
// data of every other entry is an array of two: a word that says what the entry is,
// and a value.
//
//	kind     word          value
//	session  opened        {"time": authority, "rules": number}
//	session  clock         {"origin": ns}
//	session  tick          {}
//	session  dropped       {}
//	define   choreography, sequence, easing, binding, scene, episode
//	                       the declaration as it was written
//	signal                 an envelope, see package signal
//	effect   words of package agents, such as effect, agent, reject, token
//	beat     words of package director, such as turn_opened, beat_landed
//	beat     message       {"turn", "attempt", "role", "text"}
//
// The first batch of a session begins with its opened entry: where the session's time
// comes from ([TimeAuthority]) and which rules fold it ([Rules]). A clock entry says
// when session time began, in Unix time, where no signal has said so. A tick entry
// records that time alone has changed something. A dropped entry keeps the place of one
// that was left out of a variant of a recorded session; it changes nothing. Of a variant
// the opened entry can have the member "define", see [WithDeclarations].
//
// A define entry brings a declaration into force. The declaration is recorded as it
// was written, so that a log replays without any file beside it; what it refers to
// by name is in force before it.
//
// An effect entry holds one record of the agents' world: a decision, never a
// request. A beat entry holds one event of the director, or a message: what the user
// or the character said. The director's events hold only the digest of a message, so
// that a session can leave the text out of its log.
//
// Where an episode asks for it, events of the director become signals, called cue
// signals: their source is "director" ([CueSource]) and their id is "cue-" followed
// by the number of their own entry. A cue signal follows the event in the same batch.
//
// Nothing in a log depends on the clock, the machine or chance, except through the
// values that were recorded: the same records at the same times under the same
// session name give the same head hash in every store.
//
// # How a session is folded
//
// [Projections] returns the standard projections, which live sessions and replays
// share: the session itself ([State]), the performances ([Performances]), the
// stage ([StageOf]), the world of agents ([WorldOf]) and the director
// ([DirectorOf]). An entry is applied by letting session time run up to and
// including its own, and then letting it happen.
//
// docs/glossary.md has the nouns of all packages.
package session

import (
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// The names of the projections.
const (
	// ProjectionSession is what is known of the session itself: its time,
	// and how many entries of each kind it has.
	ProjectionSession = "session"

	// ProjectionPerformances is the choreographer: the definitions in force
	// and the performances that are under way.
	ProjectionPerformances = "performances"

	// ProjectionStage is what a viewer sees: the entities, beams and sounds that
	// the scene and the performances make.
	ProjectionStage = "stage"

	// ProjectionWorld is the world that agents share: its entities, which agents are
	// registered, and what each of them has been shown.
	ProjectionWorld = "world"

	// ProjectionDirector is the director: the episode that is played and how far it
	// has come.
	ProjectionDirector = "director"
)

// The versions of the projections. An image of another version is never restored,
// so a change to what a state means or to its bytes needs another number.
const (
	sessionVersion      = 1
	performancesVersion = 2
	stageVersion        = 3
	worldVersion        = 2
	directorVersion     = 1
)

// ProjectionConfig says how a set of projections differs from the standard one.
// The zero value is the standard one.
type ProjectionConfig struct {
	// Actions are custom actions of the stage, by name.
	Actions map[string]stage.Action

	// World is what the program adds to the agents' world.
	World agents.Options

	// Scene, unless nil, is the scene of the stage from the beginning, and
	// scenes that the log brings into force are ignored: a session seen
	// in another scene.
	Scene *scene.Scene
}

// Projections returns the projections of a session, in the order in which they
// advance. Images made with one configuration are not restored with another. It
// panics if cfg.World is invalid; [agents.NewCore] reports that as an error.
func Projections(cfg ProjectionConfig) projection.Set {
	return projection.Set{
		sessionProjection(),
		performancesProjection(),
		stageProjection(cfg),
		worldProjection(cfg.World),
		directorProjection(),
	}
}

// fitsTime returns why a state at session time now cannot belong to a fold at
// another.
func fitsTime(now, at time.Duration) error {
	if now != at {
		return fmt.Errorf("sajou: a state at session time %v in a fold at %v", now, at)
	}
	return nil
}
