package fork_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay/fork"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// joined records an episode whose beats become signals, and whose flags are set by effects
// and signals.
func joined(t *testing.T, eng *sajou.Engine) {
	ctx := t.Context()
	ses := recordWorld(t, eng, "door")
	_, err := ses.Agents().Broadcast(ctx, enginetest.Draft("EntityCreated", "gm", `{"entity_id":"lock"}`))
	require.NoError(t, err)
	d := ses.Director()
	require.NoError(t, d.Start(ctx, enginetest.Authored(t, enginetest.Joined), director.Opening{}))
	for turn, said := range []string{"There is a knock.", "She opens the door.", "She runs away."} {
		_, err := d.Guide(ctx, director.TurnInput{Turn: turn + 1, Text: fmt.Sprint("line ", turn)})
		require.NoError(t, err)
		_, err = ses.Signal(ctx, enginetest.TaskSignal(turn, int64(turn)*100))
		require.NoError(t, err)
		_, err = d.Respond(ctx, director.Response{Turn: turn + 1, Text: said})
		require.NoError(t, err)
		if turn == 0 {
			intent := enginetest.Interact("lock")
			intent.AgentID = "ann"
			intent.ContextSeq, _ = ses.Agents().LatestViewSeq("ann")
			_, err = ses.Agents().Submit(ctx, intent)
			require.NoError(t, err)
			_, err = ses.Record(ctx, sajou.Addition{Signals: enginetest.Step{Typ: "error"}.Record(t, 1, 10).Signals})
			require.NoError(t, err)
		}
	}
}

// words lists the director's entries and the signals, as one line each.
func words(list []eventlog.Entry) (out []string) {
	for i := range list {
		e := &list[i]
		switch r, err := session.BeatOf(e); {
		case err == nil:
			out = append(out, r.Word+" "+string(r.Value.AppendJSON(nil)))
		case e.Kind == eventlog.KindSignal:
			sig, err := session.SignalOf(e)
			if err == nil {
				out = append(out, "signal "+sig.Type)
			}
		default:
			out = append(out, e.Kind.String())
		}
	}
	return out
}

// A director that is played again from any entry on, with nothing changed, decides what it
// decided: the entries are the recorded ones.
func TestDirectorAgain(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	enginetest.PlayDinner(t, eng, enginetest.InTurn(enginetest.DinnerAnswers))
	joined(t, eng)
	for _, name := range []string{"dinner", "door"} {
		list := entries(t, eng, name)
		played := 0
		for i := 1; i < len(list); i++ {
			e := &list[i]
			edits := variant.Edits{Set: map[eventlog.Seq][]byte{e.Seq: e.Data}}
			made, err := fork.New(t.Context(), source(t, eng, name), fork.Config{Edits: edits})
			if errors.Is(err, variant.ErrChange) {
				assert.Zero(t, e.Batch, "entry %d of %s: %v", e.Seq, name, err)
				assert.NotEqual(t, eventlog.Seq(2), e.Seq)
				assert.ErrorContains(t, err, "is part of the decision that begins with entry")
				continue
			}
			require.NoError(t, err)
			report := made.Report()
			require.Nil(t, report.Stopped, "entry %d of %s", e.Seq, name)
			require.Empty(t, report.Left, "entry %d of %s", e.Seq, name)
			played += report.Played
			_, _, err = eng.Fork(t.Context(), name, fmt.Sprint(name, "-", i), fork.Config{Edits: edits})
			require.NoError(t, err)
			got := entries(t, eng, fmt.Sprint(name, "-", i))
			require.Equal(t, words(list), words(got), "entry %d of %s", e.Seq, name)
			for j := range list[1:] {
				require.Equal(t, list[j+1].Body, got[j+1].Body)
			}
		}
		assert.Greater(t, played, 10)
	}
}

func source(t *testing.T, eng *sajou.Engine, name string) *eventlog.SessionReader {
	log, err := eng.Log().Session(name)
	require.NoError(t, err)
	return log
}

// find returns the first entry whose word and value have a text.
func find(t *testing.T, list []eventlog.Entry, text string) *eventlog.Entry {
	for i, line := range words(list) {
		if strings.Contains(line, text) {
			return &list[i]
		}
	}
	t.Fatalf("no %q in %q", text, words(list))
	return nil
}

