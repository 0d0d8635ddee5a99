// Package problem turns errors into answers of the server: problem documents as
// described by RFC 9457. It is the only place that gives an error of the engine its
// HTTP status and code, so that the same fault has the same answer at every route.
//
// docs/glossary.md has the nouns of all packages.
package problem

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// MediaType is the media type of a problem document.
const MediaType = "application/problem+json"

// ErrorCode names one kind of problem. Codes never change their meaning; programs compare
// them.
type ErrorCode string

// The codes, with the status of each in [Classes].
const (
	BadRequest       ErrorCode = "bad-request"
	Unauthenticated  ErrorCode = "unauthenticated"
	Forbidden        ErrorCode = "forbidden"
	OriginRefused    ErrorCode = "origin-refused"
	NotFound         ErrorCode = "not-found"
	NoSession        ErrorCode = "no-session"
	NoMoment         ErrorCode = "no-moment"
	NoAgent          ErrorCode = "no-agent"
	Deleted          ErrorCode = "deleted"
	MethodNotAllowed ErrorCode = "method-not-allowed"
	NotAcceptable    ErrorCode = "not-acceptable"
	Timeout          ErrorCode = "timeout"
	Conflict         ErrorCode = "conflict"
	InUse            ErrorCode = "in-use"
	TooLarge         ErrorCode = "too-large"
	MediaUnsupported ErrorCode = "unsupported-media-type"
	RangeInvalid     ErrorCode = "range-not-satisfiable"
	Invalid          ErrorCode = "invalid"
	OverBudget       ErrorCode = "over-budget"
	HeadersTooLarge  ErrorCode = "headers-too-large"
	TooMany          ErrorCode = "too-many"
	Internal         ErrorCode = "internal"
	Damaged          ErrorCode = "damaged"
	Stopping         ErrorCode = "stopping"
	ReadOnly         ErrorCode = "read-only"
	DiskFull         ErrorCode = "disk-full"
)

// ErrorClass describes a code.
type ErrorClass struct {
	Code   ErrorCode
	Status int
	Title  string
}

// Classes returns all classes of problems, in the order of their status.
func Classes() []ErrorClass { return append([]ErrorClass(nil), classes...) }

var classes = []ErrorClass{
	{BadRequest, http.StatusBadRequest, "The request cannot be read"},
	{Unauthenticated, http.StatusUnauthorized, "The caller is unknown"},
	{Forbidden, http.StatusForbidden, "The caller may not do this"},
	{OriginRefused, http.StatusForbidden, "The host or the origin of the request is not allowed"},
	{NotFound, http.StatusNotFound, "The request names something that does not exist"},
	{NoSession, http.StatusNotFound, "There is no such session"},
	{NoMoment, http.StatusNotFound, "The session has no such moment"},
	{NoAgent, http.StatusNotFound, "The session has no such agent"},
	{MethodNotAllowed, http.StatusMethodNotAllowed, "The path does not take this method"},
	{NotAcceptable, http.StatusNotAcceptable, "The answer has none of the accepted media types"},
	{Timeout, http.StatusRequestTimeout, "The request took too long to arrive"},
	{Conflict, http.StatusConflict, "The session has another head than the expected one"},
	{InUse, http.StatusConflict, "Something else is using this"},
	{Deleted, http.StatusGone, "The session was deleted"},
	{TooLarge, http.StatusRequestEntityTooLarge, "The body is too large"},
	{MediaUnsupported, http.StatusUnsupportedMediaType, "The body has a media type or a coding that is not supported"},
	{RangeInvalid, http.StatusRequestedRangeNotSatisfiable, "The range is outside of the session"},
	{Invalid, http.StatusUnprocessableEntity, "The content is refused"},
	{OverBudget, http.StatusUnprocessableEntity, "The computation exceeds its budget"},
	{TooMany, http.StatusTooManyRequests, "There are too many requests"},
	{HeadersTooLarge, http.StatusRequestHeaderFieldsTooLarge, "The header is too large"},
	{Internal, http.StatusInternalServerError, "The server failed"},
	{Damaged, http.StatusInternalServerError, "The store is damaged"},
	{Stopping, http.StatusServiceUnavailable, "The server is stopping"},
	{ReadOnly, http.StatusServiceUnavailable, "The store is read-only"},
	{DiskFull, http.StatusInsufficientStorage, "The disk is full"},
}

