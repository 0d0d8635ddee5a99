package history_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/director/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/replay"
)

// theatre plays the script of a story into a session.
type theatre struct {
	t        *testing.T
	ses      *sajou.Session
	director *live.Director
	episodes map[string]*episode.Episode
	answers  map[string][]string // "TURN.ATTEMPT SUBJECT", for each try
	later    map[string][]string // the same, of the judge that a rerun asks
	seen     []director.TranscriptLine
	now      time.Duration
	signals  int

	mu    sync.Mutex // the questions about a response are asked at the same time
	asked []director.Question
}

func (p *theatre) Judge(ctx context.Context, q director.Question) (model, answer string, err error) {
	p.mu.Lock()
	p.asked = append(p.asked, q)
	p.mu.Unlock()
	answer, err = p.answer(p.answers)(ctx, q)
	return "recorded", answer, err
}

// answer returns the judge of a list of answers; "!TEXT" is a failure.
func (p *theatre) answer(list map[string][]string) enginetest.JudgeFunc {
	return func(_ context.Context, q director.Question) (string, error) {
		all := list[fmt.Sprintf("%d.%d %s", q.Turn, q.Attempt, q.Subject.ID)]
		if q.Try > len(all) {
			return "NO", nil
		}
		if failure, ok := strings.CutPrefix(all[q.Try-1], "!"); ok {
			return "", errors.New(failure)
		}
		return all[q.Try-1], nil
	}
}

func (p *theatre) line(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	ctx := p.t.Context()
	first, text, _ := strings.Cut(rest, " ")
	var err error
	switch verb {
	case "start": // EPISODE [ENERGY [FLAG...]]
		e := p.episodes[first]
		o := director.Opening{}
		if more := strings.Fields(text); len(more) > 0 {
			o.Energy, o.Flags = more[0], more[1:]
		}
		err = p.director.Start(ctx, e, o)
		p.seen = nil
		if e.OpeningLine != "" {
			p.seen = append(p.seen, director.TranscriptLine{Role: "character", Text: e.OpeningLine})
		}
	case "revise": // EPISODE
		err = p.director.Revise(ctx, p.episodes[first])
	case "guide": // TURN TEXT
		turn, _ := strconv.Atoi(first)
		_, err = p.director.Guide(ctx, director.TurnInput{Turn: turn, Text: text})
		if text != "" {
			p.seen = append(p.seen, director.TranscriptLine{Role: "user", Text: text})
		}
	case "judge", "now": // TURN.ATTEMPT SUBJECT ANSWER | ANSWER...
		subject, answers, _ := strings.Cut(text, " ")
		list := map[string]map[string][]string{"judge": p.answers, "now": p.later}[verb]
		list[first+" "+subject] = strings.Split(answers, " | ")
	case "see": // NUMBER: that many of the last messages, and ROLE TEXT: another message
		if n, err := strconv.Atoi(first); err == nil {
			p.seen = p.seen[len(p.seen)-n:]
		} else {
			p.seen = append(p.seen, director.TranscriptLine{Role: first, Text: text})
		}
	case "respond": // TURN.ATTEMPT TEXT
		turn, attempt, _ := strings.Cut(first, ".")
		r := director.Response{Text: text, Before: p.seen}
		r.Turn, _ = strconv.Atoi(turn)
		r.Attempt, _ = strconv.Atoi(attempt)
		before := len(p.asked)
		_, err = p.director.Respond(ctx, r)
		slices.SortFunc(p.asked[before:], func(a, b director.Question) int {
			return cmp.Or(a.Try-b.Try, cmp.Compare(a.Subject.Kind, b.Subject.Kind), cmp.Compare(a.Subject.ID, b.Subject.ID))
		})
	case "choose": // POINT OPTION
		_, err = p.director.Choose(ctx, first, text)
	case "signal": // TYPE
		p.signals++
		p.now += time.Second
		_, err = p.ses.Record(ctx, sajou.Addition{Signals: enginetest.Step{Typ: first}.Record(p.t, p.signals, p.now.Milliseconds()).Signals})
	default:
		err = errors.New("no such verb")
	}
	require.NoError(p.t, err, line)
}

// perform plays the script of a story into the session "was".
func perform(t *testing.T, in []txtar.File) (*sajou.Engine, *theatre) {
	// The clock stands still, since verdicts hold how long they took.
	clock := &enginetest.StoppedClock{Now: enginetest.StoryBegin}
	eng := enginetest.Memory(t, sajou.Config{Now: clock.Read, AfterFunc: clock.AfterFunc})
	p := &theatre{
		t: t, ses: enginetest.BeginManual(t, eng, "was"),
		episodes: map[string]*episode.Episode{}, answers: map[string][]string{}, later: map[string][]string{},
	}
	p.director = p.ses.Director().With(p)
	for _, f := range in {
		if f.Name != "script" {
			p.episodes[f.Name] = enginetest.Authored(t, string(f.Data))
			continue
		}
		for line := range strings.Lines(string(f.Data)) {
			p.line(strings.TrimSpace(line))
		}
	}
	return eng, p
}

