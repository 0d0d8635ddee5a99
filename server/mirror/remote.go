package mirror

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/session"
)

// The bounds of what a client takes from a server.
const (
	maxSessions   = 16 << 20 // bytes of the list of sessions
	maxLog        = 8 << 30  // bytes of one log
	maxTold       = 4 << 10  // bytes of an error
	headerTimeout = time.Minute
)

// ErrRemote is wrapped by the errors about answers of a server that are not to be used.
var ErrRemote = errors.New("the answer of the server is not to be used")

// Remote is a server on another machine, or on a socket of this one. Its methods may be
// called from several goroutines.
type Remote struct {
	base   *url.URL
	token  string
	client *http.Client
}

// NewRemote returns the server at a URL of http or https, which has no path but a prefix.
// The token, unless empty, is sent with each request, over http only to this machine. No
// redirect is followed. A nil client means one for the URL; another one, such as that of a
// socket, is used as it is.
func NewRemote(address, token string, client *http.Client) (*Remote, error) {
	base, err := url.Parse(address)
	switch {
	case err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return nil, fmt.Errorf("mirror: %q is not the URL of a server; write it as https://sajou.example:5175", address)
	case base.User != nil:
		return nil, errors.New("mirror: the URL of a server has no user and no password; use a token")
	case base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("mirror: %q has a query or a fragment; omit it", address)
	case token != "" && base.Scheme == "http" && !loopback(base.Hostname()):
		return nil, fmt.Errorf("mirror: a token is not sent to %s without TLS; use https", base.Host)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("mirror: the token has characters that no token has")
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	if client == nil {
		client = &http.Client{
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ResponseHeaderTimeout: headerTimeout},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return &Remote{base, token, client}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// RemoteSession is a session of a server.
type RemoteSession struct {
	Name string
	Head eventlog.Head
}

// StatusError is an answer of a server other than 200.
type StatusError struct {
	Status int
	Detail string // the reason, perhaps empty
}

func (e *StatusError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("the server answers with status %d", e.Status)
	}
	return fmt.Sprintf("the server answers with status %d: %s", e.Status, e.Detail)
}

// Sessions returns the sessions that the caller may read, in the order in which they were
// begun.
func (m *Remote) Sessions(ctx context.Context) ([]RemoteSession, error) {
	body, err := m.get(ctx, logsPath, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // it was only read
	limited := &io.LimitedReader{R: body, N: maxSessions + 1}
	var sessions []RemoteSession
	for d := json.NewDecoder(limited); ; {
		var line sessionLine
		err := d.Decode(&line)
		switch {
		case limited.N == 0:
			return nil, fmt.Errorf("%w: its list of sessions has more than %d bytes", ErrRemote, maxSessions)
		case errors.Is(err, io.EOF):
			return sessions, nil
		case err != nil:
			return nil, fmt.Errorf("%w: its list of sessions cannot be read: %w", ErrRemote, err)
		}
		head, err := eventlog.ParseHead(fmt.Sprintf("%d:%s", line.Seq, line.Hash))
		if err == nil {
			err = eventlog.CheckName(line.Session)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: its list of sessions: %w", ErrRemote, err)
		}
		sessions = append(sessions, RemoteSession{line.Session, head})
	}
}

// Copy records the entries of a session that an engine does not have into it. Each entry
// must follow from the one before it, and the listed head must be among them: otherwise
// the error wraps [eventlog.ErrCorrupt] or [ErrRemote].
func (m *Remote) Copy(ctx context.Context, engine *sajou.Engine, s RemoteSession) error {
	body, err := m.openLog(ctx, engine, s.Name, false)
	if err != nil {
		return err
	}
	limited := &io.LimitedReader{R: body, N: maxLog + 1}
	tally, err := ingest.Raw(ctx, engine, limited, ingest.RawConfig{Behind: true})
	err = errors.Join(err, body.Close())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.N == 0:
		return fmt.Errorf("%w: the log of %q has more than %d bytes", ErrRemote, s.Name, int64(maxLog))
	case err != nil:
		return fmt.Errorf("the log of %q does not arrive as it was recorded: %w", s.Name, err)
	case tally.Session != s.Name:
		return fmt.Errorf("%w: it sends the log of %q instead of that of %q", ErrRemote, tally.Session, s.Name)
	}
	return contains(ctx, engine, s)
}

// contains checks that a copied session has the head that was listed.
func contains(ctx context.Context, engine *sajou.Engine, s RemoteSession) error {
	log, err := engine.Log().Session(s.Name)
	if err != nil || s.Head.Seq == 0 {
		return err
	}
	e, err := log.Entry(ctx, s.Head.Seq)
	if err != nil || e.Head() != s.Head {
		return fmt.Errorf("%w: the log of %q does not have the head %v, which the server has listed", ErrRemote, s.Name, s.Head)
	}
	return nil
}

// Follow records the entries of a session that an engine does not have into it, and those
// that follow, and calls arrived after each write. It returns nil when the server ends the
// log; a further call continues. The engine has the first entries already, or none.
func (m *Remote) Follow(ctx context.Context, engine *sajou.Engine, name string, arrived func() error) error {
	body, err := m.openLog(ctx, engine, name, true)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // it was only read
	// A write needs the header, and then whole batches.
	header := append(session.AppendRawHeader(nil, name), '\n')
	in := bufio.NewReaderSize(body, flushBytes)
	pending := bytes.NewBuffer(nil)
	first := true
	for {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case first:
			first = false
			if !bytes.Equal(line, header) {
				return fmt.Errorf("%w: it is not the log of %q", ErrRemote, name)
			}
			continue
		case len(line) > 1:
			pending.Write(line)
			if pending.Len() > maxPending {
				return fmt.Errorf("%w: more than %d bytes of the log of %q came without an end", ErrRemote, maxPending, name)
			}
			continue
		}
		if pending.Len() > 0 {
			if _, err := ingest.Raw(ctx, engine, io.MultiReader(bytes.NewReader(header), pending), ingest.RawConfig{Behind: true}); err != nil {
				return fmt.Errorf("the log of %q does not arrive as it was recorded: %w", name, err)
			}
			pending.Reset()
		}
		if err := arrived(); err != nil {
			return err
		}
	}
}

// maxPending bounds the entries that arrive before they are recorded.
const maxPending = 256 << 20

// readLine returns the next line with its line feed. It is valid until the next call.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = in.ReadSlice('\n')
		if long = append(long, line...); len(long) > ingest.MaxLine {
			return nil, fmt.Errorf("%w: %w", ErrRemote, ingest.ErrLongLine)
		}
	}
	return long, err
}