// ClassOf returns the class of a code. It panics on a code that [Classes] does not have.
func ClassOf(c ErrorCode) ErrorClass {
	for _, k := range classes {
		if k.Code == c {
			return k
		}
	}
	panic("problem: unknown code " + string(c))
}

// Details is the answer to a request that failed. It is an error: handlers return it.
type Details struct {
	Code   ErrorCode
	Detail string // the fact, the place and the remedy of this occurrence

	// Pointer is the JSON Pointer of the faulty value in the body; nil if the body as
	// such is not at fault. "" is the whole body.
	Pointer *string

	// Head is where the session stands, for [Conflict].
	Head *eventlog.Head

	// RetryAfter is when to try again, in seconds, for [TooMany], [Stopping] and
	// [ReadOnly]. Zero means that no time is known.
	RetryAfter int

	// Extra are further members of the document, in their order. RFC 9457 calls them
	// extension members.
	Extra []signal.ObjectMember

	// Err is the cause, for the log of the server. It is never sent.
	Err error
}

// New returns a problem.
func New(c ErrorCode, detail string) *Details { return &Details{Code: c, Detail: detail} }

func (p *Details) Error() string { return p.Detail }
func (p *Details) Unwrap() error { return p.Err }

// Status returns the HTTP status of the problem.
func (p *Details) Status() int { return ClassOf(p.Code).Status }

// At sets the pointer of the problem and returns it.
func (p *Details) At(pointer string) *Details {
	p.Pointer = &pointer
	return p
}

// With sets a further member of the document and returns the problem.
func (p *Details) With(name string, v signal.Value) *Details {
	extra := (*signal.Object)(&p.Extra)
	extra.Set(name, v)
	return p
}

// TypePrefix is followed by the code in the member "type" of a document.
const TypePrefix = "urn:sajou:problem:"

// headJSON is a head in a document.
type headJSON struct {
	Seq  eventlog.Seq `json:"seq"`
	Hash string       `json:"hash"`
}

// MarshalJSON returns the problem document.
func (p *Details) MarshalJSON() ([]byte, error) {
	class := ClassOf(p.Code)
	doc := struct {
		Type    string    `json:"type"`
		Title   string    `json:"title"`
		Status  int       `json:"status"`
		Code    ErrorCode `json:"code"`
		Detail  string    `json:"detail,omitempty"`
		Pointer *string   `json:"pointer,omitempty"`
		Head    *headJSON `json:"head,omitempty"`
	}{TypePrefix + string(p.Code), class.Title, class.Status, p.Code, p.Detail, p.Pointer, nil}
	if p.Head != nil {
		doc.Head = &headJSON{p.Head.Seq, p.Head.Hash.String()}
	}
	text, err := json.Marshal(doc)
	if err != nil || len(p.Extra) == 0 {
		return text, err
	}
	more := signal.Object(p.Extra).Value().AppendJSON(nil)
	return append(append(text[:len(text)-1], ','), more[1:]...), nil
}

// ErrorForm is the form of the answers to requests that failed, at a route whose callers do
// not know problem documents.
type ErrorForm func(r *http.Request, p *Details) (status int, mediaType string, body []byte)

// Write answers a request with the problem of an error; see [Of]. It returns the problem.
func Write(w http.ResponseWriter, r *http.Request, err error) *Details {
	return WriteForm(w, r, err, document)
}

// document is the form of a problem document.
func document(_ *http.Request, p *Details) (status int, mediaType string, body []byte) {
	body, err := json.Marshal(p)
	if err != nil { // no member of a problem can fail
		body = []byte(`{"status":500}`)
	}
	return p.Status(), MediaType, append(body, '\n')
}

// WriteForm is [Write] in another form.
func WriteForm(w http.ResponseWriter, r *http.Request, err error, form ErrorForm) *Details {
	p := Of(err)
	status, mediaType, body := form(r, p)
	h := w.Header()
	// The handler may have prepared the answer that it did not give.
	for _, name := range []string{"Etag", "Content-Length", "Content-Encoding", "Last-Modified", "Content-Disposition", "Accept-Ranges"} {
		h.Del(name)
	}
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Code == Unauthenticated {
		h.Set("WWW-Authenticate", `Bearer realm="sajou"`)
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the caller may be gone
	}
	return p
}