// A story tells all that can be read from a session in which episodes were played: its
// turns, how far the episodes had come after each entry, the verdicts, and what another
// playing of its inputs gives: as recorded ("strict"), and with the episode "changed" or
// the answers of the verb "now".
func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) (told []txtar.File) {
		eng, p := perform(t, in)
		was := enginetest.Replay(t, eng, "was")
		file := func(name, text string) { told = append(told, txtar.File{Name: name, Data: []byte(text)}) }
		file("told", turns(t, was, 1, was.Head().Seq))
		file("the middle", turns(t, was, was.Head().Seq/3, was.Head().Seq*2/3))
		file("progress", progressOf(t, was))
		file("verdicts", p.verdicts(was))
		for _, cfg := range []history.RerunConfig{
			{},
			{Mode: history.RerunStrict, Episode: p.episodes["changed"]},
			{Mode: history.RerunLoose, Episode: p.episodes["changed"]},
			{Mode: history.RerunLive, Judge: p.answer(p.later)},
		} {
			name := cfg.Mode.String()
			if cfg.Episode != nil {
				name += " changed"
			}
			now := enginetest.BeginManual(t, eng, name)
			result, err := now.Director().Rerun(t.Context(), was, cfg)
			var b strings.Builder
			fmt.Fprintf(&b, "%d turns, stopped: %v, error: %v, %d entries\n", result.Turns, result.Stopped, err, now.Head().Seq)
			for d, err := range history.Differences(t.Context(), was, enginetest.Replay(t, eng, name)) {
				require.NoError(t, err)
				fmt.Fprintf(&b, "%d.%d attempt %d: %s %s: %q → %q; %q → %q\n", d.Play, d.Turn, d.Attempt, d.What, d.About, d.Was, d.Now, d.Says, d.SaysNow)
			}
			if name == "strict" {
				require.Equal(t, story(t, p.ses), story(t, now))
			}
			file(name, b.String())
		}
		return told
	})
}

func turns(t *testing.T, r *replay.Replay, from, to eventlog.Seq) string {
	var b strings.Builder
	for turn, err := range history.Turns(t.Context(), r, from, to) {
		require.NoError(t, err)
		fmt.Fprintf(&b, "play %d, turn %d, %d left\n", turn.Play, turn.Number, turn.Left)
		for _, e := range turn.Events {
			fmt.Fprintf(&b, "  %d %v %s %s\n", e.Seq, e.At, e.Word, e.Value.AppendJSON(nil))
		}
	}
	return b.String()
}

// progressOf returns the lines of the progress that an entry adds or changes.
func progressOf(t *testing.T, r *replay.Replay) string {
	var b strings.Builder
	before := map[string]string{}
	for seq := eventlog.Seq(0); seq <= r.Head().Seq; seq++ {
		p, err := history.ProgressAt(t.Context(), r, seq)
		if err != nil {
			require.ErrorIs(t, err, history.ErrNoEpisode)
			fmt.Fprintf(&b, "%d: %v\n", seq, err)
			continue
		}
		now := map[string]string{}
		line := func(key, format string, args ...any) {
			now[key] = fmt.Sprintf(format, args...)
			if before[key] != now[key] {
				fmt.Fprintf(&b, "%d: %s: %s\n", seq, key, now[key])
			}
		}
		line("episode", "%s, play %d since %d, turn %d, failed %t, flags %q", p.Episode.ID, p.Play, p.Began, p.Turn, p.Failed, p.Flags)
		for _, x := range p.Beats {
			late, landed := x.Late()
			line(x.Beat.ID, "%s, directed [%v] = %d%v, overdue %d, landed in %d (late %d %t) at %d, heard in %d, %s %s",
				x.Status, x.Directed, x.Directed.Count, x.Directed.Spans, x.Overdue, x.Landed, late, landed, x.Seq, x.Heard, x.Method, x.Assurance)
		}
		for _, c := range p.Choices {
			line(c.Point.ID, "%q, %q, %q, turn %d", c.Status, c.Option, c.Label, c.Turn)
		}
		before = now
	}
	return b.String()
}

// verdicts asks the recorded verdicts what the judge of the play was asked, once more
// than it was, and what it was not asked.
func (p *theatre) verdicts(was *replay.Replay) string {
	t := p.t
	all, err := history.Verdicts(t.Context(), was)
	require.NoError(t, err)
	var b strings.Builder
	fmt.Fprintf(&b, "%d verdicts\n", all.Len())
	for _, mode := range []history.RerunMode{history.RerunStrict, history.RerunLoose, history.RerunLive} {
		fmt.Fprintf(&b, "%v:\n", mode)
		var differs []string
		judge := all.Judge(mode, p.answer(p.later), func(d history.VerdictDifference) {
			d.Question.Prompt = ""
			differs = append(differs, fmt.Sprintf("%+v", d))
		})
		ask := func(about string, q director.Question) {
			model, answer, err := judge.Judge(t.Context(), q)
			fmt.Fprintf(&b, "  %s %d.%d %v %s try %d: %q %q %v\n", about, q.Turn, q.Attempt, q.Subject.Kind, q.Subject.ID, q.Try, model, answer, err)
			for _, d := range differs {
				fmt.Fprintf(&b, "    %s\n", d)
			}
			differs = nil
		}
		for _, q := range p.asked {
			ask("as asked", q)
		}
		last := p.asked[len(p.asked)-1]
		ask("once more", last)
		last.Attempt++
		ask("another attempt", last)
		last.Digest = episode.DigestOf("another prompt")
		ask("another prompt", last)
		last.Attempt--
		ask("another prompt", last)
		last.Turn++
		ask("another turn", last)
	}
	return b.String()
}