// openLog asks for the entries of a session that an engine does not have.
func (m *Remote) openLog(ctx context.Context, engine *sajou.Engine, name string, follow bool) (io.ReadCloser, error) {
	log, err := engine.Log().Session(name)
	if err != nil {
		return nil, err
	}
	query := url.Values{"from": {strconv.FormatUint(uint64(log.Head().Seq)+1, 10)}}
	if follow {
		query.Set("follow", "true")
	}
	return m.get(ctx, "/api/v1/sessions/"+url.PathEscape(name)+"/log", query)
}

// get sends a request and returns the body of its answer.
func (m *Remote) get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	address := strings.TrimSuffix(m.base.String(), "/") + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("mirror: %w", err)
	}
	req.Header.Set("Accept", "application/x-ndjson")
	if m.token != "" {
		req.Header.Set("Authorization", "Bearer "+m.token)
	}
	res, err := m.client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		return res.Body, nil
	}
	var told struct {
		Detail string `json:"detail"`
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxTold))
	if err == nil {
		_ = json.Unmarshal(data, &told) // an answer without a reason has its status
	}
	if to := res.Header.Get("Location"); to != "" && told.Detail == "" {
		told.Detail = fmt.Sprintf("it points to %q, which is not followed; name the server itself", to)
	}
	return nil, errors.Join(&StatusError{res.StatusCode, told.Detail}, res.Body.Close())
}
