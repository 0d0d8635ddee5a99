package job_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/servertest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/job"
	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	engine, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		panic(err)
	}
	defer func() { _ = engine.Close() }()
	jobs := job.New(engine, job.Config{Running: 1})
	for _, e := range jobs.Routes()[:2] { // package server mounts them
		fmt.Println(e.Pattern)
	}
	// Output:
	// POST /api/v1/sessions/{session}/jobs
	// GET /api/v1/sessions/{session}/jobs
}

// mounted returns jobs and their routes without a server, for a caller of a name.
func mounted(t *testing.T, engine *sajou.Engine, cfg job.Config) (*job.Jobs, func(name string) http.Handler) {
	t.Helper()
	jobs := job.New(engine, cfg)
	return jobs, func(name string) http.Handler {
		mux := http.NewServeMux()
		for _, e := range jobs.Routes() {
			mux.HandleFunc(e.Pattern, func(w http.ResponseWriter, r *http.Request) {
				caller := &access.Caller{Name: name, Grants: []access.Grant{{Scope: access.ScopeRead, Sessions: []string{"*"}}}}
				if err := e.Handler(w, r.WithContext(access.With(r.Context(), caller))); err != nil {
					_ = problem.Write(w, r, err)
				}
			})
		}
		return mux
	}
}

const path = "/api/v1/sessions/night/jobs"

// create starts a job and returns its path.
func create(t *testing.T, h http.Handler, body string) string {
	t.Helper()
	w := servertest.Ask(h, http.MethodPost, path, body)
	require.Equal(t, http.StatusAccepted, w.Code, w.Body)
	return w.Header().Get("Location")
}

// ended waits for the end of all jobs, and returns one.
func ended(t *testing.T, jobs *job.Jobs, h http.Handler, location string) (view job.JobView, result string) {
	t.Helper()
	jobs.Wait()
	w := servertest.Ask(h, http.MethodGet, location, "")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	var v struct {
		job.JobView
		Problem json.RawMessage `json:"problem"`
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &v))
	return v.JobView, servertest.Ask(h, http.MethodGet, location+"/result", "").Body.String()
}

func TestResults(t *testing.T) {
	engine := servertest.Store(t, "../..", sajou.Config{})
	jobs, as := mounted(t, engine, job.Config{})
	h := as("ann")
	picture := base64.StdEncoding.EncodeToString(drawn(t, engine, 36))
	for _, c := range []struct{ body, begins string }{
		{`{"kind":"verify"}`, `{"session":"night","verified":true,`},
		{`{"kind":"verify","head":"1:` + strings.Repeat("0", 64) + `"}`, `{"session":"night","verified":false,`},
		{`{"kind":"scan","where":"entry.type == \"tool_result\" && !entry.payload.success"}`, `{"seq":36,`},
		{`{"kind":"scan","where":"entry.type == \"tool_call\"","count":true}`, `{"count":8}`},
		{`{"kind":"scan","where":"entry.kind","mode":"changes"}`, `{"seq":1,"at":0,"value":"session"}`},
		{`{"kind":"scan","where":"state.stage.entities.smoke.visible","moments":true}`, `{"from":{"moment":"36",`},
		{`{"kind":"scan","where":"seq > 40","mode":"last"}`, `{"seq":54,`},
		{`{"kind":"scan","image":{"png":"` + picture + `","same":true},"mode":"first"}`, `{"seq":36,`},
		{`{"kind":"bisect","where":"state.stage.entities.smoke.visible"}`, `{"find":"any","good":35,"bad":36,"first":36,`},
		{`{"kind":"bisect","image":{"png":"` + picture + `","same":true},"good":"30","bad":"36"}`, `{"find":"any",`},
		{`{"kind":"minimize","at":"38","path":"stage.entities.smith.strength"}`, `{"moment":{"seq":38,"offset":0},"signals":[32],`},
		{`{"kind":"minimize","at":"38","where":"state.stage.entities.smoke.visible"}`, `{"moment":{"seq":38,"offset":0},"signals":[36],`},
		{`{"kind":"minimize","at":"36","image":{"png":"` + picture + `","same":true}}`, `{"moment":{"seq":36,"offset":0},"signals":[`},
		{`{"kind":"policy-diff","policy":{"policy":"everything"}}`, `{"summary":{"same":true,`},
		{`{"kind":"scan","where":"entry.type == \"error\"","definitions":{"on":"error","steps":[]}}`, `{"seq":`},
	} {
		v, result := ended(t, jobs, h, create(t, h, c.body))
		assert.Equal(t, job.StatusDone, v.Status, c.body)
		assert.True(t, strings.HasPrefix(result, c.begins), "%s: %.300s", c.body, result)
		if strings.Contains(c.body, "minimize") {
			var least struct{ Replays uint64 }
			require.NoError(t, json.Unmarshal([]byte(result), &least))
			assert.Positive(t, v.Done)
			assert.Equal(t, []uint64{least.Replays, least.Replays}, []uint64{v.Done, v.Total}, c.body)
		}
	}
	require.NoError(t, jobs.Close(t.Context()))
}