// The recorded answers stand while their questions are the same; another one is put to a
// model, or the fork ends.
func TestModels(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	enginetest.PlayDinner(t, eng, enginetest.InTurn(enginetest.DinnerAnswers))
	list := entries(t, eng, "dinner")
	drop := func(text string) fork.Config {
		return fork.Config{Edits: variant.Edits{Drop: []eventlog.Seq{find(t, list, text).Seq}}}
	}

	// Without its choice the user says the same words, so all answers stand.
	typed, _, err := eng.Fork(t.Context(), "dinner", "typed", drop("choiceSelected"))
	require.NoError(t, err)
	require.Nil(t, typed.Report().Stopped)
	assert.NotContains(t, strings.Join(words(entries(t, eng, "typed")), "\n"), `"flag":"drank"`)

	// Without the verdict the beat does not land, and the character has another direction.
	choice := drop(`"raw":"YES."`)
	made, _, err := eng.Fork(t.Context(), "dinner", "stopped", choice)
	require.NoError(t, err)
	stopped := made.Report().Stopped
	require.NotNil(t, stopped)
	assert.Equal(t, "in turn 3 the character answers in another scene than recorded; name a model for the character", stopped.Reason)
	assert.Equal(t, "responseRecorded", strings.Fields(words(list)[stopped.Parent-1])[0])
	assert.Zero(t, made.Report().Asked)
	require.Len(t, made.Report().Left, 1)
	assert.Equal(t, "choiceSelected", made.Report().Left[0].What)

	var scenes []history.CharacterTurn
	choice.Models.Answer = func(_ context.Context, turn history.CharacterTurn) (string, error) {
		scenes = append(scenes, turn)
		return fmt.Sprintf("Live answer %d, with a letter.", turn.Guidance.Turn), nil
	}
	made, _, err = eng.Fork(t.Context(), "dinner", "asks", choice)
	require.NoError(t, err)
	require.NotNil(t, made.Report().Stopped)
	assert.Contains(t, made.Report().Stopped.Reason, `in turn 3 the judge is asked about`)
	assert.Contains(t, made.Report().Stopped.Reason, `name a model for the judge`)
	scenes = nil
	var asked []string
	choice.Models.Judge = enginetest.JudgeFunc(func(_ context.Context, q director.Question) (string, error) {
		asked = append(asked, fmt.Sprintf("%d %s", q.Turn, q.Subject.ID))
		return "NO", nil
	})
	made, head, err := eng.Fork(t.Context(), "dinner", "live", choice)
	require.NoError(t, err)
	require.Nil(t, made.Report().Stopped)
	assert.Equal(t, len(scenes)+len(asked), made.Report().Asked, "each is asked once, in the first of two passes")
	assert.Equal(t, []int{3, 4, 5}, []int{scenes[0].Guidance.Turn, scenes[1].Guidance.Turn, scenes[2].Guidance.Turn})
	last := scenes[1].Messages
	assert.Equal(t, session.Utterance{Turn: 4, Role: "user", Text: "What is it?"}, last[len(last)-1])
	got := words(entries(t, eng, "live"))
	assert.Contains(t, strings.Join(got, "\n"), "Live answer 3, with a letter.")
	assert.NotContains(t, strings.Join(got, "\n"), "drank")
	assert.Equal(t, made.Report().Entries, int(head.Seq))

	// A failing model ends the fork where it failed.
	choice.Models.Judge = enginetest.JudgeFunc(func(context.Context, director.Question) (string, error) { return "", errors.New("HTTP 500") })
	made, _, err = eng.Fork(t.Context(), "dinner", "fails", choice)
	require.NoError(t, err)
	assert.Equal(t, "in turn 3 the model does not answer: HTTP 500", made.Report().Stopped.Reason)
	ctx, cancel := context.WithCancel(t.Context())
	choice.Models.Judge = enginetest.JudgeFunc(func(ctx context.Context, _ director.Question) (string, error) {
		cancel()
		return "", ctx.Err()
	})
	_, _, err = eng.Fork(ctx, "dinner", "cancelled", choice)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, source(t, eng, "cancelled").Exists())

	// A text that is set is judged, and stands without a model for the character.
	text := find(t, list, "I have something for you.")
	set := fork.Config{Edits: variant.Edits{Set: map[eventlog.Seq][]byte{text.Seq: session.AppendWord(nil, session.WordMessage,
		session.Utterance{Turn: 3, Attempt: 1, Role: "character", Text: "Here is a letter."}.Record().Value)}}}
	made, _, err = eng.Fork(t.Context(), "dinner", "said", set)
	require.NoError(t, err)
	assert.Contains(t, made.Report().Stopped.Reason, "in turn 3 the judge is asked about")
	set.Models.Judge = enginetest.InTurn(nil)
	made, _, err = eng.Fork(t.Context(), "dinner", "said and judged", set)
	require.NoError(t, err)
	got = words(entries(t, eng, "said and judged"))
	find(t, entries(t, eng, "said and judged"), `beatLanded {"turn":3,"beat":"letter","method":"keyword"`)
	assert.NotContains(t, strings.Join(got, "\n"), "beatForced")
	assert.Contains(t, made.Report().Stopped.Reason, "in turn 4 the character answers in another scene")
}

