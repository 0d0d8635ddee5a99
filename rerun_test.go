package sajou_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

const dinner = `{
	"id": "dinner", "opening_line": "You came.", "turn_budget": 8,
	"policy": {"judge_retries": 1, "spontaneous": true, "pending_choice": "free"},
	"user_objective": "Learn who invited you.", "success_condition": "semantic:the user knows who wrote",
	"beats": [
		{"id": "greet", "character_instruction": "Greet them.", "target_turn": 1, "detection_type": "automatic"},
		{"id": "toast", "character_instruction": "Raise your glass.", "target_turn": 2, "detection_criteria": "she proposes a toast",
		 "choice_point": {"id": "drink", "prompt": "Well?", "choices": [{"id": "yes", "label": "To us.", "sets_flag": "drank"}, {"id": "no", "label": "I don't drink."}]}},
		{"id": "letter", "character_instruction": "Show the letter.", "target_turn": 3, "deadline_turn": 3, "detection_type": "keyword", "detection_criteria": "letter",
		 "max_overdue_turns": 1, "on_miss": "force", "forced_line": "Here: the letter.",
		 "choice_point": {"id": "read", "prompt": "And?", "choices": [{"id": "aloud", "label": "Read it aloud."}, {"id": "burn", "label": "Burn it."}]}},
		{"id": "leave", "character_instruction": "Get up.", "target_turn": 5, "detection_criteria": "she leaves", "requires_beat": "letter"}
	]
}`

// table plays dinner, with a judge who knows what to answer by turn, attempt
// and subject, and is asked in that order.
type table struct {
	t        *testing.T
	ses      *sajou.Session
	director *sajou.Director
	before   []director.Message
}

func (p *table) guide(turn int, text string) {
	p.t.Helper()
	if _, err := p.director.Guide(p.t.Context(), director.Input{Turn: turn, Text: text}); err != nil {
		p.t.Fatal(err)
	}
	if text != "" {
		p.before = append(p.before, director.Message{Role: "user", Text: text})
	}
}

// respond is one attempt; the last one is what was said.
func (p *table) respond(turn int, texts ...string) (out director.Outcome) {
	p.t.Helper()
	for i, text := range texts {
		var err error
		out, err = p.director.Respond(p.t.Context(), director.Response{Turn: turn, Attempt: i + 1, Text: text, Before: p.before})
		if err != nil || !out.Evaluated {
			p.t.Fatalf("turn %d: %+v, %v", turn, out, err)
		}
	}
	p.before = append(p.before, director.Message{Role: "character", Text: texts[len(texts)-1]})
	for _, in := range out.Insertions {
		p.before = append(p.before, director.Message{Role: "character", Text: in.Line})
	}
	return out
}

func (p *table) choose(point, option, label string) {
	p.t.Helper()
	if _, err := p.director.Choose(p.t.Context(), point, option); err != nil {
		p.t.Fatal(err)
	}
	p.before = append(p.before, director.Message{Role: "user", Text: label})
}

// inTurn answers what it is asked about a response again and again in turn, and
// else NO.
func inTurn(answers map[string][]string) judgeFunc {
	asked := map[string]int{}
	var mu sync.Mutex
	return func(_ context.Context, q director.Question) (string, error) {
		key := fmt.Sprintf("%d.%d %s", q.Turn, q.Attempt, q.Subject.ID)
		mu.Lock()
		defer mu.Unlock()
		list := answers[key]
		n := asked[key]
		asked[key]++
		if n >= len(list) {
			return "NO", nil
		}
		if failure, ok := strings.CutPrefix(list[n], "!"); ok {
			return "", errors.New(failure)
		}
		return list[n], nil
	}
}

