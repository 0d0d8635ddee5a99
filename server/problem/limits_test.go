package problem_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/server/problem"
)

// TestErrorsOfTheFrame shows the answer to each error of packages access and limit.
func TestErrorsOfTheFrame(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   problem.ErrorCode
		status int
		retry  string
	}{
		{access.ErrUnauthenticated, problem.Unauthenticated, 401, ""},
		{access.ErrForbidden, problem.Forbidden, 403, ""},
		{access.ErrHidden, problem.NoSession, 404, ""},
		{access.ErrTokenFile, problem.Internal, 500, ""},
		{limit.ErrCoding, problem.MediaUnsupported, 415, ""},
		{limit.ErrDamaged, problem.BadRequest, 400, ""},
		{limit.ErrIncomplete, problem.BadRequest, 400, ""},
		{limit.ErrExpands, problem.TooLarge, 413, ""},
		{&limit.OverLimitError{Bound: "requests", RetryAfter: time.Millisecond}, problem.TooMany, 429, "1"},
		{&limit.OverLimitError{Bound: "requests", RetryAfter: 1500 * time.Millisecond}, problem.TooMany, 429, "2"},
	} {
		w := httptest.NewRecorder()
		p := problem.Write(w, httptest.NewRequest(http.MethodGet, "/", nil), fmt.Errorf("at work: %w", c.err))
		assert.Equal(t, c.code, p.Code, c.err)
		assert.Equal(t, c.status, w.Code, c.err)
		assert.Equal(t, c.retry, w.Header().Get("Retry-After"), c.err)
	}
}

// TestOneTextForSessions shows that the answer about a session tells neither its name nor
// why the caller cannot use it, however a room wrapped the error.
func TestOneTextForSessions(t *testing.T) {
	answer := func(err error) string {
		w := httptest.NewRecorder()
		_ = problem.Write(w, httptest.NewRequest(http.MethodGet, "/", nil), err)
		return fmt.Sprint(w.Code, w.Header(), w.Body)
	}
	want := answer(eventlog.ErrNoSession)
	for _, err := range []error{
		fmt.Errorf("%w %q", eventlog.ErrNoSession, "payroll"),
		fmt.Errorf("state of %q: %w", "payroll", eventlog.ErrNoSession),
		access.ErrHidden,
		fmt.Errorf("%w: token:tap has no grant for session %q", access.ErrHidden, "payroll"),
		errors.Join(errors.New("payroll"), access.ErrHidden),
	} {
		assert.Equal(t, want, answer(err))
	}
	assert.NotContains(t, want, "payroll")
}
