package record

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// keyHeader names the header of an idempotency key.
const keyHeader = "Idempotency-Key"

// keyPrefix begins the idempotency keys of requests, so that they cannot be those of
// another part of the engine.
const keyPrefix = "http/"

// sessionRoutes are the routes below /api/v1.
func (rv *Receiver) sessionRoutes() []route.Endpoint {
	return []route.Endpoint{
		{
			Pattern: "POST /api/v1/sessions/{session}/signals", Scope: access.ScopeRecord, MaxBody: -1, Plain: true, Handler: rv.postSignals,
			Doc: &route.Doc{
				Summary: "Records signals into a session, durably",
				Text: "The body is one signal, an array of signals, or a stream of them, one a line. One and an array are recorded as a whole or not at all. " +
					"A stream is recorded in batches while it arrives; a problem has the line, and in recorded the receipt of what stands before it.",
				Params: []route.Parameter{
					{Name: "lenient", Type: "boolean", Text: "record signals that the schema refuses too, with the reason"},
					{Name: "expect", Text: "SEQ:HASH, the head that the session must have"},
					{Name: "If-Match", In: "header", Text: "the same as an ETag, \"SEQ:HASH\""},
					{Name: keyHeader, In: "header", Text: "a repeat with the same key records nothing, whatever its body is, and has the receipt of the first"},
				},
				Body:    []route.Content{{Type: route.MediaJSON, Schema: "signals"}, {Type: route.MediaNDJSON, Schema: "signal"}},
				Success: []route.Success{{Status: http.StatusOK, Content: route.JSON("receipt")}},
				Errors: []problem.ErrorCode{
					problem.BadRequest, problem.Conflict, problem.MediaUnsupported, problem.ReadOnly, problem.DiskFull, problem.Stopping,
				},
			},
		},
		{
			Pattern: "GET /api/v1/sessions/{session}/signals/ws", Scope: access.ScopeRecord, Stream: true, Handler: rv.acknowledged,
			Doc: &route.Doc{
				Summary: "Records signals over WebSocket and acknowledges each",
				Text:    "The subprotocol is " + Subprotocol + "; docs/server.md describes it.",
				Params: []route.Parameter{
					{Name: "client", Text: "a name of the sender, which makes its messages idempotent by their numbers"},
					{Name: "lenient", Type: "boolean", Text: "record signals that the schema refuses too, with the reason"},
				},
				Success: []route.Success{{Status: http.StatusSwitchingProtocols}},
				Socket:  &route.SocketMessages{Subprotocol: Subprotocol, Client: "signals-submission", Server: "signals-message"},
				Errors:  []problem.ErrorCode{problem.BadRequest},
			},
		},
	}
}

// intake are the choices of one request that records into a session.
type intake struct {
	ses     *sajou.Session
	lenient bool
	expect  eventlog.Head
	key     string
}

// intakeOf reads the choices of a request that may have some parameters. Others are refused,
// because a misspelled one would drop the guard that its sender relies on.
func (rv *Receiver) intakeOf(r *http.Request, parameters ...string) (in intake, err error) {
	var q url.Values
	if r.URL.RawQuery != "" {
		if q, err = url.ParseQuery(r.URL.RawQuery); err != nil {
			return in, problem.New(problem.BadRequest, fmt.Sprintf("the query cannot be read: %v", err))
		}
		for name := range q {
			if !slices.Contains(parameters, name) {
				return in, problem.New(problem.BadRequest, fmt.Sprintf("there is no parameter %.80q; the request takes %s", name, strings.Join(parameters, ", ")))
			}
		}
	}
	if in.lenient, err = flag(q.Get("lenient")); err != nil {
		return in, problem.New(problem.BadRequest, fmt.Sprintf("lenient: %v", err))
	}
	expect := q.Get("expect")
	if tag := r.Header.Get("If-Match"); tag != "" && expect == "" {
		text, strong := strings.CutPrefix(tag, `"`)
		text, closed := strings.CutSuffix(text, `"`)
		if !strong || !closed {
			return in, problem.New(problem.BadRequest, fmt.Sprintf("If-Match: %s is not a strong ETag of a session; write it as \"SEQ:HASH\"", tag))
		}
		expect = text
	}
	if expect != "" {
		if in.expect, err = eventlog.ParseHead(expect); err != nil {
			return in, problem.New(problem.BadRequest, fmt.Sprintf("the expected head: %v", err))
		}
	}
	if key := r.Header.Get(keyHeader); key != "" {
		in.key = keyPrefix + key
		// The batches of a stream add their number.
		if most := eventlog.MaxKey - len("/18446744073709551615"); len(in.key) > most {
			return in, problem.New(problem.BadRequest, fmt.Sprintf("%s has %d bytes; %d are allowed", keyHeader, len(key), most-len(keyPrefix)))
		}
	}
	if in.ses, err = rv.engine.Session(r.Context(), route.Session(r)); err != nil {
		return in, err
	}
	return in, nil
}