func memory(t *testing.T, cfg sajou.Config) *sajou.Engine {
	t.Helper()
	cfg.FS = vfs.NewMem()
	eng, err := sajou.Open("store", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	return eng
}

func beginManual(t *testing.T, eng *sajou.Engine, name string) *sajou.Session {
	t.Helper()
	ses, err := eng.Begin(t.Context(), name, sajou.TimeManual)
	if err != nil {
		t.Fatal(err)
	}
	return ses
}

// playDinner plays an evening with everything in it: attempts, retries, a judge
// that fails, choices that are made and declined, a forced line, an objective.
func playDinner(t *testing.T, eng *sajou.Engine, judge sajou.Judge) *sajou.Session {
	t.Helper()
	ses := beginManual(t, eng, "dinner")
	p := &table{t: t, ses: ses, director: ses.Director().With(judge)}
	if err := p.director.Start(t.Context(), episode(t, dinner), director.Opening{Flags: []string{"late"}, Energy: "bold"}); err != nil {
		t.Fatal(err)
	}
	p.before = []director.Message{{Role: "character", Text: "You came."}}
	p.guide(1, "Hello.")
	p.respond(1, "Sit.", "Please sit down.")
	p.guide(2, "Thank you.")
	p.guide(2, "Thank you!") // said anew
	p.before = slices.Delete(p.before, len(p.before)-2, len(p.before)-1)
	p.respond(2, "Wine?", "A toast, to you.")
	p.choose("drink", "yes", "To us.")
	p.guide(3, "")
	out := p.respond(3, "I have something for you.") // and the letter is forced
	if out.Choice == nil || out.Choice.ID != "read" {
		t.Fatalf("%+v", out)
	}
	p.guide(4, "What is it?") // instead of choosing
	p.respond(4, "You know whose hand it is.")
	p.guide(5, "Yours.")
	p.respond(5, "Goodbye.")
	return ses
}

var dinnerAnswers = map[string][]string{
	"2.1 toast": {"Hard to say.", "NO"}, "2.2 toast": {"Well…", "YES."}, "2.2 primary": {"!HTTP 500", "NO"},
	"4.1 primary": {"YES"}, "5.1 leave": {"Maybe", "Maybe not"},
}

// story lists the director's entries of a session, with what stands in them.
func story(t *testing.T, ses *sajou.Session) (lines []string) {
	t.Helper()
	for e, err := range ses.Entries(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if r, err := sajou.BeatOf(&e); err == nil {
			lines = append(lines, fmt.Sprintf("%v %s %s", e.At, r.Word, r.Value.AppendJSON(nil)))
		}
	}
	return lines
}

func differences(t *testing.T, eng *sajou.Engine, was, now string) (lines []string) {
	t.Helper()
	for d, err := range sajou.Differences(t.Context(), eng.Replay(was), eng.Replay(now)) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%d: %s %s: %q → %q", d.Turn, d.What, d.About, d.Was, d.Now))
	}
	return lines
}

// An unchanged episode gives the same story, entry by entry, and nobody is
// asked.
func TestRerunStrict(t *testing.T) {
	eng := memory(t, sajou.Config{})
	was := playDinner(t, eng, inTurn(dinnerAnswers))
	for _, mode := range []sajou.RerunMode{sajou.RerunStrict, sajou.RerunLoose} {
		now := beginManual(t, eng, "again "+mode.String())
		reran, err := eng.Replay("dinner").Rerun(t.Context(), now, sajou.RerunConfig{Mode: mode, Episode: episode(t, dinner)})
		if err != nil || reran.Stopped != nil || reran.Turns != 6 {
			t.Fatalf("%v: %+v, %v", mode, reran, err)
		}
		want, got := strings.Join(story(t, was), "\n"), strings.Join(story(t, now), "\n")
		if got != want {
			t.Errorf("%v:\n%s\nwant:\n%s", mode, got, want)
		}
		if d := differences(t, eng, "dinner", now.Name()); d != nil {
			t.Errorf("%v: %q", mode, d)
		}
	}
	board, err := eng.Replay("dinner").Board(t.Context(), was.Head().Seq)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, b := range board.Beats {
		late, _ := b.Late()
		rows = append(rows, fmt.Sprintf("%s %s [%v] %d %s %s %d", b.Beat.ID, b.Status, b.Directed, b.Landed, b.Method, b.Assurance, late))
	}
	want := []string{
		"greet completed [1] 1 automatic assumed 0", "toast completed [2] 2 semantic verified 0",
		"letter completed [3] 3 forced forced 0", "leave pending [4-5] 0   -5",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("board %q", rows)
	}
	if c := board.Choices; c[0].Status != "selected" || c[0].Option != "yes" || c[1].Status != "declined" || c[1].Turn != 3 {
		t.Errorf("choices %+v", c)
	}
}

