package main

import (
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/explore"
	"github.com/sajou-dev/sajou-go/signal"
)

// director measures what a chat service waits for before a character speaks,
// how fast recorded turns are folded, and how fast an episode is explored.
func (b *bench) director() error {
	for _, run := range []func() error{b.guidance, b.turns, b.simulate} {
		if err := run(); err != nil {
			return err
		}
	}
	return nil
}

// long returns an episode of so many beats, each with its own turn.
func long(beats int) (*episode.Episode, error) {
	list := make([]string, beats)
	for i := range list {
		list[i] = fmt.Sprintf(`{"id":"beat-%d","character_instruction":"Say it.","target_turn":%d,"deadline_turn":%d,"detection_type":"keyword","detection_criteria":"word%d"}`, i, i+3, i+5, i)
	}
	e, findings := episode.Parse("long.json", fmt.Appendf(nil, `{"id":"long","policy":{"order":"urgent"},"beats":[%s]}`, strings.Join(list, ",")))
	return e, findings.Err(episode.ErrEpisode)
}

// playing folds records, and passes on an error.
func playing(s *director.State, all *[]signal.Record, records []signal.Record, err error) error {
	for _, r := range records {
		if err == nil {
			err = s.Apply(r.Word, r.Value)
		}
	}
	if all != nil {
		*all = append(*all, records...)
	}
	return err
}

func (b *bench) guidance() error {
	e, err := long(1000)
	if err != nil {
		return err
	}
	var s director.State
	records, err := s.Start(e, director.Opening{})
	if err := playing(&s, nil, records, err); err != nil {
		return err
	}
	rounds, err := b.alone("guidance", func() (measurement, error) {
		return timed(b.scale.guided, func() error {
			for n := range b.scale.guided {
				if _, err := s.Guidance(1 + n%1000); err != nil {
					return err
				}
			}
			return nil
		}, nil)
	})
	if err != nil {
		return err
	}
	b.add(result{Name: "guidance of a director, 1000 beats", Value: 1e6 / rounds.rate(), Unit: "µs", Goal: ptr(1000), lower: true, onUnit: true}, rounds)
	return nil
}

// turns folds the events of many recorded turns.
func (b *bench) turns() error {
	e, err := long(20)
	if err != nil {
		return err
	}
	var s director.State
	var all []signal.Record
	records, err := s.Start(e, director.Opening{})
	err = playing(&s, &all, records, err)
	for n := 1; n <= b.scale.turns && err == nil; n++ {
		_, records, guided := s.Guide(director.TurnInput{Turn: n, Text: "Go on."})
		if err = playing(&s, &all, records, guided); err == nil {
			_, records, said := s.Respond(director.Response{Turn: n, Text: "I see."})
			err = playing(&s, &all, records, said)
		}
	}
	if err != nil {
		return err
	}
	rounds, err := b.alone("turns", func() (measurement, error) {
		return timed(b.scale.turns, func() error {
			var s director.State
			return playing(&s, nil, all, nil)
		}, nil)
	})
	if err != nil {
		return err
	}
	b.rateAlone(fmt.Sprintf("folding %d turns of a director", b.scale.turns), "turns", rounds, 0)
	return nil
}

// simulate explores an episode with more plays than could be played one by one.
func (b *bench) simulate() error {
	e, err := branching(9)
	if err != nil {
		return err
	}
	var plays uint64
	rounds, err := b.alone("simulate", func() (measurement, error) {
		return timed(1, func() error {
			x := explore.New(e, explore.Config{Delay: 1})
			for x.Step() {
			}
			coverage, err := x.Coverage()
			if err == nil && (!coverage.Complete || coverage.Paths < 100_000) {
				err = fmt.Errorf("explored %d plays, complete: %v", coverage.Paths, coverage.Complete)
			}
			plays = coverage.Paths
			return err
		}, nil)
	})
	if err != nil {
		return err
	}
	b.add(result{Name: fmt.Sprintf("simulate over %d plays", plays), Value: 1000 / rounds.rate(), Unit: "ms"}, rounds)
	return nil
}

// branching returns an episode of so many beats, each with a choice of two that
// the next depends on.
func branching(beats int) (*episode.Episode, error) {
	list := make([]string, beats)
	for i := range list {
		list[i] = fmt.Sprintf(`{"id":"beat-%d","character_instruction":"Ask.","target_turn":%d,"deadline_turn":%d,"detection_type":"keyword","detection_criteria":"word%d",
			"choice_point":{"id":"choice-%d","prompt":"Well?","choices":[{"id":"yes","label":"Yes.","sets_flag":"yes%d"},{"id":"no","label":"No.","sets_flag":"no%d"}]}}`,
			i, 2*i+1, 2*i+2, i, i, i, i)
	}
	e, findings := episode.Parse("branching.json", fmt.Appendf(nil, `{"id":"branching","beats":[%s]}`, strings.Join(list, ",")))
	return e, findings.Err(episode.ErrEpisode)
}
