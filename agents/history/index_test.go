package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/session"
)

// passes returns the history of the agents, and a function that returns the last entries of
// the passes over it since the last call.
func passes(t require.TestingT, eng *sajou.Engine) (h *history.History, read func() string) {
	h, err := eng.AgentHistory("village")
	require.NoError(t, err)
	var ends []eventlog.Seq
	h = h.OnProgress(func(done, total eventlog.Seq) {
		if done == total {
			ends = append(ends, done)
		}
	})
	return h, func() string {
		text := fmt.Sprint(ends)
		ends = nil
		return text
	}
}

// changes returns all changes of some paths in the views of all agents, and calls read with
// the passes that this took.
func changes(ctx context.Context, t require.TestingT, eng *sajou.Engine, read func(question, passes string)) (list []string) {
	h, passed := passes(t, eng)
	for _, agent := range villagerNames {
		for _, text := range []string{
			"/visible_entities/box", "/visible_entities/ann", "/visible_entities/ann/position", "/visible_entities/bob/label",
			"/visible_relationships/ann", "/visible_entities/nobody", "/visible_entities", "/view_seq",
		} {
			path, err := jsondoc.ParsePointer(text)
			require.NoError(t, err)
			for change, err := range h.ValueChanges(ctx, agent, path, nil) {
				list = append(list, fmt.Sprintf("%s %s: %d at %v %s, before %s, coming %v, %v", agent, text, change.Entry, change.Delivery.At, change.Value, change.Before, change.Coming, err))
			}
			first, found, err := h.FirstKnown(ctx, agent, path, nil)
			list = append(list, fmt.Sprintf("%s %s: first %d %s, %v %v", agent, text, first.Entry, first.Value, found, err))
			read(agent+" "+text, passed())
		}
	}
	return list
}

// requests returns the histories of all requests of all agents as JSON, and of agents that
// never were, and calls read with the passes that this took.
func requests(ctx context.Context, t require.TestingT, eng *sajou.Engine, count func(query.RequestReport), read func(question, passes string)) (list []string) {
	h, passed := passes(t, eng)
	for _, agent := range append([]string{"nobody", ""}, villagerNames...) {
		for _, reqID := range []string{"1", "2", "3", "1b", "none"} {
			report, err := h.Request(ctx, agent, reqID)
			list = append(list, fmt.Sprintf("%s, %v", shownReport(t, report), err))
			count(report)
			read(agent+" "+reqID, passed())
		}
	}
	return list
}

// same fails at the first answer that differs.
func same(t require.TestingT, want, got []string) {
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], got[i])
	}
}

func shownReport(t require.TestingT, report query.RequestReport) string {
	text, err := json.Marshal(report)
	require.NoError(t, err)
	return string(text)
}

// staleDeeds is a life in which generations end in many ways, some of them interrupted later
// because of the interruption before, and in which an agent leaves and comes back.
func staleDeeds() (deeds []villageDeed) {
	do := func(list ...villageDeed) {
		for _, d := range list {
			deeds = append(deeds, d)
			for i := range 3 { // a pass jumps over them, and the rules change meanwhile
				deeds = append(deeds, villageDeed{do: "configure", ms: int64(len(deeds) + i)})
			}
		}
	}
	move := villageDeed{do: "broadcast", agent: "ada", value: `Move {"to":[2,1]}`}
	wait := func(ms int64) villageDeed { return villageDeed{do: "advance", ms: ms} }
	begin := func(agent, reqID string) villageDeed {
		return villageDeed{do: "begin", agent: agent, reqID: reqID, ms: 400, seq: newestContext}
	}
	for i := range 4 {
		do(begin("bob", "1"), begin("bob", "2"), move, wait(80)) // both are interrupted
		do(begin("bob", "3"), begin("bob", "3"), move, wait(80)) // it is put off
		if i == 1 {
			do(villageDeed{do: "leave", agent: "bob"}, move, villageDeed{do: "register", agent: "bob", seq: 1})
			do(begin("bob", "1"), move, wait(80))
		}
		do(wait(240), begin("bob", "1"), begin("ada", "1"), wait(240), wait(240))
	}
	do(begin("c/d", "2"))
	return deeds
}