// Another text of a beat is another question: strict names it and stops, loose
// goes on, and a judge that is asked again may see it otherwise.
func TestRerunChanged(t *testing.T) {
	eng := memory(t, sajou.Config{})
	playDinner(t, eng, inTurn(dinnerAnswers))
	from := eng.Replay("dinner")
	changed := episode(t, strings.Replace(dinner, "she proposes a toast", "she raises her glass", 1))

	_, err := from.Rerun(t.Context(), beginManual(t, eng, "strict"), sajou.RerunConfig{Episode: changed})
	var prompt *sajou.PromptError
	if !errors.As(err, &prompt) || prompt.Turn != 1 || prompt.Subject.ID != "toast" || !prompt.Rebuilt ||
		prompt.Recorded == prompt.Asked || !strings.Contains(err.Error(), prompt.Recorded.String()) || !strings.Contains(err.Error(), prompt.Asked.String()) {
		t.Errorf("strict: %v", err)
	}

	_, err = from.Rerun(t.Context(), beginManual(t, eng, "loose"), sajou.RerunConfig{Mode: sajou.RerunLoose, Episode: changed})
	if d := differences(t, eng, "dinner", "loose"); err != nil || d != nil {
		t.Errorf("loose: %v, %q", err, d)
	}

	live := inTurn(map[string][]string{"1.2 toast": {"YES"}, "4.1 primary": {"YES"}})
	reran, err := from.Rerun(t.Context(), beginManual(t, eng, "live"), sajou.RerunConfig{Mode: sajou.RerunLive, Episode: changed, Judge: live})
	if err != nil {
		t.Fatal(err)
	}
	// The toast comes in turn 1, the user goes on as recorded, which declines it.
	got := strings.Join(differences(t, eng, "dinner", "live"), "\n")
	for _, want := range []string{
		`1: verdict beat:toast: "no (semantic)" → "yes (semantic)"`,
		`1: landed toast: "" → "verified by semantic, heard in turn 1"`,
		`1: choice drink: "" → "declined"`,
		`2: landed toast: "verified by semantic, heard in turn 2" → ""`,
		`2: flag drank: "set by choice:drink/yes" → ""`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("live, %+v, without %s:\n%s", reran, want, got)
		}
	}

	if _, err := from.Rerun(t.Context(), beginManual(t, eng, "live"), sajou.RerunConfig{}); err == nil {
		t.Error("a session that plays an episode was played into")
	}
	if _, err := from.Rerun(t.Context(), beginManual(t, eng, "other"), sajou.RerunConfig{Episode: episode(t, tea)}); !errors.Is(err, sajou.ErrEpisodeID) {
		t.Errorf("another episode: %v", err)
	}
	if _, err := from.Rerun(t.Context(), beginManual(t, eng, "nobody"), sajou.RerunConfig{Mode: sajou.RerunLive}); err == nil {
		t.Error("nobody was asked, and that was well")
	}
	if _, err := eng.Replay("nobody").Rerun(t.Context(), beginManual(t, eng, "none"), sajou.RerunConfig{}); err == nil {
		t.Error("a session that does not exist was played")
	}
}

// A story that becomes another stops where the user was asked something that the
// recording has no answer to, and says where.
func TestRerunStops(t *testing.T) {
	eng := memory(t, sajou.Config{})
	playDinner(t, eng, inTurn(dinnerAnswers))
	strict := episode(t, strings.Replace(dinner, `, "pending_choice": "free"`, "", 1))
	reran, err := eng.Replay("dinner").Rerun(t.Context(), beginManual(t, eng, "stops"), sajou.RerunConfig{Mode: sajou.RerunLoose, Episode: strict})
	var stopped *sajou.StoppedError
	if err != nil || !errors.As(reran.Stopped, &stopped) || stopped.Turn != 4 || !errors.Is(stopped, director.ErrChoicePending) {
		t.Errorf("%+v, %v", reran, err)
	}
	gone := episode(t, strings.Replace(dinner, `{"id": "yes", "label": "To us.", "sets_flag": "drank"}, `, "", 1))
	reran, err = eng.Replay("dinner").Rerun(t.Context(), beginManual(t, eng, "gone"), sajou.RerunConfig{Mode: sajou.RerunLoose, Episode: gone})
	d := differences(t, eng, "dinner", "gone")
	if err != nil || reran.Stopped != nil || !slices.Contains(d, `2: choice drink: "selected yes" → "declined"`) {
		t.Errorf("%+v, %v, %q", reran, err, d)
	}
}

