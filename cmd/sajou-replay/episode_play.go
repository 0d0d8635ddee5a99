package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episodes"
	"github.com/sajou-dev/sajou-go/eventlog"
)

func (a *app) episodePlay() *cobra.Command {
	var f playFlags
	cmd := &cobra.Command{
		Use:   "play [FILE|NAME]",
		Short: "Play an episode: you are the user",
		Long: `Play puts you into an episode: you say your lines, the character answers, and the
director sees to it that the beats land. When one opens a choice, the choice is
your next line. Without an argument it is the bundled interview, which needs no
model and no network. Everything is recorded as a session of the store, called
like the episode or as -s says, and is shown once it is durable.

You may leave at any moment, with ctrl-D, ctrl-C or by any accident: -s NAME goes
on where the session stood, be it in the middle of a turn. The end is when the
turn budget is used up; with --beyond it is when you say so.

What you type, you say. A choice is answered by its number or its id; where the
episode lets you, also in your own words. Words after a slash are for the program:
/1 chooses from the cards beside the input, /directions shows what the director
tells the character, /end leaves, /help lists them. On a terminal tab shows
directions too. Where input or output is no terminal the program reads lines, so
that a play can be scripted; with -o jsonl it tells every event as JSON.

The character is played by a script, a JSON file of lines with their conditions
(--script; docs/episodes.md), by a model behind the chat completions API
(--character-url with --model; a key comes from SAJOU_CHARACTER_KEY), or else by a
stand-in that says what is directed. Who judges is the script, the stand-in, or a
model (--judge-url; SAJOU_JUDGE_KEY); a character's model without a judge leaves
open what needs one.

The exit code is 0 when the play has come to its end or you have left it, 130 when
it was interrupted, 7 when the character could not answer.`,
		Example: `  sajou-replay episode play
  sajou-replay episode play -s interview
  sajou-replay episode play mine.json --script mine.script.json --directions
  sajou-replay episode play --character-url http://localhost:11434/v1 --model llama3.2
  printf 'Hello.\n/end\n' | sajou-replay episode play -o jsonl`,
		Args: between(0, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return episodes.Names(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return a.playEpisode(cmd, name, &f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.directions, "directions", false, "show what the director tells the character")
	flags.BoolVar(&f.beyond, "beyond", false, "go on when the turn budget is used up")
	flags.BoolVar(&f.manual, "manual-time", false, "let no time pass in a new session, so that the same play gives the same head hash")
	flags.StringVar(&f.script, "script", "", "file with the character's lines")
	flags.StringVar(&f.characterURL, "character-url", "", "chat completions API of the character's model, up to /v1")
	flags.StringVar(&f.model, "model", "", "the model's name")
	flags.StringVar(&f.judgeURL, "judge-url", "", "chat completions API of the judge's model")
	flags.StringVar(&f.judgeModel, "judge-model", "", "the judge's name; that of --model if it is not given")
	_ = cmd.MarkFlagFilename("script", "json")
	return cmd
}

// patience is how long a judge's model has for its verdicts.
const patience = 30 * time.Second

// config is how a store is opened for playing.
func (f *playFlags) config(wait time.Duration) sajou.Config {
	cfg := sajou.Config{LockWait: wait, Patience: patience}
	if f.manual {
		// A clock that stands still leaves no latency of a judge in the log either.
		cfg.Now = func() time.Time { return time.Unix(0, 0) }
		cfg.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	return cfg
}

// playEpisode plays an episode, or goes on with one, as one sitting.
func (a *app) playEpisode(cmd *cobra.Command, name string, f *playFlags) (err error) {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	var episode *director.Episode
	if name == "" && a.session == "" {
		name = "interview"
	}
	if name != "" {
		if episode, err = a.episodeNamed(ctx, name); err != nil {
			return err
		}
	}
	engine, err := a.open(f.config(a.wait))
	if err != nil {
		return err
	}
	shut := sync.OnceValue(engine.Close)
	defer func() { err = errors.Join(err, shut()) }()
	s, err := a.sitDown(ctx, engine, episode, f)
	if err != nil {
		return err
	}
	c, err := f.cast(s.episode)
	if err != nil {
		return err
	}
	defer c.close()
	s.actor, s.judge = c.actor, c.judge
	if c.remark != "" {
		fmt.Fprintf(a.stderr, "%s\n", c.remark)
	}
	// Who interrupts does not wait for a model. The log stays as it is: what is
	// awaited is awaited still when the session is taken up again.
	defer context.AfterFunc(ctx, func() { _ = shut() })()
	p := &page{o: a.output(), s: s, directions: f.directions}
	keys, terminal := a.stdin.(*os.File)
	if terminal && a.format == "text" && isTerminal(keys) && isTerminal(a.stdout) {
		err = a.playOnTerminal(ctx, s, p, keys, cancel)
	} else {
		err = a.playLines(ctx, s, p)
	}
	return a.leave(cmd, s, p, f, err)
}

// episodeNamed returns the bundled episode of that name, or else the one in the
// file.
func (a *app) episodeNamed(ctx context.Context, name string) (*director.Episode, error) {
	text, _, bundled := episodes.Text(name)
	if !bundled {
		e, _, err := a.episode(ctx, name, "nothing was played")
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w; the bundled episodes are %v", err, episodes.Names())
		}
		return e, err
	}
	e, diagnostics := director.Parse(name, text)
	return e, diagnostics.Err()
}

// sitDown opens the session that is to be played, and begins the episode in it
// unless it is under way.
func (a *app) sitDown(ctx context.Context, engine *sajou.Engine, e *director.Episode, f *playFlags) (*sitting, error) {
	names, err := engine.Sessions()
	if err != nil {
		return nil, err
	}
	name := a.session
	if name == "" {
		base := e.ID
		if eventlog.CheckName(base) != nil {
			base = "episode"
		}
		name = base
		for n := 2; slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
	}
	if err := eventlog.CheckName(name); err != nil {
		return nil, misuse("--session: %s", oneLine(err.Error()))
	}
	authority := sajou.TimeWall
	if f.manual {
		authority = sajou.TimeManual
	}
	if !slices.Contains(names, name) && e == nil {
		if e, err = a.episodeNamed(ctx, "interview"); err != nil {
			return nil, err
		}
	}
	session, err := engine.Begin(ctx, name, authority)
	if err != nil {
		return nil, err
	}
	a.about = name
	fold, err := session.State(ctx)
	if err != nil {
		return nil, err
	}
	s := &sitting{session: session, director: session.Director(), beyond: f.beyond, said: map[director.Digest]bool{}}
	switch under := sajou.DirectorOf(fold).Episode(); {
	case under == nil && e == nil:
		return nil, misuse("no episode is played in %q; name the one to begin there", name)
	case under == nil:
		if err := s.director.Start(ctx, e, director.Opening{}); err != nil {
			return nil, err
		}
	case e != nil && e.Digest() != under.Digest():
		return nil, misuse("another episode is played in %q, or another version of it; to go on with that one, name none", name)
	}
	_, err = s.look(ctx)
	return s, err
}

// leave ends a sitting: with a summary if the user has seen the end, and with
// what can be done next.
func (a *app) leave(cmd *cobra.Command, s *sitting, p *page, f *playFlags, err error) error {
	ctx := cmd.Context()
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		err = context.Canceled
	}
	again := func() {
		fmt.Fprintf(a.stderr, "to go on from here:\n%s\n", a.command("episode play -s "+shellWord(s.session.Name())+f.again()))
	}
	if err != nil && !errors.Is(err, errEnd) {
		if flushing := p.o.Flush(); flushing != nil {
			return flushing
		}
		again()
		return err
	}
	at, looking := s.look(ctx)
	if looking != nil {
		return looking
	}
	if a.format == "text" && !at.over && !errors.Is(err, errEnd) {
		again()
		return p.o.Flush()
	}
	if err := p.end(at); err != nil {
		return err
	}
	if a.format != "text" {
		return nil
	}
	if !at.over {
		again()
	}
	name := shellWord(s.session.Name())
	fmt.Fprintln(a.stderr, "to look at it again:")
	for _, line := range []string{"beats " + name, "cat " + name + " --kind beat", "verify " + name} {
		word, _, _ := strings.Cut(line, " ")
		if found, _, err := cmd.Root().Find([]string{word}); err == nil && found != cmd.Root() {
			fmt.Fprintln(a.stderr, a.command(line))
		}
	}
	return nil
}

// errEnd says that the user has had enough.
var errEnd = errors.New("the user has left")

// maxSaid bounds a line of the user's, in bytes.
const maxSaid = 64 << 10

// playLines plays by lines: those of the user come from stdin, and the end of
// them leaves the play where it stands.
func (a *app) playLines(ctx context.Context, s *sitting, p *page) error {
	lines, broken := readLines(ctx, a.stdin)
	for {
		at, err := p.settle(ctx)
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
			case answer.end:
				return errEnd
			case answer.directions:
				p.directions = !p.directions
				if err := p.remark(directionsRemark(p.directions)); err != nil {
					return err
				}
			case answer.remark != "":
				if err := p.remark(answer.remark); err != nil {
					return err
				}
			}
		}
	}
}

// settle goes on for as long as the user is not wanted, and shows what happens.
func (p *page) settle(ctx context.Context) (standing, error) {
	for {
		list, err := p.s.news(ctx)
		if err == nil {
			err = p.tell(list)
		}
		if err != nil {
			return standing{}, err
		}
		if more, err := p.s.advance(ctx); err != nil {
			return standing{}, err
		} else if !more {
			return p.s.look(ctx)
		}
	}
}

// readLines hands out lines, and when they have ended why, nil at their end.
// Whoever waits for a line can be interrupted; a read cannot, and ends with the
// program.
func readLines(ctx context.Context, r io.Reader) (<-chan string, <-chan error) {
	lines, broken := make(chan string), make(chan error, 1) // broken holds the one reason
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(r)
		scanner.Buffer(nil, maxSaid)
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
			err = fail(exitMisuse, "a line is longer than %d KiB", maxSaid>>10)
		}
		broken <- err
	}()
	return lines, broken
}