// TestViewsIndex: what agents knew, and what became of their requests, is the same with an
// index, also if the session has grown since, and where the index jumps from entry to entry.
// A trace keeps which entries it names and jumps to.
func TestViewsIndex(t *testing.T) {
	golden.Trace(t, "testdata/passes.txt", func(step func(name, text string)) { testViewsIndex(t, step) })
}

func testViewsIndex(t *testing.T, step func(name, text string)) {
	defer history.Jumps(1)()
	defer history.Early(3)()
	ends := map[query.GenerationEnd]int{}
	putOff := 0
	dir := t.TempDir()
	ctx := t.Context()
	for n := range 5 { // each opens a store seven times
		store := filepath.Join(dir, fmt.Sprint(n))
		live := func(deeds []villageDeed) {
			eng, err := sajou.Open(store, sajou.Config{SnapshotEvery: 4})
			require.NoError(t, err)
			defer func() { _ = eng.Close() }()
			ses, err := eng.Begin(ctx, "village", session.TimeManual)
			require.NoError(t, err)
			require.NoError(t, found(ctx, t, ses))
			for _, d := range deeds {
				require.NoError(t, d.perform(ctx, t, ses, done{}))
			}
			require.NoError(t, ses.Agents().Settle(ctx))
		}
		var count func(query.RequestReport)
		read := func(string, string) {}
		ask := func(from int) []string {
			eng, err := sajou.Open(store, sajou.Config{ReadOnly: true, IndexFrom: from})
			require.NoError(t, err)
			defer func() { _ = eng.Close() }()
			answers := append(changes(ctx, t, eng, read), requests(ctx, t, eng, count, read)...)
			files, _, err := eng.IndexUsage("village")
			require.NoError(t, err)
			require.Equal(t, from > 0, files > 0)
			return answers
		}
		deeds := rapid.SliceOfN(drawVillageDeed, 8, 20).Example(n)
		if n == 3 {
			deeds = staleDeeds()
		}
		half := len(deeds) * (n % 4) / 4
		live(deeds[:half])
		count = func(query.RequestReport) {}
		plain := ask(-1)
		require.NotEmpty(t, plain)
		same(t, plain, ask(1))
		live(deeds[half:])
		grown := ask(1)
		eng, err := sajou.Open(store, sajou.Config{})
		require.NoError(t, err)
		require.NoError(t, eng.DropIndexes("village"))
		require.NoError(t, eng.Close())
		same(t, ask(-1), grown)
		count = func(report query.RequestReport) {
			for _, g := range report.Generations {
				ends[g.End]++
				if g.PutOff {
					putOff++
				}
			}
		}
		read = func(question, passes string) { step(fmt.Sprintf("%d %s", n, question), passes) }
		same(t, grown, ask(1)) // it is built again
		named(ctx, t, store, func(question, entries string) { step(fmt.Sprintf("%d %s named", n, question), entries) })
	}
	require.Positive(t, putOff)
	for _, end := range []query.GenerationEnd{query.EndNone, query.EndStale, query.EndReplaced, query.EndDeadline, query.EndLeft} {
		require.Positive(t, ends[end], end)
	}
}