// A log without words can be read and not run again; a verdict that was given up
// is given up again, and what came late comes late.
func TestRerunOmitsAndExpires(t *testing.T) {
	eng := memory(t, sajou.Config{OmitText: true})
	playDinner(t, eng, inTurn(dinnerAnswers))
	if _, err := eng.Replay("dinner").Rerun(t.Context(), beginManual(t, eng, "again"), sajou.RerunConfig{}); !errors.Is(err, sajou.ErrNoText) {
		t.Errorf("without words: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		th := &stopped{now: storyBegin}
		release := make(chan struct{})
		eng := memory(t, sajou.Config{Now: th.read, AfterFunc: th.afterFunc, Patience: time.Second})
		was := beginManual(t, eng, "was")
		d := was.Director().With(judgeFunc(func(context.Context, director.Question) (string, error) {
			<-release
			return "YES", nil
		}))
		if err := d.Start(t.Context(), episode(t, tea), director.Opening{}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Guide(t.Context(), director.Input{Turn: 1, Text: "Hello."}); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = d.Respond(t.Context(), director.Response{Turn: 1, Text: "Come in."}) }()
		synctest.Wait()
		th.pass(time.Second)
		synctest.Wait()
		close(release)
		synctest.Wait()
		now := beginManual(t, eng, "now")
		if _, err := eng.Replay("was").Rerun(t.Context(), now, sajou.RerunConfig{}); err != nil {
			t.Fatal(err)
		}
		want, got := strings.Join(story(t, was), "\n"), strings.Join(story(t, now), "\n")
		if got != want || !strings.Contains(got, "no verdict within 1s") || !strings.Contains(got, "inactive") {
			t.Errorf("%s\nwant:\n%s", got, want)
		}
	})
}

// The recorded verdicts are a judge for any director.
func TestRecordedJudge(t *testing.T) {
	eng := memory(t, sajou.Config{})
	playDinner(t, eng, inTurn(dinnerAnswers))
	verdicts, err := eng.Replay("dinner").Verdicts(t.Context())
	if err != nil || verdicts.Len() < 10 {
		t.Fatal(verdicts, err)
	}
	play := func(judge sajou.Judge) []string {
		other := memory(t, sajou.Config{})
		ses := playDinner(t, other, judge)
		return events(t, ses, director.BeatLanded, director.ObjectiveCompleted, director.FlagSet)
	}
	want := play(inTurn(dinnerAnswers))
	for _, mode := range []sajou.RerunMode{sajou.RerunStrict, sajou.RerunLoose} {
		if got := play(verdicts.Judge(mode, nil, nil)); !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", mode, got, want)
		}
	}
	var differ []string
	judge := verdicts.Judge(sajou.RerunLive, inTurn(map[string][]string{"2.2 toast": {"YES"}, "4.1 primary": {"Who knows", "YES"}}), func(d sajou.VerdictDifference) {
		differ = append(differ, fmt.Sprintf("%d.%d %s: %s → %s", d.Question.Turn, d.Question.Attempt, d.Question.Subject.ID, d.Recorded.Finding, d.Now.Raw))
	})
	play(judge)
	slices.Sort(differ)
	if !slices.Contains(differ, "4.1 primary: yes → Who knows") || !slices.Contains(differ, "2.1 toast: unclear → NO") {
		t.Errorf("differ %q", differ)
	}
	q := director.Question{Turn: 2, Attempt: 2, Subject: director.Subject{ID: "toast"}, Digest: director.DigestOf("x")}
	var prompt *sajou.PromptError
	if _, _, err := verdicts.Judge(sajou.RerunStrict, nil, nil).Judge(t.Context(), q); !errors.As(err, &prompt) || prompt.Recorded == (director.Digest{}) {
		t.Errorf("another prompt: %v", err)
	}
	q.Subject.ID = "nothing"
	if _, _, err := verdicts.Judge(sajou.RerunLoose, nil, nil).Judge(t.Context(), q); !errors.Is(err, sajou.ErrUnanswered) {
		t.Errorf("a beat that nobody asked about: %v", err)
	}
}

