package explore

import (
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// Play makes one move of an [Exploration.Path].
func Play(s *director.State, m Move) ([]signal.Record, error) { return play(s, m) }

// Start returns the move that begins a play of an episode.
func Start(e *episode.Episode) Move { return startOf(e) }