// Without an effect its reactions do not happen, nor what depended on them; entries keep
// their numbers where there are fewer.
func TestReactions(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	joined(t, eng)
	list := entries(t, eng, "door")
	var at eventlog.Seq
	for i := range list {
		if r, err := session.WorldRecordOf(&list[i]); err == nil && r.Value.TextOf("kind") == "Interact" {
			at = list[i].Seq
		}
	}
	require.NotZero(t, at)
	made, _, err := eng.Fork(t.Context(), "door", "locked", fork.Config{Edits: variant.Edits{Drop: []eventlog.Seq{at}}})
	require.NoError(t, err)
	got := entries(t, eng, "locked")
	text := strings.Join(words(got), "\n")
	assert.NotContains(t, text, "unlocked")
	assert.Contains(t, text, `"flag":"alarmed"`)
	require.GreaterOrEqual(t, len(got), int(at)+3)
	for i := at; i < at+3; i++ { // the effect, its flag and the signal of that
		assert.True(t, variant.IsDropped(&got[i-1]), "entry %d", i)
	}
	find(t, got, `signal error`)
	assert.Equal(t, find(t, list, "signal error").Seq, find(t, got, "signal error").Seq)
	assert.NotZero(t, made.Report().Played)

	// An error that is inserted sets a flag of its own.
	extra := enginetest.Step{Typ: "error"}.Record(t, 1, 10).Signals[0]
	edits := variant.Edits{Insert: []variant.Inserted{{Before: 2, Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, Data: extra.Append(nil)}}}}}
	_, _, err = eng.Fork(t.Context(), "door", "early", fork.Config{Edits: edits})
	require.NoError(t, err)
	assert.Len(t, entries(t, eng, "early"), len(list)+1, "before the episode begins nobody reacts")

	// Half of a decision cannot be left out.
	part := find(t, list, "guidanceIssued").Seq
	_, _, err = eng.Fork(t.Context(), "door", "part", fork.Config{Edits: variant.Edits{Drop: []eventlog.Seq{part}}})
	require.ErrorIs(t, err, variant.ErrChange)
	assert.ErrorContains(t, err, fmt.Sprintf("entry %d, guidanceIssued, is part of the decision that begins with entry %d; change that one", part, part-2))
}

// Whatever is left out of a played episode, every event of the fork is one that its
// director's fold takes in, and everything else is there at its time.
func TestDirectorProperty(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	enginetest.PlayDinner(t, eng, enginetest.InTurn(enginetest.DinnerAnswers))
	joined(t, eng)
	models := fork.Models{
		Judge: enginetest.InTurn(nil),
		Answer: func(context.Context, history.CharacterTurn) (string, error) {
			return "She knocks and opens a letter.", nil
		},
	}
	runs, played, refused := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"dinner", "door"}).Draw(rt, "session")
		list := entries(rt, eng, name)
		var drop []eventlog.Seq
		for i := 1; i < len(list); {
			n := max(list[i].Batch, 1)
			if i == 1 {
				n = max(list[0].Batch, 2) - 1
			}
			if rapid.IntRange(0, 7).Draw(rt, "drop") == 0 {
				for j := range n {
					drop = append(drop, list[i+j].Seq)
				}
			}
			i += n
		}
		runs++
		made, head, err := eng.Fork(context.Background(), name, fmt.Sprint("fork-", runs), fork.Config{Edits: variant.Edits{Drop: drop}, Models: models})
		require.NoError(rt, err)
		report := made.Report()
		played += report.Played
		refused += len(report.Left)
		require.Equal(rt, report.Entries, int(head.Seq))
		var state director.State
		got := entries(rt, eng, fmt.Sprint("fork-", runs))
		for i := range got {
			if r, ok := session.DirectorRecordOf(&got[i]); ok {
				require.NoError(rt, state.Apply(r.Word, r.Value), "entry %d", i+1)
			}
			require.GreaterOrEqual(rt, got[i].At, got[max(i-1, 0)].At)
		}
		if report.Stopped != nil {
			return
		}
		tasks := 0
		for i := range list {
			if sig, err := session.SignalOf(&list[i]); err == nil && sig.Type == "task_dispatch" && !slices.Contains(drop, list[i].Seq) {
				tasks++
			}
		}
		for i := range got {
			if sig, err := session.SignalOf(&got[i]); err == nil && sig.Type == "task_dispatch" {
				tasks--
			}
		}
		require.Zero(rt, tasks, "signals of others stay")
	})
	assert.NotZero(t, played)
	assert.NotZero(t, refused)
}

// An episode is set to one with the same id only, since the events of the director name it.
func TestSetEpisode(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	enginetest.PlayDinner(t, eng, enginetest.InTurn(enginetest.DinnerAnswers))
	log, err := eng.Log().Session("dinner")
	require.NoError(t, err)
	found := 0
	for e, err := range log.Entries(t.Context(), 1) {
		require.NoError(t, err)
		d, err := session.DeclarationOf(&e)
		if err != nil || d.Word() != episode.Word {
			continue
		}
		found++
		set := func(old, with string) error {
			text := strings.Replace(string(d.Value().AppendJSON(nil)), old, with, 1)
			value, err := signal.ParseValue([]byte(text))
			require.NoError(t, err)
			_, err = fork.New(t.Context(), log, fork.Config{Edits: variant.Edits{Set: map[eventlog.Seq][]byte{e.Seq: session.AppendWord(nil, d.Word(), value)}}})
			return err
		}
		require.NoError(t, set("", ""))
		err = set(strconv.Quote(d.Name()), `"another"`)
		require.ErrorIs(t, err, variant.ErrChange)
		require.ErrorContains(t, err, fmt.Sprintf("it declares the episode %q, which the events of the director name; keep its id", d.Name()))
	}
	require.Positive(t, found)
}
