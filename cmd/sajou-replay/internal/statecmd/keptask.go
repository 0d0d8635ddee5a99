package statecmd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

func askSearch(a *cli.App) *cobra.Command {
	q := asking{}
	cmd := &cobra.Command{
		Use:   "ask",
		Short: "Show one picture after the other, and take a person's judgments",
		Long: `Ask shows the stage at the moment to judge next in the terminal, and takes keys:
  g   good             b   bad            s   skip
  u   undo             ?   help           q   quit; bisect ask continues later
With -O it also writes the picture to a file, SVG or PNG, each time, and with
--open it runs a program on the file, which may stay open.

Each judgment is kept at once. Without a terminal use bisect good, bad and skip.`,
		Example: "  sajou-replay bisect start\n  sajou-replay bisect ask || true",
		Args:    cli.Between(0, 0),
		RunE: withSearch(a, func(ctx context.Context, s *keptSearch, _ []string) error {
			in, out := terminalOf(a.Stdin), terminalOf(a.Stdout)
			if in == nil || out == nil {
				return cli.Misuse("bisect ask needs a terminal; without one use bisect next, then bisect good, bad or skip")
			}
			if q.open != "" && q.out == "" {
				return cli.Misuse("--open needs -O FILE")
			}
			raw, err := term.MakeRaw(in.Fd())
			if err != nil {
				return cli.Fail(cli.ExitNo, "the terminal cannot be read by keys: %w", err)
			}
			defer func() { _ = term.Restore(in.Fd(), raw) }()
			q.size = func() (int, int) {
				cols, rows, err := term.GetSize(out.Fd())
				if err != nil {
					return 80, 24
				}
				return cols, rows
			}
			return q.loop(ctx, s, a.OpenStdin(ctx), a.Stdout)
		}),
	}
	cmd.Flags().StringVarP(&q.out, "out", "O", "", "also write each picture to `FILE`")
	cmd.Flags().StringVar(&q.open, "open", "", "run `PROGRAM` with the file of -O after each picture")
	return cmd
}

// terminalOf returns a stream as a terminal, or nil.
func terminalOf(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && term.IsTerminal(f.Fd()) {
		return f
	}
	return nil
}

// asking takes the judgments of a person.
type asking struct {
	out, open string
	size      func() (cols, rows int)
}

const askHelp = "g good, b bad, s skip, u undo, q quit"

// interrupt and end are the keys that a raw terminal sends for Ctrl-C and Ctrl-D.
const (
	interruptKey = 3
	endKey       = 4
)

// loop shows a picture and takes a key, until the search has finished or a person quits.
// A terminal that is read by keys needs a carriage return before each line feed.
func (q *asking) loop(ctx context.Context, s *keptSearch, keys io.Reader, screen io.Writer) error {
	in := bufio.NewReader(keys)
	say := func(text string) error {
		_, err := io.WriteString(screen, strings.ReplaceAll(text, "\n", "\r\n"))
		return err
	}
	shown := -1
	for {
		p, more := s.search.Next()
		if !more {
			_, text := s.view()
			return say(text)
		}
		at := s.search.Stretches()[p.Index]
		if shown != p.Index {
			if err := q.show(ctx, s, at, say); err != nil {
				return err
			}
			shown = p.Index
		}
		left, judgments := s.search.Left()
		if err := say(fmt.Sprintf("%v  %s: %s? (%s, about %s left) ", at.From, cli.ClockText(at.At), askHelp,
			cli.Plural(left, "candidate", "candidates"), cli.Plural(judgments, "judgment", "judgments"))); err != nil {
			return err
		}
		key, err := in.ReadByte()
		if err != nil {
			return err
		}
		r := bisect.TestResult(0)
		answer := ""
		switch key {
		case 'g':
			r = bisect.Good
		case 'b':
			r = bisect.Bad
		case 's':
			r = bisect.Skip
		case 'u':
			m, ok, err := s.undo()
			if err != nil {
				return err
			}
			answer = "there is nothing to undo"
			if ok {
				answer, shown = fmt.Sprintf("took back the judgment of %v", m), -1
			}
		case '?':
			answer = fmt.Sprintf("g: the picture is %s; b: it is %s; s: it cannot be judged;\nu: take back the latest judgment; q: quit, and continue later with bisect ask",
				s.term(bisect.Good), s.term(bisect.Bad))
		case 'q', endKey:
			return say("\nquit; continue with: sajou-replay bisect ask\n")
		case interruptKey:
			_ = say("\n")
			return context.Canceled
		default:
			answer = askHelp
		}
		if r != 0 {
			if err := s.judge(p.Index, at.From, r, "person"); err != nil {
				return err
			}
			answer = s.term(r)
		}
		if err := say(answer + "\n"); err != nil {
			return err
		}
	}
}

// show draws a picture in the terminal, and in the file of -O.
func (q *asking) show(ctx context.Context, s *keptSearch, at bisect.Stretch, say func(string) error) error {
	shot, err := s.shot(ctx, at.From)
	if err != nil {
		return err
	}
	cols, rows := q.size()
	if err := say(picture.Terminal(shot.Frame, cols, max(rows-3, 3), os.Getenv("NO_COLOR") == "") + "\n"); err != nil {
		return err
	}
	if q.out == "" {
		return nil
	}
	format := "svg"
	if strings.HasSuffix(q.out, ".png") {
		format = "png"
	}
	d := picture.Draw(shot.Frame, picture.Options{Title: s.t.Name, Address: at.From.String(), Clock: true})
	if err := cli.WriteFile(q.out, cli.Encode(d, format)); err != nil {
		return err
	}
	if q.open == "" {
		return nil
	}
	viewer := exec.CommandContext(context.WithoutCancel(ctx), q.open, q.out)
	if err := viewer.Start(); err != nil {
		return cli.Fail(cli.ExitCannotRun, "cannot run %s: %v", q.open, err)
	}
	return viewer.Process.Release() // it may stay open
}