// What was heard outside the play is heard again, and a version that came into
// force later does so again.
func TestRerunHearsAndRevises(t *testing.T) {
	eng := memory(t, sajou.Config{})
	was := beginManual(t, eng, "was")
	ctx := t.Context()
	d := was.Director()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	signal := func(n int64) {
		t.Helper()
		_, err := was.Record(ctx, sajou.Record{Signals: step{typ: "error"}.record(t, int(n), n).Signals})
		do(err)
	}
	signal(1) // before anybody listens
	do(d.Start(ctx, episode(t, joined), director.Opening{}))
	_, err := d.Guide(ctx, director.Input{Turn: 1, Text: "Who is there?"})
	do(err)
	_, err = d.Respond(ctx, director.Response{Turn: 1, Text: "There is a knock."})
	do(err)
	signal(2)
	_, err = d.Guide(ctx, director.Input{Turn: 2, Text: "And now?"})
	do(err)
	do(d.Revise(ctx, episode(t, strings.Replace(joined, `"runs"`, `"flees"`, 1))))
	_, err = d.Respond(ctx, director.Response{Turn: 2, Text: "She flees."})
	do(err)

	now := beginManual(t, eng, "now")
	if reran, err := eng.Replay("was").Rerun(ctx, now, sajou.RerunConfig{}); err != nil || reran.Stopped != nil {
		t.Fatalf("%+v, %v", reran, err)
	}
	want, got := strings.Join(story(t, was), "\n"), strings.Join(story(t, now), "\n")
	if got != want || !strings.Contains(got, "episodeRevised") || !strings.Contains(got, `"flag":"alarmed","cause":"signal:`) {
		t.Errorf("%s\nwant:\n%s", got, want)
	}
	// Without the rule nothing is heard.
	deaf := episode(t, strings.Replace(joined, `{"on_signal": "error", "set": "alarmed"}`, `{"on_signal": "fire", "set": "alarmed"}`, 1))
	if _, err := eng.Replay("was").Rerun(ctx, beginManual(t, eng, "deaf"), sajou.RerunConfig{Episode: deaf}); err != nil {
		t.Fatal(err)
	}
	diff := strings.Join(differences(t, eng, "was", "deaf"), "\n")
	if !strings.Contains(diff, `1: flag alarmed: "set by a signal" → ""`) || !strings.Contains(diff, `2: landed alarm: "verified by keyword, heard in turn 2" → ""`) {
		t.Errorf("a rule less:\n%s", diff)
	}
}

