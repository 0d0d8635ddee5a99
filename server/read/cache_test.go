package read_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/signal"
)

// seen is one answer to a URL.
type seen struct{ body, tag, cache string }

// The answers of a URL, while the session grows: what is cached for ever never changes,
// equal tags have equal bytes, and a tag is known exactly as long as it is the present
// one.
func TestCaching(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		engine := enginetest.Memory(t, sajou.Config{SnapshotEvery: -1})
		defer func() { require.NoError(t, engine.Close()) }()
		h := open(t, engine)
		ses, err := engine.Session(t.Context(), "s")
		require.NoError(t, err)
		declared, diagnostics := language.Parse("c.json", []byte(enginetest.Dispatch))
		require.Empty(t, diagnostics)
		_, err = ses.Define(t.Context(), declared...)
		require.NoError(t, err)

		var hashes []string
		urls := map[string][]seen{}
		now := int64(1_000_000)
		for range rapid.IntRange(2, 4).Draw(rt, "rounds") {
			now += rapid.Int64Range(0, 900).Draw(rt, "pass")
			sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"%d","type":"task_dispatch","timestamp":%d,"source":"t","correlationId":"c","payload":{"taskId":"1","from":"a","to":"b"}}`, len(hashes), now))
			require.NoError(rt, err)
			head, err := ses.Signal(t.Context(), sig)
			require.NoError(rt, err)
			hashes = append(hashes, head.Hash.String())
			for range rapid.IntRange(1, 3).Draw(rt, "asked") {
				urls[drawURL(rt, int(head.Seq), hashes)] = nil
			}
			for u, before := range urls {
				w := get(h, u)
				now := seen{w.Body.String(), w.Header().Get("ETag"), w.Header().Get("Cache-Control")}
				if w.Code != http.StatusOK {
					assert.Equal(rt, "no-store", now.cache, u)
					assert.Empty(rt, now.tag, u)
				} else {
					again := get(h, u, "If-None-Match", `"other", W/`+now.tag)
					assert.Equal(rt, http.StatusNotModified, again.Code, u)
					assert.Empty(rt, again.Body.String(), u)
					assert.Equal(rt, now.tag, again.Header().Get("ETag"), u)
				}
				for _, old := range before {
					switch {
					case strings.Contains(old.cache, "immutable"):
						assert.Equal(rt, old, now, u)
					case old.tag != "" && old.tag == now.tag:
						assert.Equal(rt, old.body, now.body, u)
					case old.tag != "":
						assert.Equal(rt, w.Code, get(h, u, "If-None-Match", old.tag).Code, u)
					}
				}
				urls[u] = append(before, now)
			}
		}
	})
}

// drawURL draws a request about moments of a session with some entries.
func drawURL(rt *rapid.T, head int, hashes []string) string {
	address := func() string {
		offset := rapid.SampledFrom([]string{"", "", "+0ms", "+350ms", "+5s"}).Draw(rt, "offset")
		n := rapid.IntRange(0, head+1).Draw(rt, "entry")
		hash := rapid.SampledFrom(hashes).Draw(rt, "hash")
		return rapid.SampledFrom([]string{
			fmt.Sprint(n) + offset, "end", "end-1" + offset, "#" + hash + offset, "#" + hash[:4], "t:500ms", "t:2s",
			"corr:c", "corr:c#2" + offset, "perf:p-4-1",
		}).Draw(rt, "address")
	}
	query := func(format string, addresses ...string) string {
		for i := range addresses {
			addresses[i] = url.QueryEscape(addresses[i])
		}
		args := make([]any, len(addresses))
		for i := range addresses {
			args[i] = addresses[i]
		}
		return fmt.Sprintf(format, args...)
	}
	switch rapid.IntRange(0, 8).Draw(rt, "request") {
	case 0:
		return "s/entries/" + url.PathEscape(address())
	case 1:
		return query("s/entries?range=%s&format=ndjson", address()+".."+address())
	case 2:
		return query("s/entries?range=%s&limit=2&type=task_dispatch", address()+"..")
	case 3:
		return query("s/diff?from=%s&to=%s", address(), address())
	case 4:
		return query("s/frame?at=%s", address())
	case 5:
		return query("s/performances?at=%s", address())
	case 6:
		return query("s/digests?at=%s", address())
	case 7:
		return query("s/entries?range=%s&where=seq+%%3E+3", address())
	default:
		return query("s/state?at=%s", address())
	}
}
