package stage

import (
	"math"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/stage/scene"
)

// beam is a ray from an entity to another entity or to a point. It follows its ends.
type beam struct {
	from  *entity
	to    *entity     // nil: a point
	at    scene.Point // the point
	name  string      // of its target, "" for a bare point
	color string
	width float64
	began time.Duration

	claim *claim  // of the act that makes it grow; nil once it has grown
	grown float64 // how far it has grown, without a claim
}

const (
	beamColor = "gold"
	beamWidth = 3
	widest    = 1000
)

// reach returns how far the beam has grown, 0 to 1.
func (b *beam) reach(at time.Duration) float64 {
	if b.claim == nil {
		return b.grown
	}
	return math.Max(0, math.Min(b.claim.act.progress(at), 1))
}

func (b *beam) frame(at time.Duration) Beam {
	from, to := b.from.position(at), b.at
	if b.to != nil {
		to = b.to.position(at)
	}
	p := b.reach(at)
	return Beam{
		From: b.from.id, To: b.name, FromX: from.X, FromY: from.Y,
		ToX: between(from.X, to.X, p), ToY: between(from.Y, to.Y, p),
		Color: b.color, Width: b.width, Opacity: 1,
	}
}

// drawBeam performs the action drawBeam for one entity.
func (s *Stage) drawBeam(e *entity, to resolvedPlace, color string, width float64) {
	s.removeBeams(e, false)
	if len(s.beams) >= maxBeams {
		s.report(noteLimit, e.id, "beams")
		return
	}
	e.touched = true
	b := &beam{from: e, to: to.entity, name: s.intern(to.name), color: color, width: width, began: s.now, grown: 1}
	if b.to == nil {
		b.at = to.at
	}
	if !s.current.instant {
		b.grown = 0
		b.claim = s.claim(e)
		b.claim.kind, b.claim.beam = asBeam, b
	}
	s.beams = append(s.beams, b)
}

// removeBeams removes the beams from e: those that no act makes grow, or all of them.
func (s *Stage) removeBeams(e *entity, growing bool) {
	s.beams = slices.DeleteFunc(s.beams, func(b *beam) bool {
		if b.from != e || b.claim != nil && !growing {
			return false
		}
		if b.claim != nil {
			s.dropClaim(b.claim)
		}
		return true
	})
}

func (s *Stage) dropBeam(b *beam) {
	if i := slices.Index(s.beams, b); i >= 0 {
		s.beams = slices.Delete(s.beams, i, i+1)
	}
}
