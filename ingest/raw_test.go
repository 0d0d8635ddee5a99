package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/session"
)

// store opens an engine in memory.
func store(t interface {
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
},
) *sajou.Engine {
	t.Helper()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
	})
	return eng
}

// exported returns the raw export of the session a.
func exported(t require.TestingT, eng *sajou.Engine) string {
	log, err := eng.Log().Session("a")
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, session.Export(context.Background(), &b, log, session.ExportRaw, 1, 0))
	return b.String()
}

// A raw export gives the session again: the same head, the same entries, the same batches
// of keys, and so the same export, whatever the session is, and wherever an earlier import
// of it has stopped.
func TestRawGivesTheSameHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		from, to := store(t), store(t)
		at := time.Duration(0)
		var keys []string
		for n := range rapid.IntRange(1, 12).Draw(t, "batches") {
			var b eventlog.Batch
			for range rapid.IntRange(1, 4).Draw(t, "entries") {
				at += time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "pause"))
				b.Drafts = append(b.Drafts, eventlog.Draft{
					Kind: eventlog.Kind(rapid.IntRange(1, 5).Draw(t, "kind")), At: at,
					Data: msgp.AppendString(nil, rapid.String().Draw(t, "data")),
				})
			}
			if rapid.Bool().Draw(t, "keyed") {
				b.Key = fmt.Sprint("key ", n)
				keys = append(keys, b.Key)
			}
			_, err := from.Restore(ctx, "a", b)
			require.NoError(t, err)
		}
		want := exported(t, from)
		lines := strings.SplitAfter(want, "\n")
		if cut := rapid.IntRange(0, len(lines)-1).Draw(t, "cut"); cut > 0 {
			_, err := ingest.Raw(ctx, to, strings.NewReader(strings.Join(lines[:cut], "")+"{"), ingest.RawConfig{})
			require.Error(t, err)
		}
		tally, err := ingest.Raw(ctx, to, strings.NewReader(want), ingest.RawConfig{})
		require.NoError(t, err)
		log, err := from.Log().Session("a")
		require.NoError(t, err)
		require.Equal(t, log.Head(), tally.Head)
		require.Equal(t, int(log.Head().Seq), tally.Entries+tally.Skipped)
		require.Equal(t, want, exported(t, to))
		for _, key := range keys {
			repeat := eventlog.Batch{Key: key, Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, Data: msgp.AppendNil(nil)}}}
			first, err := from.Restore(ctx, "a", repeat)
			require.NoError(t, err)
			again, err := to.Restore(ctx, "a", repeat)
			require.NoError(t, err)
			require.Equal(t, first, again, key)
		}
	})
}

// recorded returns the raw export of a session of five entries, the middle three of one
// batch with a key.
func recorded(t *testing.T) string {
	t.Helper()
	eng := store(t)
	entry := func(n int) eventlog.Draft {
		return eventlog.Draft{Kind: eventlog.KindSignal, At: time.Duration(n), Data: msgp.AppendInt(nil, n)}
	}
	_, err := eng.Restore(t.Context(), "a",
		eventlog.Batch{Drafts: []eventlog.Draft{entry(1)}},
		eventlog.Batch{Drafts: []eventlog.Draft{entry(2), entry(3), entry(4)}, Key: "k"},
		eventlog.Batch{Drafts: []eventlog.Draft{entry(5)}})
	require.NoError(t, err)
	return exported(t, eng)
}

// An export of before batches were written into it gives the same head.
func TestRawWithoutBatches(t *testing.T) {
	text := recorded(t)
	require.Equal(t, 1, strings.Count(text, `,"batch":3`))
	eng := store(t)
	tally, err := ingest.Raw(t.Context(), eng, strings.NewReader(strings.Replace(text, `,"batch":3`, "", 1)), ingest.RawConfig{})
	require.NoError(t, err)
	require.Equal(t, eventlog.Seq(5), tally.Head.Seq)
	require.Contains(t, text, tally.Head.Hash.String())
}

