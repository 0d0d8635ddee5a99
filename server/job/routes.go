package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// maxBody bounds the request for a job, in bytes: an image and its mask in base64.
const maxBody = 24 << 20

// Routes returns the routes of the jobs.
func (j *Jobs) Routes() []route.Endpoint {
	const all, one = "/api/v1/sessions/{session}/jobs", "/api/v1/sessions/{session}/jobs/{job}"
	missing := []problem.ErrorCode{problem.NoSession}
	id := route.Parameter{Name: "job", In: "path", Text: "the id of the job"}
	return []route.Endpoint{
		{Pattern: "POST " + all, Scope: access.ScopeRead, MaxBody: maxBody, Handler: j.create, Doc: &route.Doc{
			Summary: "Start a scan, a bisect, a verify, a minimize or a policy-diff",
			Text:    "The header Location has the path of the job.",
			Body:    []route.Content{{Type: route.MediaJSON, Schema: "job-request"}},
			Success: []route.Success{{Status: http.StatusAccepted, Content: route.JSON("job")}},
			Errors:  append([]problem.ErrorCode{problem.BadRequest, problem.NoMoment, problem.Invalid, problem.TooLarge, problem.TooMany}, missing...),
		}},
		{Pattern: "GET " + all, Scope: access.ScopeRead, Handler: j.list, Doc: &route.Doc{
			Summary: "The jobs of a session",
			Success: []route.Success{{Status: http.StatusOK, Content: route.JSON("jobs")}},
			Errors:  missing,
		}},
		{Pattern: "GET " + one, Scope: access.ScopeRead, Handler: j.status, Doc: &route.Doc{
			Summary: "How far a job is",
			Params:  []route.Parameter{id},
			Success: []route.Success{{Status: http.StatusOK, Content: route.JSON("job")}},
			Errors:  []problem.ErrorCode{problem.NotFound},
		}},
		{Pattern: "GET " + one + "/result", Scope: access.ScopeRead, Handler: j.answer, Doc: &route.Doc{
			Summary: "What a job has found until now, one JSON value a line",
			Text: "A scan has entries, values or intervals, or with count one object with their number; a bisect, a verify and a minimize have one answer, at their end. " +
				"A policy-diff has its differences, and their number last, which is there also if the result has no room for all of them.",
			Params:  []route.Parameter{id},
			Success: []route.Success{{Status: http.StatusOK, Content: []route.Content{{Type: route.MediaNDJSON, Schema: "job-item"}}}},
			Errors:  []problem.ErrorCode{problem.NotFound},
		}},
		{Pattern: "DELETE " + one, Scope: access.ScopeRead, Handler: j.remove, Doc: &route.Doc{
			Summary: "Cancel a job and forget it",
			Text:    "Only the caller that created a job may cancel it, or one with the scope admin.",
			Params:  []route.Parameter{id},
			Success: []route.Success{{Status: http.StatusNoContent}},
			Errors:  []problem.ErrorCode{problem.NotFound},
		}},
	}
}

// exists refuses a session that the store does not have.
func (j *Jobs) exists(name string) error {
	_, err := j.engine.Replay(name)
	if errors.Is(err, eventlog.ErrInvalid) {
		return &problem.Details{Code: problem.NoSession, Detail: fmt.Sprintf("there is no session %.80q", name), Err: err}
	}
	return err
}

// create starts a job.
func (j *Jobs) create(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	name := route.Session(r)
	if err := j.exists(name); err != nil {
		return err
	}
	order, err := parseOrder(body)
	if err != nil {
		return err
	}
	work, err := j.prepare(r.Context(), name, order)
	if err != nil {
		return err
	}
	release, err := limit.Job(r.Context())
	if err != nil {
		return err
	}
	b, err := j.start(order.Kind, name, caller(r), work, release)
	if err != nil {
		release()
		return err
	}
	w.Header().Set("Location", r.URL.EscapedPath()+"/"+b.id)
	return send(w, http.StatusAccepted, b.view())
}

func caller(r *http.Request) string {
	if id := access.From(r.Context()); id != nil {
		return id.Name
	}
	return ""
}

// send answers with a JSON value that is true now.
func send(w http.ResponseWriter, status int, view any) error {
	data, err := answer.Marshal(view)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", route.MediaJSON)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the caller may be gone
	return nil
}

// list answers with the jobs of a session.
func (j *Jobs) list(w http.ResponseWriter, r *http.Request) error {
	if err := j.exists(route.Session(r)); err != nil {
		return err
	}
	return send(w, http.StatusOK, j.of(route.Session(r)))
}

// status answers with a job.
func (j *Jobs) status(w http.ResponseWriter, r *http.Request) error {
	b, err := j.find(route.Session(r), r.PathValue("job"))
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, b.view())
}

// answer answers with the result of a job.
func (j *Jobs) answer(w http.ResponseWriter, r *http.Request) error {
	b, err := j.find(route.Session(r), r.PathValue("job"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", route.MediaNDJSON)
	w.Header().Set("Cache-Control", "no-store")
	for _, item := range b.result() {
		if _, err := w.Write(append(item, '\n')); err != nil {
			return nil //nolint:nilerr // the answer has begun, and the caller is gone
		}
	}
	return nil
}

// remove cancels a job.
func (j *Jobs) remove(w http.ResponseWriter, r *http.Request) error {
	b, err := j.find(route.Session(r), r.PathValue("job"))
	if err != nil {
		return err
	}
	if id := access.From(r.Context()); b.owner != caller(r) && !id.May(access.ScopeAdmin, b.session) {
		return fmt.Errorf("%w: another caller created the job", access.ErrForbidden)
	}
	j.forget(b)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// parseOrder reads the body of a request for a job.
func parseOrder(body []byte) (*order, error) {
	o := &order{}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(o); err != nil {
		return nil, problem.New(problem.BadRequest, fmt.Sprintf("the body is not a request for a job: %v", err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, problem.New(problem.BadRequest, "there is more in the body than one object")
	}
	return o, nil
}
