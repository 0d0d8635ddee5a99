package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"
)

// lines are the messages of a client on a stream, one a line, and the answers to them. A line
// that is not a message is answered with an error of the protocol and goes no further, so it
// does not end the session. The end of the input is passed on only when every request was
// answered: a client that writes its requests and closes its end loses no answer.
type lines struct {
	ctx context.Context
	in  *bufio.Reader
	out io.WriteCloser
	cls io.Closer

	patience time.Duration // of settle

	left []byte // of the line that is being passed on

	mu      sync.Mutex      // guards out and open
	open    map[string]bool // the ids of requests without an answer
	settled chan struct{}   // has an element when open became empty
}

func newLines(ctx context.Context, in io.ReadCloser, out io.WriteCloser, patience time.Duration) *lines {
	return &lines{patience: patience, ctx: ctx, in: bufio.NewReaderSize(in, 64<<10), out: out, cls: in, open: map[string]bool{}, settled: make(chan struct{}, 1)}
}

// Read passes on the lines that are messages.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.left) == 0 {
		line, err := l.line()
		if err != nil {
			l.settle()
			return 0, err
		}
		l.left = l.checked(line)
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

// line reads a line. A line that is too long is replaced by an empty one, which is not a message.
func (l *lines) line() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := l.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > MaxMessage; long {
			line = line[:0]
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(line) == 0 && !long:
			return nil, err
		case long:
			return []byte("too long"), nil
		}
		return line, nil
	}
}

// checked returns a line that is a message, with its end. Otherwise it answers the line and
// returns nothing. This server asks nothing, so that an answer of the client is dropped.
func (l *lines) checked(line []byte) []byte {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	if line[0] != '{' || !json.Valid(line) || depth(line) > maxDepth {
		l.refuse(-32700, "not a message: send one JSON object a line, without batches")
		return nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(line, &m); err != nil {
		l.refuse(-32700, "not a message: send one JSON object a line, without batches")
		return nil
	}
	var version, method string
	var id any
	errs := errors.Join(json.Unmarshal(orNull(m["jsonrpc"]), &version), json.Unmarshal(orNull(m["method"]), &method), json.Unmarshal(orNull(m["id"]), &id))
	switch n := id.(type) {
	case nil, string:
	case float64:
		if n != math.Trunc(n) || math.Abs(n) > 1<<53 {
			errs = errBadID
		}
	default:
		errs = errBadID
	}
	if m["method"] == nil && (m["result"] != nil || m["error"] != nil) {
		return nil
	}
	if errs != nil || version != "2.0" || method == "" {
		l.refuse(-32600, "not a request: jsonrpc must be 2.0, method a text, and id a text or a whole number")
		return nil
	}
	if id != nil && !l.begin(m["id"]) {
		l.refuse(-32600, "the id is that of a request without an answer yet; count up")
		return nil
	}
	if method == "notifications/cancelled" {
		var params struct {
			ID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m["params"], &params) == nil {
			l.mu.Lock()
			l.answered(params.ID)
			l.mu.Unlock()
		}
	}
	return append(bytes.Clone(line), '\n')
}

var errBadID = errors.New("neither a text nor a whole number")

// begin notes a request. It returns false if one with its id has no answer yet.
func (l *lines) begin(id json.RawMessage) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[string(id)] {
		return false
	}
	l.open[string(id)] = true
	return true
}

// answered notes that a request has its answer, or needs none. The caller holds mu.
func (l *lines) answered(id json.RawMessage) {
	if delete(l.open, string(id)); len(l.open) > 0 {
		return
	}
	select {
	case l.settled <- struct{}{}:
	default:
	}
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// maxDepth bounds the nesting of a message.
const maxDepth = 200

// depth returns the nesting of valid JSON.
func depth(text []byte) int {
	most, now := 0, 0
	quoted, escaped := false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}

// refuse answers a line that goes no further.
func (l *lines) refuse(code int, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A client that is gone is noticed by the next answer.
	_, _ = fmt.Fprintf(l.out, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, message)
}

// Write takes the answers: this server sends nothing else, each with a line end.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var id json.RawMessage
	if rest, ok := bytes.CutPrefix(p, []byte(`{"jsonrpc":"2.0","id":`)); ok {
		_ = json.NewDecoder(bytes.NewReader(rest)).Decode(&id) // an answer has an id
	}
	n, err := l.out.Write(p)
	l.answered(id)
	return n, err
}

// settle waits until every request was answered, or the context ends.
func (l *lines) settle() {
	ctx, cancel := context.WithTimeout(l.ctx, l.patience)
	defer cancel()
	for {
		l.mu.Lock()
		open := len(l.open)
		l.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-l.settled:
		case <-ctx.Done():
			return
		}
	}
}

// input and output are the two ends that the protocol closes.
type (
	input  struct{ *lines }
	output struct{ *lines }
)

func (i input) Close() error { return i.cls.Close() }

func (o output) Close() error { return o.out.Close() }
