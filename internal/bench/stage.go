package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// stage measures what makes choreographies visible: commands among many active
// performances, the memory of these, and pictures.
func (b *bench) stage() error {
	for _, active := range b.scale.active {
		if err := b.commands(active); err != nil {
			return err
		}
	}
	return b.pictures()
}

// walkers is how many entities share the walks of many performances.
const walkers = 200

// walk is a performance that makes a command now and then for ever: each lap
// is a complete and the next start.
const walk = `{"on":"walk","steps":[{"action":"repeat","times":90000,"steps":[{"action":"move","entity":"signal.who","to":{"x":10,"y":20},"duration":1000}]}]}`

// crowd returns a scheduler with a stage and that many performances, whose
// laps end at different times, one after the other.
func crowd(active int) (*choreography.Scheduler, *stage.Stage, error) {
	declarations, remarks := language.Parse("walk.json", []byte(walk))
	if err := remarks.Err(definition.ErrInvalid); err != nil {
		return nil, nil, err
	}
	s, st := choreography.NewScheduler(), stage.New(stage.Config{})
	s.Observe(st, st)
	if err := s.Define(declarations[0]); err != nil {
		return nil, nil, err
	}
	st.Choreographed()
	for i := range active {
		payload, err := signal.ParseValue(fmt.Appendf(nil, `{"who":"walker-%d"}`, i%walkers))
		if err != nil {
			return nil, nil, err
		}
		s.Advance(time.Second * time.Duration(i) / time.Duration(active))
		s.Signal(uint64(i+1), &signal.Signal{Type: "walk", Payload: payload})
	}
	s.Advance(time.Second)
	return s, st, nil
}

// commands measures commands among active performances: the scheduler's time
// moves from one boundary to the next, and the stage takes in each.
func (b *bench) commands(active int) error {
	var allocs, bytes float64
	name := fmt.Sprintf("commands on the stage, %d active", active)
	rounds, err := b.alone(name, func() (measurement, error) {
		before := heap()
		s, st, err := crowd(active)
		if err != nil {
			return measurement{}, err
		}
		bytes = float64(heap() - before)
		var made uint64
		m, err := timed(b.scale.commands, func() error {
			before := mallocs()
			for n := 0; n < b.scale.commands; n += 2 {
				next, _ := s.Next()
				s.Advance(next)
			}
			made = mallocs() - before
			return nil
		}, nil)
		allocs = float64(made) / float64(b.scale.commands)
		if s.Active() != active {
			return m, fmt.Errorf("%d performances are active, not %d", s.Active(), active)
		}
		runtime.KeepAlive(st)
		return m, err
	})
	if err != nil {
		return err
	}
	if active == 1 {
		b.lone = bytes // the definition above all
	}
	b.rateAlone(name, "commands", rounds, 0)
	b.add(result{Name: fmt.Sprintf("allocations a command, %d active", active), Value: allocs})
	if active == slices.Max(b.scale.active) {
		b.add(result{Name: "memory of an active performance, its stage included", Value: (bytes - b.lone) / float64(active-1), Unit: "bytes"})
	}
	return nil
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// pictures measures frames of a stage with 200 entities.
func (b *bench) pictures() error {
	entities := make([]map[string]any, walkers)
	for i := range entities {
		entities[i] = map[string]any{
			"id": fmt.Sprintf("walker-%d", i), "look": []string{"person", "robot", "bird", "box"}[i%4],
			"at": map[string]any{"x": 30 + i*37%900, "y": 40 + i*53%480},
		}
	}
	text, err := json.Marshal(map[string]any{"sajou": "scene", "version": 1, "entities": entities})
	if err != nil {
		return err
	}
	sc, remarks := scene.Parse("crowd.json", text)
	if err := remarks.Err(definition.ErrInvalid); err != nil {
		return err
	}
	st := stage.New(stage.Config{})
	st.SetScene(sc)
	frame := st.Frame()
	svg := func(int) error {
		if len(picture.Draw(frame, picture.Options{}).AppendSVG(nil)) == 0 {
			return fmt.Errorf("an empty picture")
		}
		return nil
	}
	raster := picture.NewRasterizer()
	var out bytes.Buffer
	png := func(int) error {
		out.Reset()
		return picture.EncodePNG(&out, raster.Image(picture.Draw(frame, picture.Options{}), 0))
	}
	moving := *frame
	moving.Figures = slices.Clone(frame.Figures)
	walk := func(i int) error {
		for j := range moving.Figures { // to places that hardly any two frames share
			moving.Figures[j].X = frame.Figures[j].X + float64(i)*.618 + float64(j%7)*float64(i)*.0717
		}
		out.Reset()
		return picture.EncodePNG(&out, raster.Image(picture.Draw(&moving, picture.Options{}), 0))
	}
	image := func(int) error {
		raster.Image(picture.Draw(frame, picture.Options{}), 0)
		return nil
	}
	for _, c := range []struct {
		name string
		draw func(int) error
	}{{"SVG", svg}, {"pixels, 960x540", image}, {"PNG, 960x540", png}, {"PNG, 960x540, all in motion", walk}} {
		name := fmt.Sprintf("pictures of %d entities, %s", walkers, c.name)
		rounds, err := b.alone(name, func() (measurement, error) {
			return timed(b.scale.frames, func() error {
				for i := range b.scale.frames {
					if err := c.draw(i); err != nil {
						return err
					}
				}
				return b.ctx.Err()
			}, nil)
		})
		if err != nil {
			return err
		}
		b.rateAlone(name, "frames", rounds, 0)
	}
	return nil
}

// moments measures the stage at random moments of a long session, between
// entries too.
func (b *bench) moments(eng *sajou.Engine, last eventlog.Seq) error {
	rng := rand.New(rand.NewPCG(3, 4)) // the same moments in every run
	travel, err := eng.Replay("bench")
	if err != nil {
		return err
	}
	name := fmt.Sprintf("stage at a random moment of %d", last)
	rounds, err := b.each(name, b.scale.states, func(int) error {
		m := replay.Moment{Seq: eventlog.Seq(rng.Uint64N(uint64(last)-1) + 1), Offset: time.Duration(rng.Int64N(int64(200 * time.Millisecond)))}
		fold, err := travel.At(b.ctx, m)
		if err != nil {
			return err
		}
		if f := session.StageOf(fold).Frame(); f == nil || len(f.Figures) == 0 {
			return fmt.Errorf("nothing is on the stage at %v", m)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.add(result{Name: name + ", p50", Value: rounds.percentile(0.5), Unit: "ms"}, rounds)
	b.add(result{Name: name + ", p99", Value: rounds.percentile(0.99), Unit: "ms", Goal: ptr(50), lower: true, onUnit: true}, rounds)
	return nil
}
