package ingest_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// An export of all entries gives the session again, whatever its entries are: signals, words,
// data that nobody can decode, and times that JSON cannot hold.
func TestEntriesGiveTheSameHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		from, to := store(t), store(t)
		at := time.Duration(0)
		for n := range rapid.IntRange(1, 10).Draw(t, "batches") {
			at += time.Duration(rapid.Int64Range(0, 1e18).Draw(t, "pause"))
			d := eventlog.Draft{At: at}
			value := signal.NewObject(1).Text("text", rapid.String().Draw(t, "text")).Float("x", rapid.Float64Range(-1e9, 1e9).Draw(t, "x")).Value()
			switch rapid.IntRange(0, 3).Draw(t, "form") {
			case 0:
				d.Kind = eventlog.KindSignal
				sig := signal.Signal{ID: "a", Type: "odd", Source: "s", Timestamp: signal.Int(int64(n)), Payload: value, Problem: rapid.SampledFrom([]string{"", "wrong"}).Draw(t, "problem")}
				d.Data = sig.Append(nil)
			case 1:
				d.Kind = eventlog.KindSignal
				d.Data = (&signal.Signal{Problem: "no envelope", Raw: value}).Append(nil)
			case 2:
				d.Kind = eventlog.Kind(rapid.IntRange(2, 5).Draw(t, "kind"))
				d.Data = session.AppendWord(nil, rapid.String().Draw(t, "word"), value)
			default:
				d.Kind = eventlog.Kind(rapid.IntRange(1, 5).Draw(t, "kind"))
				d.Data = msgp.AppendString(nil, rapid.String().Draw(t, "data"))
			}
			b := eventlog.Batch{Drafts: []eventlog.Draft{d}}
			if rapid.Bool().Draw(t, "keyed") {
				b.Key = fmt.Sprint("key ", n)
			}
			_, err := from.Restore(ctx, "a", b)
			require.NoError(t, err)
		}
		log, err := from.Log().Session("a")
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, session.Export(ctx, &text, log, session.ExportEntries, 1, 0))
		n, err := ingest.Entries(ctx, to, strings.NewReader(text.String()), ingest.RawConfig{Session: "a"})
		require.NoError(t, err)
		require.Equal(t, log.Head(), n.Head)
		again, err := ingest.Entries(ctx, to, &text, ingest.RawConfig{Session: "a"})
		require.NoError(t, err)
		require.Zero(t, again.Entries)
	})
}

func TestEntriesRefuses(t *testing.T) {
	ctx := t.Context()
	from := store(t)
	_, err := from.Restore(ctx, "a", eventlog.Batch{Drafts: []eventlog.Draft{
		{Kind: eventlog.KindDefine, Data: session.AppendWord(nil, "w", signal.Text("one"))},
		{Kind: eventlog.KindDefine, At: 5, Data: session.AppendWord(nil, "w", signal.Text("two"))},
	}})
	require.NoError(t, err)
	log, err := from.Log().Session("a")
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, session.Export(ctx, &b, log, session.ExportEntries, 1, 0))
	good := b.String()
	for name, text := range map[string]string{
		"another name":    good,
		"a changed word":  strings.Replace(good, "two", "six", 1),
		"a changed time":  strings.Replace(good, `"at":0.000005`, `"at":0.000006`, 1),
		"the first gone":  good[strings.Index(good, "\n")+1:],
		"not an entry":    good + "{}\n",
		"no JSON":         "x",
		"a time too far":  strings.Replace(good, `"at":0.000005`, `"at":1e300`, 1),
		"data not in hex": `{"seq":1,"at":0,"kind":"beat","hash":"","data":"xx"}`,
		"no content":      `{"seq":1,"at":0,"kind":"beat","hash":""}`,
		"half a signal":   `{"seq":1,"at":0,"kind":"signal","hash":"","type":"a"}`,
		"an unknown kind": `{"seq":1,"at":0,"kind":"song","hash":""}`,
	} {
		t.Run(name, func(t *testing.T) {
			cfg := ingest.RawConfig{Session: "a", File: "f"}
			if name == "another name" {
				cfg.Session = "b"
			}
			n, err := ingest.Entries(t.Context(), store(t), strings.NewReader(text), cfg)
			require.Error(t, err)
			assert.LessOrEqual(t, n.Entries, 2)
		})
	}
}