func flag(text string) (bool, error) {
	if text == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", text)
	}
	return b, nil
}

func (in *intake) parse(text []byte) (*signal.Signal, error) {
	if in.lenient {
		return signal.ParseLenient(text)
	}
	return signal.Parse(text)
}

func (in *intake) read(v signal.Value) (*signal.Signal, error) {
	if in.lenient {
		return signal.FromValueLenient(v)
	}
	return signal.FromValue(v)
}

// postSignals records the signals of a body.
func (rv *Receiver) postSignals(w http.ResponseWriter, r *http.Request) error {
	if err := rv.admit(); err != nil {
		return err
	}
	defer rv.done()
	in, err := rv.intakeOf(r, "lenient", "expect")
	if err != nil {
		return err
	}
	lines, err := isLines(r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	var receipt intakeReceipt
	if lines {
		receipt, err = rv.recordLines(w, r, &in)
	} else {
		receipt, err = rv.recordBody(w, r, &in)
	}
	if err != nil {
		return err
	}
	h := w.Header()
	h["Content-Type"] = jsonType
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	b.Reset()
	b.Grow(512) // for all but long names of sessions
	text := b.AvailableBuffer()
	text = strconv.AppendUint(append(text, '"'), uint64(receipt.Head.Seq), 10)
	text = append(hex.AppendEncode(append(text, ':'), receipt.Head.Hash[:]), '"')
	h["Etag"] = []string{string(text)}
	_, _ = w.Write(receipt.AppendJSON(text[:0]))
	return nil
}

// isLines reports whether a body of a media type has one signal a line.
func isLines(contentType string) (bool, error) {
	if contentType == "" || contentType == route.MediaJSON {
		return false, nil
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false, problem.New(problem.MediaUnsupported, fmt.Sprintf("Content-Type %q: %v", contentType, err))
	}
	switch media {
	case route.MediaNDJSON, "application/ndjson", "application/jsonl", "application/x-jsonlines":
		return true, nil
	case route.MediaJSON, "text/json", "text/plain", "application/x-www-form-urlencoded":
		return false, nil // curl -d sends the last one
	}
	if strings.HasSuffix(media, "+json") {
		return false, nil
	}
	return false, problem.New(problem.MediaUnsupported, fmt.Sprintf("Content-Type %q is not supported; send %s or %s", media, route.MediaJSON, route.MediaNDJSON))
}

// recordBody records one signal or an array of them, all or none.
func (rv *Receiver) recordBody(w http.ResponseWriter, r *http.Request, in *intake) (intakeReceipt, error) {
	if r.ContentLength < 0 { // a body with a length ends there
		r.Body = http.MaxBytesReader(w, r.Body, rv.cfg.MaxBody)
	}
	body, release, err := readBody(r, rv.cfg.MaxBody)
	if err != nil {
		return intakeReceipt{}, err
	}
	defer release()
	signals, array, err := in.signals(body)
	if err != nil {
		return intakeReceipt{}, err
	}
	out, err := in.ses.Record(r.Context(), sajou.Addition{Signals: signals, Expect: in.expect, Key: in.key, Lenient: in.lenient})
	if err != nil {
		if e, ok := errors.AsType[*sajou.SignalError](err); ok && array {
			return intakeReceipt{}, atElement(err, e.Index)
		}
		return intakeReceipt{}, err
	}
	receipt := intakeReceipt{Session: in.ses.Name()}
	return receipt, rv.recorded(r.Context(), in.ses, out, signals, &receipt)
}

// signals reads the signals of a body.
func (in *intake) signals(body []byte) (signals []*signal.Signal, array bool, err error) {
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) == 0 || text[0] != '[' {
		sig, err := in.parse(body)
		if err != nil {
			return nil, false, err
		}
		return []*signal.Signal{sig}, false, nil
	}
	list, err := signal.ParseValue(body)
	if err != nil {
		return nil, true, err
	}
	signals = make([]*signal.Signal, 0, list.Len())
	for v := range list.Elements() {
		sig, err := in.read(v)
		if err != nil {
			return nil, true, atElement(err, len(signals))
		}
		signals = append(signals, sig)
	}
	if len(signals) == 0 {
		return nil, true, problem.New(problem.Invalid, "the array has no signal").At("")
	}
	return signals, true, nil
}

