package main

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/imagetest"
)

// speaking changes the picture at each signal, and once adds a ghost.
const speaking = `[
	{"on":"say","steps":[{"action":"typeText","entity":"speaker","text":"signal.text","duration":50}]},
	{"on":"haunt","steps":[{"action":"spawn","entity":"ghost","at":{"x":100,"y":100}}]}
]`

// bisections measures a search for the entry at which a picture goes wrong: the pictures
// that it renders, and the rate of the fold that finds its candidates.
func (b *bench) bisections() error {
	dir := b.path("bisected")
	if err := b.speak(dir); err != nil {
		return err
	}
	eng, err := sajou.Open(dir, sajou.Config{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	travel, err := eng.Replay("bench")
	if err != nil {
		return err
	}
	last := replay.Moment{Seq: travel.Head().Seq}
	var found *bisect.Findings
	name := fmt.Sprintf("bisect of a picture over %d entries", b.scale.bisected)
	rounds, err := b.alone(name, func() (measurement, error) {
		return timed(b.scale.bisected, func() error {
			found, err = bisectPicture(b.ctx, travel, last)
			return err
		}, nil)
	})
	if err != nil {
		return err
	}
	b.rateAlone(name, "entries", rounds, 0)
	goal := float64(2*bits.Len(uint(found.Candidates-1)) + bisect.DefaultProbes)
	b.add(result{Name: fmt.Sprintf("  rendered pictures, %d candidates", found.Candidates), Value: float64(found.Tests), Goal: &goal, lower: true, onUnit: true})
	return nil
}

// speak records the session that is searched.
func (b *bench) speak(dir string) error {
	eng, err := sajou.Open(dir, sajou.Config{})
	if err != nil {
		return err
	}
	ses, err := eng.Session(b.ctx, "bench")
	if err != nil {
		return errors.Join(err, eng.Close())
	}
	defs, remarks := language.Parse("speaking.json", []byte(speaking))
	err = remarks.Err(definition.ErrInvalid)
	if err == nil {
		_, err = ses.Define(b.ctx, defs...)
	}
	signals := make([]*signal.Signal, b.scale.bisected)
	for i := range signals {
		payload, wrong := signal.ParseValue(fmt.Appendf(nil, `{"text":"number %d"}`, i))
		err = errors.Join(err, wrong)
		signals[i] = &signal.Signal{ID: fmt.Sprint(i), Type: "say", Timestamp: signal.Int(int64(1000 + 100*i)), Source: "bench", Payload: payload}
		if i == len(signals)*7/10 {
			signals[i].Type = "haunt"
		}
	}
	if err == nil {
		err = record(b.ctx, ses, len(signals), 1000, signals)
	}
	return errors.Join(err, eng.Close())
}

// bisectPicture searches the moment since which the ghost is there.
func bisectPicture(ctx context.Context, travel *replay.Replay, last replay.Moment) (*bisect.Findings, error) {
	f, err := travel.At(ctx, last)
	if err != nil {
		return nil, err
	}
	haunted, err := film.FrameOf(f)
	if err != nil {
		return nil, err
	}
	look, err := imagetest.FromFrame(haunted, 320, imagetest.Options{Entity: "ghost", Same: true})
	if err != nil {
		return nil, err
	}
	test := bisect.Test{
		Identity: look.Identity(),
		Input: func(_ context.Context, s *replay.ScanStep) (bisect.InputHash, error) {
			frame, err := film.FrameOf(s.Fold)
			if err != nil {
				return bisect.InputHash{}, err
			}
			return look.Draw(frame).Hash(), nil
		},
		Judge: func(_ context.Context, _ replay.Moment, f *projection.Fold) (bisect.TestResult, error) {
			frame, err := film.FrameOf(f)
			if err != nil {
				return 0, err
			}
			m, err := look.Compare(frame)
			if err != nil || look.Wrong(m) {
				return bisect.Bad, err
			}
			return bisect.Good, nil
		},
	}
	out, err := bisect.Find(ctx, travel, replay.Moment{}, last, test, bisect.Config{
		Options: bisect.Options{Probes: bisect.DefaultProbes, Recheck: true},
	})
	if err != nil {
		return nil, err
	}
	if on := out.Onset; on == nil || !on.ByEntry {
		return nil, fmt.Errorf("the entry of the ghost was not found: %+v", on)
	}
	return out, nil
}