// A late signal that a search finds is marked, as entries mark it.
func TestScanMarksLateSignals(t *testing.T) {
	engine := servertest.Store(t, "../..", sajou.Config{})
	ses, err := engine.Session(t.Context(), "night")
	require.NoError(t, err)
	head := ses.Head().Seq
	_, err = ses.Signal(t.Context(), &signal.Signal{ID: "late", Type: "note", Timestamp: signal.Int(1), Source: "t", Payload: signal.NewObject(0).Value()})
	require.NoError(t, err)
	jobs, as := mounted(t, engine, job.Config{})
	h := as("ann")
	_, result := ended(t, jobs, h, create(t, h, fmt.Sprintf(`{"kind":"scan","where":"seq > %d"}`, head-1)))
	assert.Equal(t, 1, strings.Count(result, `"late":true`), result)
	require.NoError(t, jobs.Close(t.Context()))
}

// The differences of a policy are bounded as every result, and end with their number.
func TestPolicyDiff(t *testing.T) {
	const path, policy = "/api/v1/sessions/conversation/jobs", `"policy":{"policy":"self"}`
	engine := servertest.Store(t, "../..", sajou.Config{})
	ask := func(cfg job.Config, body string) (job.JobView, []string) {
		jobs, as := mounted(t, engine, cfg)
		h := as("ann")
		w := servertest.Ask(h, http.MethodPost, path, body)
		require.Equal(t, http.StatusAccepted, w.Code, w.Body)
		v, result := ended(t, jobs, h, w.Header().Get("Location"))
		require.NoError(t, jobs.Close(t.Context()))
		return v, strings.Split(strings.TrimSuffix(result, "\n"), "\n")
	}
	v, all := ask(job.Config{}, `{"kind":"policy-diff",`+policy+`}`)
	require.Equal(t, job.StatusDone, v.Status)
	require.Greater(t, len(all), 3)
	assert.Len(t, all, v.Found)
	summary := all[len(all)-1]
	assert.True(t, strings.HasPrefix(summary, `{"summary":{"same":false,`), summary)
	_, some := ask(job.Config{MaxResult: len(all[0]) + 1}, `{"kind":"policy-diff",`+policy+`}`)
	assert.Equal(t, []string{all[0], summary}, some)
	_, counted := ask(job.Config{}, `{"kind":"policy-diff","count":true,`+policy+`}`)
	assert.Equal(t, []string{summary}, counted)
	v, _ = ask(job.Config{}, `{"kind":"policy-diff","agents":["nobody"],`+policy+`}`)
	assert.Equal(t, job.StatusFailed, v.Status)
	v, _ = ask(job.Config{}, `{"kind":"policy-diff","policy":{"policy":"none such"}}`)
	assert.Equal(t, job.StatusFailed, v.Status)
}

func TestFailures(t *testing.T) {
	engine := servertest.Store(t, "../..", sajou.Config{})
	jobs, as := mounted(t, engine, job.Config{})
	h := as("ann")
	v, _ := ended(t, jobs, h, create(t, h, `{"kind":"bisect","where":"true"}`))
	assert.Equal(t, job.StatusFailed, v.Status) // the good end is bad
	v, _ = ended(t, jobs, h, create(t, h, `{"kind":"minimize","where":"false"}`))
	assert.Equal(t, job.StatusFailed, v.Status)
	v, _ = ended(t, jobs, h, create(t, h, `{"kind":"scan","where":"1 / (seq - 36) == 5"}`))
	assert.Equal(t, job.StatusFailed, v.Status)
	for _, body := range []string{
		``, `[]`, `{}`, `{"kind":"scan"}`, `{"kind":"scan","where":"true","image":{"png":""}}`, `{"kind":"scan","where":"true","mode":"some"}`,
		`{"kind":"scan","where":"true","every_ms":-1}`, `{"kind":"scan","where":"true","mode":"first","count":true}`, `{"kind":"bisect","where":"true","find":"some"}`,
		`{"kind":"bisect","where":"true","probes":-1}`, `{"kind":"verify","head":"x"}`, `{"kind":"verify","head":"0:` + strings.Repeat("0", 64) + `"}`,
		`{"kind":"bisect","where":"true","command":["true"]}`, `{"kind":"scan","image":{"path":"/etc/passwd"}}`, `{"kind":"verify"} {}`,
		`{"kind":"minimize","where":"true","image":{"png":""}}`, `{"kind":"policy-diff"}`, `{"kind":"policy-diff","policy":{},"where":"true"}`,
	} {
		w := servertest.Ask(h, http.MethodPost, path, body)
		assert.Equal(t, http.StatusBadRequest, w.Code, "%s: %s", body, w.Body)
	}
	for _, body := range []string{
		`{"kind":"minimize","where":"prev.stage.entities.smoke.visible"}`,
		`{"kind":"scan","image":{"png":"bm8gcGljdHVyZQ=="}}`, `{"kind":"scan","where":"nothing.here"}`, `{"kind":"scan","where":"true","definitions":{"on":3}}`,
	} {
		w := servertest.Ask(h, http.MethodPost, path, body)
		assert.Equal(t, http.StatusUnprocessableEntity, w.Code, "%s: %s", body, w.Body)
	}
	require.NoError(t, jobs.Close(t.Context()))
}