// Whatever a log holds, what reads it ends, and says the same when it reads again.
func FuzzScript(f *testing.F) {
	var pool []eventlog.Draft
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Judge: inTurn(dinnerAnswers)})
	if err != nil {
		f.Fatal(err)
	}
	ses, err := eng.Begin(context.Background(), "pool", sajou.TimeManual)
	if err != nil {
		f.Fatal(err)
	}
	p := ses.Director()
	must := func(err error) {
		if err != nil {
			f.Fatal(err)
		}
	}
	must(p.Start(context.Background(), episode(f, dinner), director.Opening{}))
	for n, text := range []string{"Sit.", "A toast.", "The letter."} {
		_, err := p.Guide(context.Background(), director.Input{Turn: n + 1, Text: "Hm."})
		must(err)
		_, err = p.Respond(context.Background(), director.Response{Turn: n + 1, Text: text})
		must(err)
	}
	for e, err := range ses.Entries(context.Background(), 1) {
		must(err)
		pool = append(pool, eventlog.Draft{Kind: e.Kind, Data: e.Data})
	}
	must(eng.Close())
	all := make([]byte, len(pool))
	for i := range all {
		all[i] = byte(i)
	}
	f.Add(all, []byte(nil))
	f.Add(append(slices.Clone(all), all...), []byte("\x92\xaaturnOpened\x81\xa4turn\x05"))
	f.Add(all[:8], []byte("\x92\xafverdictRecorded\x83\xa4turn\x01\xa7attempt\x01\xa4beat\xa5toast"))
	f.Fuzz(func(t *testing.T, order, data []byte) {
		if len(order) > 256 || len(data) > 1<<12 {
			return
		}
		eng := memory(t, sajou.Config{})
		log, err := eng.Log().Session("was")
		if err != nil {
			t.Fatal(err)
		}
		drafts := make([]eventlog.Draft, 0, len(order)+1)
		for _, o := range order {
			d := pool[int(o)%len(pool)]
			if o >= 128 && len(data) > 0 {
				d = eventlog.Draft{Kind: eventlog.KindBeat, Data: data}
			}
			drafts = append(drafts, d)
		}
		if len(drafts) == 0 {
			return
		}
		if _, err := log.Append(t.Context(), eventlog.Batch{Drafts: drafts}); err != nil {
			return
		}
		was := eng.Replay("was")
		end := log.Head().Seq
		board, err := was.Board(t.Context(), end)
		if err != nil && !errors.Is(err, sajou.ErrNoEpisode) {
			t.Fatal(err)
		}
		if board != nil && len(board.Beats) != len(board.Episode.Beats) {
			t.Errorf("%d beats of %d", len(board.Beats), len(board.Episode.Beats))
		}
		if _, err := was.Verdicts(t.Context()); err != nil {
			t.Fatal(err)
		}
		travel, err := was.Open()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"beat:toast#-1", "turn:2#2"} {
			a, err := replay.ParseAddress(text)
			if err != nil {
				t.Fatal(err)
			}
			if m, err := travel.Resolve(t.Context(), a); err != nil && !errors.Is(err, replay.ErrNoAddress) || m.Seq > end {
				t.Errorf("%s is %v, %v", text, m, err)
			}
		}
		for _, d := range differences(t, eng, "was", "was") {
			t.Errorf("differs from itself: %s", d)
		}
		for _, mode := range []sajou.RerunMode{sajou.RerunStrict, sajou.RerunLoose} {
			now := beginManual(t, eng, mode.String())
			_, err := was.Rerun(t.Context(), now, sajou.RerunConfig{Mode: mode})
			var prompt *sajou.PromptError
			if err != nil && !errors.Is(err, sajou.ErrNoEpisode) && !errors.Is(err, sajou.ErrNoText) && !errors.As(err, &prompt) {
				t.Errorf("%v: %v", mode, err)
			}
			if now.Head().Seq > 0 {
				differences(t, eng, "was", now.Name())
			}
		}
	})
}

// Messages that a judge saw and the log does not have cannot be shown again:
// strict says so, and loose does not need them.
func TestRerunUnknownMessages(t *testing.T) {
	eng := memory(t, sajou.Config{})
	was := beginManual(t, eng, "was")
	d := was.Director().With(says("YES"))
	if err := d.Start(t.Context(), episode(t, tea), director.Opening{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Guide(t.Context(), director.Input{Turn: 1, Text: "Hello."}); err != nil {
		t.Fatal(err)
	}
	before := []director.Message{{Role: "user", Text: "of another evening"}}
	if _, err := d.Respond(t.Context(), director.Response{Turn: 1, Text: "Come in.", Before: before}); err != nil {
		t.Fatal(err)
	}
	var prompt *sajou.PromptError
	_, err := eng.Replay("was").Rerun(t.Context(), beginManual(t, eng, "strict"), sajou.RerunConfig{})
	if !errors.As(err, &prompt) || prompt.Rebuilt {
		t.Errorf("strict: %v", err)
	}
	_, err = eng.Replay("was").Rerun(t.Context(), beginManual(t, eng, "loose"), sajou.RerunConfig{Mode: sajou.RerunLoose})
	if d := differences(t, eng, "was", "loose"); err != nil || d != nil {
		t.Errorf("loose: %v, %q", err, d)
	}
}
