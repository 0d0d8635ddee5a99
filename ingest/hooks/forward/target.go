package forward

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// UndeliverableError reports that the server will never take an item.
type UndeliverableError struct {
	Status  int
	Session string
	Detail  string // of the server
}

func (e *UndeliverableError) Error() string {
	return fmt.Sprintf("the server refused an object for session %q with status %d: %s", e.Session, e.Status, e.Detail)
}

// BusyError reports that the server takes nothing now.
type BusyError struct {
	Status     int
	RetryAfter time.Duration // zero if the server named no time
	Detail     string
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("the server answered with status %d: %s", e.Status, e.Detail)
}

// ErrNotServer reports an answer of something else than the server.
var ErrNotServer = errors.New("the answer is not one of a Sajou server; name its address with --server")

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 10

// target is the server to which items are delivered.
type target struct {
	network, address string
	host             string // for the header
	base             string // of paths
	token            string
	dial             DialFunc
}

// errAddress reports an address that no program can use.
var errAddress = errors.New("is not the address of a server; use http://HOST:PORT, https://HOST or unix:PATH")

// CheckServer refuses what cannot be the address of a server.
func CheckServer(address string) error {
	dial := func(context.Context, string, string) (io.ReadWriteCloser, error) { return nil, errAddress }
	_, err := Config{Server: address, Dial: dial, DialTLS: dial}.target()
	return err
}

// target reads the address of the server.
func (c Config) target() (*target, error) {
	if path, ok := strings.CutPrefix(c.Server, "unix:"); ok {
		if strings.Trim(path, "/") == "" {
			return nil, fmt.Errorf("%q %w", c.Server, errAddress)
		}
		return &target{network: "unix", address: strings.TrimPrefix(path, "//"), host: "localhost", token: c.Token, dial: c.Dial}, nil
	}
	u, err := url.Parse(c.Server)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q %w", c.Server, errAddress)
	}
	t := &target{network: "tcp", host: u.Host, base: strings.TrimSuffix(u.EscapedPath(), "/"), token: c.Token, dial: c.Dial}
	port := "80"
	switch u.Scheme {
	case "http":
		if c.Token != "" && !loopback(u.Hostname()) {
			return nil, fmt.Errorf("refusing to send the token to %s without encryption; use https", u.Host)
		}
	case "https":
		if t.dial = c.DialTLS; t.dial == nil {
			return nil, errors.New("this program does not speak https; use sajou-replay hook")
		}
		port = "443"
	default:
		return nil, fmt.Errorf("%q %w", c.Server, errAddress)
	}
	if p := u.Port(); p != "" {
		port = p
	}
	if t.address = u.Hostname() + ":" + port; strings.Contains(u.Hostname(), ":") {
		t.address = "[" + u.Hostname() + "]:" + port
	}
	if strings.ContainsAny(t.host+t.base+t.token, "\r\n") {
		return nil, errors.New("the address or the token has a line break")
	}
	return t, nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// post delivers an item. It speaks HTTP/1.0: one request, whose answer ends with the
// connection, so that neither package net/http nor what it needs has to be loaded. No
// redirect is followed. What the schema refuses is recorded and flagged: what is refused would
// be lost.
func (t *target) post(ctx context.Context, item HookItem) error {
	conn, err := t.dial(ctx, t.network, t.address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	head := fmt.Appendf(nil, "POST %s/api/v1/sessions/%s/signals?lenient=true HTTP/1.0\r\nHost: %s\r\nUser-Agent: sajou-hook\r\nContent-Type: application/json\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n",
		t.base, url.PathEscape(item.Session), t.host, item.Key, len(item.Signals))
	if t.token != "" {
		head = fmt.Appendf(head, "Authorization: Bearer %s\r\n", t.token)
	}
	head = append(head, "\r\n"...)
	// A server may refuse before it has read everything; then its answer counts.
	_, sent := conn.Write(append(head, item.Signals...))
	a, err := readAnswer(conn)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the server at %s did not answer in time: %w", t.host, ctx.Err())
	case err != nil:
		return errors.Join(sent, err)
	}
	return a.judge(item.Session)
}

// answer is what the server answered.
type answer struct {
	status     int
	retryAfter time.Duration
	body       []byte
}

// readAnswer reads the status, one header and the body of an answer.
func readAnswer(r io.Reader) (answer, error) {
	lines := bufio.NewReader(io.LimitReader(r, maxAnswer))
	status, err := lines.ReadSlice('\n')
	if err != nil {
		return answer{}, fmt.Errorf("the server gave no answer: %w", errors.Join(ErrNotServer, err))
	}
	version, rest, _ := strings.Cut(strings.TrimSpace(string(status)), " ")
	code, _, _ := strings.Cut(rest, " ")
	a, length := answer{}, maxAnswer
	if a.status, err = strconv.Atoi(code); err != nil || !strings.HasPrefix(version, "HTTP/1.") || a.status < 100 || a.status > 999 {
		return answer{}, ErrNotServer
	}
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return answer{}, errors.Join(ErrNotServer, err)
		}
		text := strings.TrimSpace(string(line))
		if text == "" {
			break
		}
		name, value, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(strings.TrimSpace(value))
		switch {
		case err != nil || n < 0:
		case strings.EqualFold(name, "Retry-After"):
			a.retryAfter = time.Duration(min(n, 3600)) * time.Second
		case strings.EqualFold(name, "Content-Length"):
			length = min(length, n) // no need to wait for the end of the connection
		}
	}
	a.body, err = io.ReadAll(io.LimitReader(lines, int64(length)))
	if err != nil && a.status == 200 {
		return answer{}, err // it may have lost the part that proves the delivery
	}
	return a, nil
}

// judge returns nil if the item is durable.
func (a answer) judge(session string) error {
	switch a.status {
	case 200, 201:
		recorded, err := signal.ParseValue(a.body)
		if err != nil || recorded.Member("head") == nil {
			return ErrNotServer
		}
		return nil
	case 400, 410, 413, 415, 422:
		return &UndeliverableError{a.status, session, a.detail()}
	}
	return &BusyError{a.status, a.retryAfter, a.detail()}
}

// detail is the reason that a problem document gives, or the beginning of another answer.
func (a answer) detail() string {
	if doc, err := signal.ParseValue(a.body); err == nil && doc.TextOf("detail") != "" {
		return doc.TextOf("detail")
	}
	const some = 200
	return strings.ToValidUTF8(string(bytes.TrimSpace(a.body[:min(len(a.body), some)])), "")
}