// A job belongs to its caller, results are bounded and forgotten, and so is the number of
// jobs.
func TestBounds(t *testing.T) {
	engine := servertest.Store(t, "../..", sajou.Config{})
	now := time.Unix(1000, 0)
	jobs, as := mounted(t, engine, job.Config{Kept: 2, MaxResult: 900, KeepFor: time.Minute, Now: func() time.Time { return now }})
	ann, bob := as("ann"), as("bob")
	first := create(t, ann, `{"kind":"scan","where":"true"}`)
	v, result := ended(t, jobs, ann, first)
	assert.Equal(t, 54, v.Found)
	assert.Less(t, v.Kept, 10)
	assert.Equal(t, v.Kept, strings.Count(result, "\n"))
	assert.LessOrEqual(t, len(result), 900+v.Kept)

	w := servertest.Ask(bob, http.MethodDelete, first, "")
	assert.Equal(t, http.StatusForbidden, w.Code)
	assert.Equal(t, http.StatusNotFound, servertest.Ask(ann, http.MethodGet, strings.Replace(first, "night", "dinner", 1), "").Code)
	create(t, bob, `{"kind":"verify"}`)
	w = servertest.Ask(bob, http.MethodPost, path, `{"kind":"verify"}`)
	assert.Equal(t, http.StatusTooManyRequests, w.Code)
	assert.NotEmpty(t, w.Header().Get("Retry-After"))
	assert.Equal(t, http.StatusNoContent, servertest.Ask(ann, http.MethodDelete, first, "").Code)
	assert.Equal(t, http.StatusNotFound, servertest.Ask(ann, http.MethodGet, first, "").Code)
	jobs.Wait()
	now = now.Add(time.Minute)
	assert.Equal(t, "[]\n", servertest.Ask(ann, http.MethodGet, path, "").Body.String())
	require.NoError(t, jobs.Close(t.Context()))
	assert.Equal(t, http.StatusServiceUnavailable, servertest.Ask(ann, http.MethodPost, path, `{"kind":"verify"}`).Code)
}

// A job that takes too long fails.
func TestTooLong(t *testing.T) {
	engine := servertest.Store(t, "../..", sajou.Config{})
	jobs, as := mounted(t, engine, job.Config{MaxTime: time.Nanosecond})
	h := as("ann")
	v, _ := ended(t, jobs, h, create(t, h, `{"kind":"scan","where":"state.performances.size() > 100"}`))
	assert.Equal(t, job.StatusFailed, v.Status)
	require.NoError(t, jobs.Close(t.Context()))
}

// drawn returns the picture of an entry of the session night as PNG.
func drawn(t *testing.T, engine *sajou.Engine, seq eventlog.Seq) []byte {
	t.Helper()
	travel, err := engine.Replay("night")
	require.NoError(t, err)
	reel := film.Open(travel, travel)
	shot, err := reel.Shot(t.Context(), replay.Moment{Seq: seq})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, picture.EncodePNG(&out, reel.Draw(shot, film.Style{Width: 64}).Image(0)))
	return out.Bytes()
}

// A job counts among those of its caller until it ends.
func TestJobsOfACaller(t *testing.T) {
	engine := servertest.Store(t, "../..", sajou.Config{})
	jobs, as := mounted(t, engine, job.Config{})
	limits := limit.New(limit.Config{Jobs: 2})
	ann := limit.Requester{Name: "ann"}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		as("ann").ServeHTTP(w, r.WithContext(limit.With(r.Context(), limits, ann)))
	})
	held, err := limits.Job(ann)
	require.NoError(t, err)
	another, err := limits.Job(ann)
	require.NoError(t, err)
	w := servertest.Ask(h, http.MethodPost, path, `{"kind":"verify"}`)
	assert.Equal(t, http.StatusTooManyRequests, w.Code)
	assert.Contains(t, w.Body.String(), "unfinished jobs of ann")
	another()
	create(t, h, `{"kind":"verify"}`)
	jobs.Wait()
	assert.Equal(t, 1, limits.InUse().Jobs, "the job that has ended is not counted")
	create(t, h, `{"kind":"verify"}`)
	held()
	require.NoError(t, jobs.Close(t.Context()))
	assert.Equal(t, http.StatusServiceUnavailable, servertest.Ask(h, http.MethodPost, path, `{"kind":"verify"}`).Code)
	assert.Zero(t, limits.InUse().Jobs, "a job that was refused is not counted")
}