// atElement returns the problem of an element of an array.
func atElement(err error, i int) *problem.Details {
	p := *problem.Of(err)
	pointer := "/" + strconv.Itoa(i)
	if p.Pointer != nil {
		pointer += *p.Pointer
	}
	return p.At(pointer).With("index", signal.Int(int64(i)).Value())
}

// intakeReceipt says what a request has recorded.
type intakeReceipt struct {
	Session    string
	First      eventlog.Seq  // the first entry that it wrote; 0 if there is none
	Head       eventlog.Head // the place behind its last entry, or of the session if it wrote none
	Signals    int
	Flagged    int  // signals that break the schema
	OutOfOrder int  // signals whose timestamps are before the session time that was reached
	Repeat     bool // everything had been recorded before, under the same key
}

// recorded counts an addition in a receipt, and tells the streams of it. Of a repeat it
// counts the signals that stand in the log, whatever the sender has sent now.
func (rv *Receiver) recorded(ctx context.Context, ses *sajou.Session, out sajou.Receipt, signals []*signal.Signal, rc *intakeReceipt) error {
	rv.feed.add(ses.Name(), out)
	if out.Repeat {
		signals = make([]*signal.Signal, 0, len(signals))
		for e, err := range ses.Entries(ctx, out.First) {
			if err != nil {
				return err
			}
			if e.Kind == eventlog.KindSignal {
				sig, err := session.SignalOf(&e)
				if err != nil {
					return err
				}
				signals = append(signals, &sig)
			}
			if e.Seq >= out.Head.Seq {
				break
			}
		}
	}
	rc.add(out, signals)
	return nil
}

// add counts one addition.
func (rc *intakeReceipt) add(out sajou.Receipt, signals []*signal.Signal) {
	rc.Repeat = out.Repeat && (rc.Repeat || rc.Signals == 0)
	if rc.First == 0 {
		rc.First = out.First
	}
	rc.Head = out.Head
	rc.Signals += len(signals)
	rc.OutOfOrder += out.OutOfOrder
	for _, sig := range signals {
		if sig.Problem != "" {
			rc.Flagged++
		}
	}
}

// AppendJSON appends the receipt as JSON. It is written member by member: a request of
// one signal has little other work.
func (rc *intakeReceipt) AppendJSON(dst []byte) []byte {
	dst = signal.Text(rc.Session).AppendJSON(append(dst, `{"session":`...))
	dst = strconv.AppendUint(append(dst, `,"first":`...), uint64(rc.First), 10)
	dst = strconv.AppendUint(append(dst, `,"head":{"seq":`...), uint64(rc.Head.Seq), 10)
	dst = hex.AppendEncode(append(dst, `,"hash":"`...), rc.Head.Hash[:])
	dst = strconv.AppendInt(append(dst, `"},"signals":`...), int64(rc.Signals), 10)
	dst = strconv.AppendInt(append(dst, `,"flagged":`...), int64(rc.Flagged), 10)
	dst = strconv.AppendInt(append(dst, `,"out_of_order":`...), int64(rc.OutOfOrder), 10)
	dst = strconv.AppendBool(append(dst, `,"repeat":`...), rc.Repeat)
	return append(dst, '}')
}

// refused reports whether an error of the engine is about the signals, and not about the
// log.
func refused(err error) bool {
	return errors.Is(err, session.ErrTime) || errors.Is(err, eventlog.ErrTooLarge) || errors.Is(err, eventlog.ErrInvalid) || errors.Is(err, signal.ErrSchema)
}