// named tells the entries that the index of a store names for each question. Those about
// registrations are the ones of the log.
func named(ctx context.Context, t *testing.T, store string, tell func(question, entries string)) {
	eng, err := sajou.Open(store, sajou.Config{ReadOnly: true, IndexFrom: 1})
	require.NoError(t, err)
	defer func() { _ = eng.Close() }()
	h, err := eng.AgentHistory("village")
	require.NoError(t, err)
	r, err := eng.Replay("village")
	require.NoError(t, err)
	registered := map[string][]eventlog.Seq{}
	var first []eventlog.Seq
	for e, err := range r.Entries(ctx, 1) {
		require.NoError(t, err)
		if record, err := session.WorldRecordOf(&e); err == nil && record.Word == agents.WordAgent {
			id := record.Value.TextOf("agent_id")
			if registered[id] == nil {
				first = append(first, e.Seq)
			}
			registered[id] = append(registered[id], e.Seq)
		}
	}
	head := r.Head().Seq
	for _, agent := range append([]string{"nobody"}, villagerNames...) {
		for _, reqID := range []string{"1", "2", "3", "1b", "none"} {
			list, ok, err := h.RequestCandidates(ctx, agent, reqID)
			require.NoError(t, err)
			require.True(t, ok)
			tell(agent+" "+reqID, fmt.Sprint(list))
		}
		for _, text := range []string{"/visible_entities/box", "/visible_entities/ann/position", "/visible_relationships/ann"} {
			path, err := jsondoc.ParsePointer(text)
			require.NoError(t, err)
			list, ok, err := h.PathCandidates(ctx, agent, path)
			require.NoError(t, err)
			require.True(t, ok)
			tell(agent+" "+text, fmt.Sprint(list))
		}
		for _, upTo := range append(slices.Clone(registered[agent]), head, 1) {
			var want []eventlog.Seq
			for _, seq := range registered[agent] {
				if seq <= upTo {
					want = append(want, seq)
				}
			}
			want = want[max(0, len(want)-16):]
			if want == nil { // unknown so far: the error lists all agents
				n, _ := slices.BinarySearch(first, upTo+1)
				want = first[:n]
			}
			list, err := h.Registrations(ctx, upTo, agent)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(want), fmt.Sprint(list), "%s up to %d", agent, upTo)
		}
	}
	_, ok, err := h.PathCandidates(ctx, "ann", jsondoc.Pointer{"visible_entities"})
	require.NoError(t, err)
	require.False(t, ok, "no table names the entries of a whole view")
}

// TestRequestOfManyDeltas: a generation that became stale after more deltas than are kept
// has the same report with an index, whatever its context was.
func TestRequestOfManyDeltas(t *testing.T) {
	defer history.Jumps(64)()
	store := filepath.Join(t.TempDir(), "store")
	ctx := t.Context()
	eng, err := sajou.Open(store, sajou.Config{SnapshotEvery: 512})
	require.NoError(t, err)
	ses, err := eng.Begin(ctx, "village", session.TimeManual)
	require.NoError(t, err)
	require.NoError(t, found(ctx, t, ses))
	world := ses.Agents()
	begin := func(agent, reqID, policy string, r agents.TokenRequest) {
		g, err := world.Register(ctx, agent, enginetest.Value(t, policy))
		require.NoError(t, err)
		defer g.Close()
		r.ReqID = reqID
		_, err = g.Begin(ctx, r)
		require.NoError(t, err)
	}
	step := agents.EffectDraft{Kind: "Move", SourceID: "eve", Payload: enginetest.Value(t, `{"to":[2,1]}`)}
	drafts := make([]agents.Submission, 64)
	for i := range drafts {
		drafts[i].Draft = &step
	}
	for n := range 56 {
		switch n {
		case 1:
			begin("bob", "stale", `{"policy":"everything","staleness_threshold":200}`, agents.TokenRequest{ContextSeq: 20, Deadline: time.Hour})
			begin("ada", "long", `{"policy":"everything","staleness_threshold":100000}`, agents.TokenRequest{ContextSeq: 0, Deadline: time.Hour})
		case 36:
			begin("bob", "again", `{"policy":"everything","staleness_threshold":200}`, agents.TokenRequest{Current: true, Deadline: time.Hour})
			begin("c/d", "short", `{"policy":"everything","staleness_threshold":100000}`, agents.TokenRequest{Current: true, Deadline: time.Hour})
		}
		_, err = world.Quantum(ctx, drafts...)
		require.NoError(t, err)
		require.NoError(t, world.Advance(ctx, world.Now()+100*time.Millisecond))
	}
	require.NoError(t, world.Settle(ctx))
	require.NoError(t, eng.Close())
	all := [][2]string{{"bob", "stale"}, {"ada", "long"}, {"bob", "again"}, {"c/d", "short"}}
	var reports []query.RequestReport
	named := 0
	ask := func(from int) (answers []string) {
		eng, err := sajou.Open(store, sajou.Config{ReadOnly: true, IndexFrom: from})
		require.NoError(t, err)
		defer func() { require.NoError(t, eng.Close()) }()
		h, err := eng.AgentHistory("village")
		require.NoError(t, err)
		for _, r := range all {
			report, err := h.Request(ctx, r[0], r[1])
			require.NoError(t, err)
			if list, ok, err := h.RequestCandidates(ctx, r[0], r[1]); ok && r[1] == "again" {
				// Of what came before the generation the index names the interruption of the
				// agent, and the deltas whose view_seqs have one key with that of its context.
				require.NoError(t, err)
				begun := eventlog.Seq(report.Generations[0].Entry)
				before, _ := slices.BinarySearch(list, begun)
				require.Equal(t, eventlog.Seq(reports[0].Generations[0].EndEntry), list[0])
				require.Greater(t, before, 1)
				require.Greater(t, list[1]+history.ViewStep, begun)
				named++
			}
			reports = append(reports, report)
			answers = append(answers, shownReport(t, report))
		}
		return answers
	}
	plain := ask(-1)
	require.Equal(t, query.EndStale, reports[0].Generations[0].End)
	require.Equal(t, query.MaxRecalled, reports[1].Generations[0].Count)
	require.Zero(t, named)
	same(t, plain, ask(1))
	require.Equal(t, 1, named)
}

