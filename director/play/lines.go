package play

import (
	"bufio"
	"context"
	"errors"
	"io"
)

// PlayLines plays by lines of the user, until the episode is over or the lines
// end. It returns [ErrLeft] when the user leaves.
func (s *Sitting) PlayLines(ctx context.Context, in io.Reader, p *Page) error {
	p.sitting = s
	lines, broken := readLines(ctx, in)
	for {
		at, err := s.showUntilInput(ctx, p)
		if err != nil || at.over {
			return err
		}
		if err := p.ask(at); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line, more := <-lines:
			if !more {
				return <-broken
			}
			answer, err := s.take(ctx, line)
			switch {
			case err != nil:
				return err
			case answer.left:
				return ErrLeft
			case answer.directions:
				p.Directions = !p.Directions
				err = p.remark(directionsRemark(p.Directions))
			case answer.remark != "":
				err = p.remark(answer.remark)
			}
			if err != nil {
				return err
			}
		}
	}
}

// showUntilInput advances the play and shows its events until it waits for the user.
func (s *Sitting) showUntilInput(ctx context.Context, p *Page) (position, error) {
	for {
		list, err := s.unread(ctx)
		if err == nil {
			err = p.show(list)
		}
		if err != nil {
			return position{}, err
		}
		if more, err := s.advance(ctx); err != nil {
			return position{}, err
		} else if !more {
			return s.look(ctx)
		}
	}
}

// readLines sends lines, and after the last one the reason for the end, nil at
// the end of the input. A wait for a line ends with ctx; the read behind it
// cannot be interrupted, and ends with the process.
func readLines(ctx context.Context, r io.Reader) (<-chan string, <-chan error) {
	lines, broken := make(chan string), make(chan error, 1) // broken holds the one reason
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(r)
		scanner.Buffer(nil, MaxLine)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				broken <- ctx.Err()
				return
			}
		}
		err := scanner.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = ErrLongLine
		}
		broken <- err
	}()
	return lines, broken
}