// A line that does not follow from those before it ends the import, with its place. What
// stands in front of its batch is recorded, and the import can be completed.
func TestRawRefusesWhatDoesNotFollow(t *testing.T) {
	text := recorded(t)
	lines := strings.SplitAfter(text, "\n")
	swap := func(old, with string) func([]string) []string {
		return func(lines []string) []string {
			return strings.SplitAfter(strings.Replace(strings.Join(lines, ""), old, with, 1), "\n")
		}
	}
	bytesOf := regexp.MustCompile(`"entry":"[^"]*"`)
	for name, tt := range map[string]struct {
		change  func(lines []string) []string
		line    int
		entries int
		want    error
	}{
		"another name":      {swap(`"session":"a"`, `"session":"b"`), 1, 0, eventlog.ErrInvalid},
		"no header":         {func(l []string) []string { return l[1:] }, 1, 0, eventlog.ErrInvalid},
		"nothing":           {func([]string) []string { return nil }, 1, 0, eventlog.ErrInvalid},
		"no JSON":           {func(l []string) []string { l[5] = "x"; return l }, 6, 4, eventlog.ErrInvalid},
		"a changed entry":   {func(l []string) []string { l[1] = bytesOf.ReplaceAllString(l[1], bytesOf.FindString(l[5])); return l }, 2, 0, eventlog.ErrCorrupt},
		"a missing entry":   {func(l []string) []string { return slices.Delete(l, 3, 4) }, 4, 1, eventlog.ErrCorrupt},
		"two in one place":  {func(l []string) []string { l[3], l[4] = l[4], l[3]; return l }, 4, 1, eventlog.ErrCorrupt},
		"another session's": {func(l []string) []string { l[5] = strings.Replace(l[5], `"a"`, `"b"`, 1); return l }, 6, 4, eventlog.ErrCorrupt},
		"a cut entry":       {func(l []string) []string { l[5] = bytesOf.ReplaceAllString(l[5], `"entry":"BQ=="`); return l }, 6, 4, eventlog.ErrCorrupt},
		"a key in a batch":  {func(l []string) []string { l[1] = strings.Replace(l[1], `,"entry"`, `,"batch":2,"entry"`, 1); return l }, 3, 0, eventlog.ErrCorrupt},
		"a negative batch": {func(l []string) []string {
			l[1] = strings.Replace(l[1], `,"entry"`, `,"batch":-2,"entry"`, 1)
			return l
		}, 2, 0, eventlog.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			eng := store(t)
			tally, err := ingest.Raw(t.Context(), eng, strings.NewReader(strings.Join(tt.change(slices.Clone(lines)), "")), ingest.RawConfig{File: "f"})
			require.ErrorIs(t, err, tt.want)
			var place *recording.PlaceError
			require.ErrorAs(t, err, &place)
			require.Equal(t, recording.Place{File: "f", Line: tt.line}, place.Place)
			require.Equal(t, tt.entries, tally.Entries)
			tally, err = ingest.Raw(t.Context(), eng, strings.NewReader(text), ingest.RawConfig{})
			require.NoError(t, err)
			require.Equal(t, tt.entries, tally.Skipped)
			require.Equal(t, text, exported(t, eng))
		})
	}
}

// Other JSONL is not taken for a raw export of a session with a strange name.
func TestRawSaysThatAFileIsNotRaw(t *testing.T) {
	_, err := ingest.Raw(t.Context(), store(t), strings.NewReader(`{"id":"1","type":"thinking"}`+"\n"), ingest.RawConfig{File: "f"})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	require.ErrorContains(t, err, "not a raw export")
}

// A session with other entries, one that is open, and one that was deleted are left as they
// are.
func TestRawLeavesOtherSessions(t *testing.T) {
	ctx := t.Context()
	text := recorded(t)
	lines := strings.SplitAfter(text, "\n")
	eng := store(t)
	raw := func(text string) error {
		tally, err := ingest.Raw(ctx, eng, strings.NewReader(text), ingest.RawConfig{})
		require.Zero(t, tally.Entries)
		return err
	}
	draft := eventlog.Draft{Kind: eventlog.KindSignal, Data: msgp.AppendNil(nil)}
	_, err := eng.Restore(ctx, "a", eventlog.Batch{Drafts: []eventlog.Draft{draft, draft}})
	require.NoError(t, err)
	var mismatch *ingest.MismatchError
	require.ErrorAs(t, raw(text), &mismatch)
	require.ErrorAs(t, raw(strings.Join(lines[:2], "")), &mismatch, "a shorter one")
	_, err = eng.Delete(ctx, "a")
	require.NoError(t, err)
	require.ErrorIs(t, raw(text), eventlog.ErrDeleted)

	eng = store(t)
	ses, err := eng.Session(ctx, "a")
	require.NoError(t, err)
	require.ErrorIs(t, raw(text), eventlog.ErrClaimed)
	require.Zero(t, ses.Head().Seq)

	eng = store(t)
	var progress []int
	_, err = ingest.Raw(ctx, eng, strings.NewReader(text), ingest.RawConfig{Progress: func(n int) { progress = append(progress, n) }})
	require.NoError(t, err)
	require.Equal(t, []int{5}, progress)
	require.NoError(t, raw(strings.Join(lines[:3], "")), "the beginning of what is there")
	ended, end := context.WithCancel(ctx)
	end()
	_, err = ingest.Raw(ended, eng, strings.NewReader(text), ingest.RawConfig{})
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, errors.Is(err, eventlog.ErrInvalid))
}

// A program copies a session from one store to another.
func ExampleRaw() {
	ctx := context.Background()
	open := func() *sajou.Engine {
		engine, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
		if err != nil {
			panic(err)
		}
		return engine
	}
	from, to := open(), open()
	defer from.Close()
	defer to.Close()
	draft := eventlog.Draft{Kind: eventlog.KindSession, Data: msgp.AppendNil(nil)}
	head, err := from.Restore(ctx, "night", eventlog.Batch{Drafts: []eventlog.Draft{draft}})
	if err != nil {
		panic(err)
	}
	log, err := from.Log().Session("night")
	if err != nil {
		panic(err)
	}
	var text bytes.Buffer
	if err := session.Export(ctx, &text, log, session.ExportRaw, 1, 0); err != nil {
		panic(err)
	}
	tally, err := ingest.Raw(ctx, to, &text, ingest.RawConfig{File: "night.raw.jsonl"})
	fmt.Println(tally.Session, tally.Entries, tally.Head == head, err)
	// Output: night 1 true <nil>
}