// TestDamagedIndex: a question that meets a damaged index has the answer of one without an
// index, and the index is dropped.
func TestDamagedIndex(t *testing.T) {
	defer history.Jumps(1)()
	store := filepath.Join(t.TempDir(), "store")
	ctx := t.Context()
	eng, err := sajou.Open(store, sajou.Config{SnapshotEvery: 4})
	require.NoError(t, err)
	ses, err := eng.Begin(ctx, "village", session.TimeManual)
	require.NoError(t, err)
	require.NoError(t, found(ctx, t, ses))
	for _, d := range staleDeeds() {
		require.NoError(t, d.perform(ctx, t, ses, done{}))
	}
	require.NoError(t, ses.Agents().Settle(ctx))
	require.NoError(t, eng.Close())
	path, err := jsondoc.ParsePointer("/visible_entities/ann/position")
	require.NoError(t, err)
	questions := map[string]func(h *history.History) string{
		"changes": func(h *history.History) string {
			text := ""
			for change, err := range h.ValueChanges(ctx, "bob", path, nil) {
				text += fmt.Sprintln(change.Entry, change.Value, err)
			}
			return text
		},
		"request": func(h *history.History) string {
			report, err := h.Request(ctx, "bob", "1")
			return fmt.Sprint(shownReport(t, report), err)
		},
		"nobody": func(h *history.History) string { return fmt.Sprint(h.Request(ctx, "nobody", "1")) },
	}
	for name, ask := range questions {
		early := eventlog.Seq(1000) // all agents are found without the index
		if name == "nobody" {
			early = 3
		}
		back := history.Early(early)
		plain, err := sajou.Open(store, sajou.Config{ReadOnly: true, IndexFrom: -1})
		require.NoError(t, err)
		h, err := plain.AgentHistory("village")
		require.NoError(t, err)
		want := ask(h)
		require.NoError(t, plain.Close())

		indexed, err := sajou.Open(store, sajou.Config{ReadOnly: true, IndexFrom: 1})
		require.NoError(t, err)
		h, err = indexed.AgentHistory("village")
		require.NoError(t, err)
		require.Equal(t, want, ask(h), name)
		files, err := filepath.Glob(filepath.Join(store, "*.index.*"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		info, err := os.Stat(files[0])
		require.NoError(t, err)
		f, err := os.OpenFile(files[0], os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.Write(make([]byte, info.Size())) // the engine has it open
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, want, ask(h), name)
		used, _, err := indexed.IndexUsage("village")
		require.NoError(t, err)
		require.Zero(t, used, name)
		require.NoError(t, indexed.Close())
		back()
	}
}
