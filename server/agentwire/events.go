package agentwire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// This file is the protocol without WebSockets: the messages of the server are events of
// a stream, those of the client are bodies of requests.

// events is a stream of server-sent events as a [transport]. The client sends nothing on
// it, so Read only waits for the end.
type events struct {
	room *AgentDoor
	w    http.ResponseWriter
	rc   *http.ResponseController
	done chan struct{} // closed by Close
	once sync.Once

	mu sync.Mutex // the writer and the heartbeat write
}

func (e *events) Read() ([]byte, error) {
	<-e.done
	return nil, io.EOF
}

// Write sends a message as one event: its type is that of the message, and its id the
// view_seq of an observation.
func (e *events) Write(frame []byte) error {
	var head struct {
		Type    string  `json:"type"`
		ViewSeq *uint64 `json:"view_seq"`
	}
	if err := unmarshal(frame, &head); err != nil {
		return err
	}
	var b bytes.Buffer
	if head.Type == "observation" {
		b.WriteString("id: " + strconv.FormatUint(*head.ViewSeq, 10) + "\n")
	}
	b.WriteString("event: " + head.Type + "\ndata: ")
	b.Write(frame)
	b.WriteString("\n\n")
	return e.put(b.Bytes())
}

// put writes in time. When the time is over, the connection is cut.
func (e *events) put(p []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	stop := e.room.cfg.AfterFunc(e.room.cfg.WriteTimeout, func() { _ = e.rc.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := e.w.Write(p); err != nil {
		return err
	}
	return e.rc.Flush()
}

// Ping has nothing to wait for: a stream that cannot be written to ends by its writer.
func (e *events) Ping(context.Context) error { return nil }

// Close tells the client why the stream ends.
func (e *events) Close(how closing) {
	e.once.Do(func() {
		close(e.done)
		if how != closeSlow && how != closeNormal {
			_ = e.Write(encode(ending{"close", how.code, how.reason})) // the client may be gone
		}
	})
}

// ending is the last event of a stream. A WebSocket has a close frame in its place.
type ending struct {
	Type   string `json:"type"`
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}

// agentOf returns the agent of a request, as which the caller may act.
func agentOf(req *http.Request) (place, error) {
	p := place{route.Session(req), req.PathValue("agent")}
	return p, access.CheckAct(req.Context(), p.session, p.agent)
}

// agentEvents serves an agent over a stream of events.
func (r *AgentDoor) agentEvents(w http.ResponseWriter, req *http.Request) error {
	p, err := agentOf(req)
	if err != nil {
		return err
	}
	var since *uint64
	if id := req.Header.Get("Last-Event-ID"); id != "" {
		n, err := strconv.ParseUint(id, 10, 63)
		if err != nil {
			return problem.New(problem.BadRequest, "Last-Event-ID is the view_seq of the last observation, a number")
		}
		since = &n
	}
	e := &events{room: r, w: w, rc: http.NewResponseController(w), done: make(chan struct{})}
	c, err := r.connect(req.Context(), p, since, e, 0)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies must not collect events
	c.run(since, route.Stopping(req.Context()))
	return nil
}

// postIntent submits an intent, and answers with its outcome.
func (r *AgentDoor) postIntent(w http.ResponseWriter, req *http.Request) error {
	p, m, err := r.posted(req, postIntents)
	if err != nil {
		return err
	}
	in, err := m.intent(p.agent)
	if err != nil {
		return problem.New(problem.BadRequest, err.Error())
	}
	ses, err := r.world(req.Context(), p.session)
	if err != nil {
		return err
	}
	world := ses.Agents()
	if _, ok := world.LatestViewSeq(p.agent); !ok {
		return errAbsent
	}
	if c := r.connection(p); c != nil {
		c.mu.Lock()
		g := c.generations[m.ReqID]
		c.mu.Unlock()
		if g != nil {
			g.complete(req.Context())
		}
	}
	wait, answer := r.submit(req.Context(), world, p, m.ReqID, agents.Submission{Intent: &in})
	if answer == nil {
		answer = wait()
	}
	return r.reply(w, answer)
}

// postCancel cancels a request.
func (r *AgentDoor) postCancel(w http.ResponseWriter, req *http.Request) error {
	p, m, err := r.posted(req, postCancel)
	if err != nil {
		return err
	}
	ses, err := r.world(req.Context(), p.session)
	if err != nil {
		return err
	}
	self, err := ses.Agents().Agent(req.Context(), p.agent)
	if err != nil {
		return absent(err)
	}
	defer self.Close()
	return r.reply(w, r.cancel(req.Context(), self, m.ReqID))
}

// postTokens takes messages about generations, one a line, and answers with the messages
// that answer them, one a line. The agent's stream of events has to be open: it is what
// tells the client to stop, and its end ends the generations.
func (r *AgentDoor) postTokens(w http.ResponseWriter, req *http.Request) error {
	p, err := agentOf(req)
	if err != nil {
		return err
	}
	c := r.connection(p)
	if c == nil {
		return problem.New(problem.InUse, "the agent has no open stream of events; open it first, because generations live as long as it")
	}
	var answers bytes.Buffer
	reply := func(m any) {
		answers.Write(encode(m))
		answers.WriteByte('\n')
	}
	lines := bufio.NewScanner(req.Body)
	lines.Buffer(nil, int(r.cfg.MaxMessage)+1)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		m, err := decode(postTokens, lines.Bytes())
		if err != nil {
			r.suspect.note(req.Context(), p, r.cfg.Now())
			reply(faultOf(err))
			break // the lines after it mean nothing without it
		}
		c.handle(m, reply)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return problem.New(problem.TooLarge, "a line is longer than the welcome allows")
	} else if err != nil {
		return err
	}
	w.Header().Set("Content-Type", route.MediaNDJSON)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(answers.Bytes()) // the client may be gone
	return nil
}

// posted reads the message in the body of a request.
func (r *AgentDoor) posted(req *http.Request, in channel) (place, *incoming, error) {
	p, err := agentOf(req)
	if err != nil {
		return p, nil, err
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return p, nil, err
	}
	m, err := decode(in, body)
	if err != nil {
		r.suspect.note(req.Context(), p, r.cfg.Now())
		return p, nil, problem.New(problem.BadRequest, err.Error())
	}
	return p, m, nil
}

// reply answers a request with a message.
func (r *AgentDoor) reply(w http.ResponseWriter, m any) error {
	if f, ok := m.(fault); ok && f.Code == faultUnavailable {
		if err := r.engine.Health().Err(); err != nil {
			return err
		}
		return &problem.Details{Code: problem.Stopping, Detail: f.Detail, RetryAfter: 1}
	}
	w.Header().Set("Content-Type", route.MediaJSON)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(encode(m), '\n')) // the client may be gone
	return nil
}
