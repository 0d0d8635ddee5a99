// Command service is the program of docs/embedding.md: an HTTP service that records
// signals, shows them live and again, lets agents act, and stops without losing anything.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/adapter/prometheus"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/message"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	stagelive "github.com/sajou-dev/sajou-go/stage/live"
)

func main() {
	store := flag.String("store", "sajou-data", "directory of the store")
	backups := flag.String("backups", "sajou-backups", "directory of the backups")
	address := flag.String("listen", "localhost:8080", "address of the service")
	flag.Parse()

	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	// The first signal ends ctx; after stop a second one ends the process at once.
	ctx, stop := ossignal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, *store, *backups, *address, logger); err != nil {
		logger.Error("the service failed", slog.Any("err", err))
		os.Exit(1)
	}
}

// service is what the handlers share.
type service struct {
	eng      *sajou.Engine
	backups  string
	streams  context.Context // ends when the service stops; streams end with it
	logger   *slog.Logger
	declared []language.Declaration
}

// run serves until ctx ends or the service fails.
func run(ctx context.Context, store, backups, address string, logger *slog.Logger) (err error) {
	declared, diagnostics := language.Parse("choreographies", []byte(choreographies))
	if err := diagnostics.Err(definition.ErrInvalid); err != nil {
		return err
	}
	registry, collector := prom.NewRegistry(), prometheus.New(prometheus.Config{})
	registry.MustRegister(collector)
	eng, err := sajou.Open(store, sajou.Config{
		LockWait:    10 * time.Second, // the process before this one may still be closing the store
		Projections: []projection.Projection{costs},
		Metrics:     collector.Metrics(),
		Logger:      logger, // the engine redacts what it logs
	})
	switch {
	case errors.Is(err, eventlog.ErrLocked):
		return fmt.Errorf("is the service running already? %w", err)
	case errors.Is(err, eventlog.ErrLost), errors.Is(err, eventlog.ErrCorrupt):
		return fmt.Errorf("the store is damaged and was left as it is; restore a backup, or see docs/audit.md: %w", err)
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }() // last: nothing uses the engine any more

	streams, endStreams := context.WithCancel(context.Background())
	defer endStreams()
	s := &service{eng: eng, backups: backups, streams: streams, logger: logger, declared: declared}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sessions/{session}/signals", s.record)
	mux.HandleFunc("GET /sessions/{session}/live", s.live)
	mux.HandleFunc("GET /sessions/{session}/replay", s.replay)
	mux.HandleFunc("GET /sessions/{session}/costs", s.costs)
	mux.HandleFunc("POST /sessions/{session}/agents/{agent}/messages", s.say)
	mux.HandleFunc("POST /backups/{name}", s.backup)
	mux.HandleFunc("GET /ready", s.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	logger.Info("listening", slog.String("address", listener.Addr().String()))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	select {
	case err := <-served: // before it was asked to
		return err
	case <-ctx.Done():
	}
	logger.Info("stopping")
	endStreams() // they would last as long as their clients want
	deadline, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := server.Shutdown(deadline); err != nil { // waits for the requests under way
		return errors.Join(err, server.Close())
	}
	return nil
}

// record records the signal in the body. The header Idempotency-Key makes a repeat of
// the request harmless.
func (s *service) record(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	sig, err := signal.Parse(body)
	if err != nil {
		s.fail(w, err)
		return
	}
	ses, err := s.open(r.Context(), r.PathValue("session"))
	if err != nil {
		s.fail(w, err)
		return
	}
	addition := sajou.Addition{Signals: []*signal.Signal{sig}}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		addition.Key = "client/" + key // never a key of the service
	}
	receipt, err := ses.Record(r.Context(), addition)
	if err != nil {
		s.fail(w, err)
		return
	}
	s.answer(w, map[string]any{"head": receipt.Head.String(), "repeat": receipt.Repeat}) // it is durable
}

// open returns a session in which the choreographies are in force.
func (s *service) open(ctx context.Context, name string) (*sajou.Session, error) {
	ses, err := s.eng.Session(ctx, name)
	if err == nil {
		// The key makes every call but the first one write nothing.
		_, err = ses.Record(ctx, sajou.Addition{Declarations: s.declared, Key: "service/choreographies-1"})
	}
	return ses, err
}

// choreographies move an agent to the desk when a task is dispatched to it.
const choreographies = `{"id": "walk", "on": "task_dispatch", "steps": [
	{"action": "move", "entity": "signal.to", "to": "desk", "duration": 800}
]}`

// stream is a sink that sends commands to a client, a line of JSON each. Its calls never
// overlap. A client that reads slowly delays neither the writers nor other sinks.
type stream struct {
	w   http.ResponseWriter
	end context.CancelFunc // the client is gone
}

func (s stream) send(c choreography.Command) {
	err := json.NewEncoder(s.w).Encode(c)
	if s.flush(); err != nil {
		s.end()
	}
}

func (s stream) flush() {
	if err := http.NewResponseController(s.w).Flush(); err != nil {
		s.end()
	}
}

func (s stream) OnActionStart(c choreography.ActionStart)       { s.send(c.Command()) }
func (s stream) OnActionUpdate(choreography.ActionUpdate)       {} // the client animates by itself
func (s stream) OnActionComplete(c choreography.ActionComplete) { s.send(c.Command()) }
func (s stream) OnActionExecute(c choreography.ActionExecute)   { s.send(c.Command()) }
func (s stream) OnInterrupt(c choreography.Interrupt)           { s.send(c.Command()) }

// streaming returns a context that ends with the request, and when the service stops.
func (s *service) streaming(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.streams, cancel)
	return ctx, func() { stop(); cancel() }
}

// live sends the commands of a session from now on.
func (s *service) live(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := s.streaming(r)
	defer cancel()
	ses, err := s.open(ctx, r.PathValue("session"))
	if err != nil {
		s.fail(w, err)
		return
	}
	sink := stream{w, cancel}
	sink.flush() // the client gets the header before the first command
	attached := ses.Attach(ctx, sink, 0)
	<-attached.Done() // the client is gone, the service stops, or the sink has failed
	if err := attached.Close(); err != nil {
		s.logger.Warn("a viewer failed", slog.Any("err", err))
	}
}

// replay plays a recorded session to the client, at the pace of the clock. The
// parameter from is an address, such as 12, end-3 or t:1.5s.
func (s *service) replay(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := s.streaming(r)
	defer cancel()
	past, from, err := s.moment(ctx, r.PathValue("session"), r.FormValue("from"), "0")
	if err != nil {
		s.fail(w, err)
		return
	}
	player, err := replay.NewPlayer(ctx, past, replay.PlayerConfig{
		From: from, Commands: stream{w, cancel},
		Idle: 2 * time.Second, // longer pauses of the session are cut short
	})
	if err != nil {
		s.fail(w, err)
		return
	}
	player.Play()
	if err := player.Run(ctx, stagelive.NewFrameClock(time.Now(), 30, nil)); err != nil && ctx.Err() == nil {
		s.logger.Warn("a replay failed", slog.Any("err", err))
	}
}

// moment returns a recorded session and the moment of an address in it.
func (s *service) moment(ctx context.Context, name, address, otherwise string) (*replay.Replay, replay.Moment, error) {
	if address == "" {
		address = otherwise
	}
	parsed, err := replay.ParseAddress(address)
	if err != nil {
		return nil, replay.Moment{}, err
	}
	past, err := s.eng.Replay(name)
	if err != nil {
		return nil, replay.Moment{}, err
	}
	m, err := past.Resolve(ctx, parsed)
	return past, m, err
}

// cost adds up the costs that signals of the type token_usage report.
type cost struct{ total float64 }

func (c *cost) Apply(e *eventlog.Entry) {
	sig, err := session.SignalOf(e)
	if err != nil || sig.Type != "token_usage" {
		return // not an error: a projection ignores what it does not count
	}
	value, _ := sig.Payload.Get("cost")
	var amount float64
	if value.Decode(&amount) == nil {
		c.total += amount
	}
}
func (c *cost) Advance(time.Duration)    {} // time alone costs nothing
func (c *cost) Append(dst []byte) []byte { return fmt.Appendf(dst, "%v", c.total) }
func (c *cost) View() any                { return c.total }

// costs is the projection of cost. A change of the rules or of the bytes needs a higher
// Version.
var costs = projection.Projection{
	Name: "costs", Version: 1,
	New: func() projection.State { return &cost{} },
	Restore: func(data []byte) (projection.State, error) {
		c := &cost{}
		_, err := fmt.Sscan(string(data), &c.total)
		return c, err
	},
}

// costs returns the costs of a session up to an entry, by default the last.
func (s *service) costs(w http.ResponseWriter, r *http.Request) {
	past, at, err := s.moment(r.Context(), r.PathValue("session"), r.FormValue("at"), "end")
	if err != nil {
		s.fail(w, err)
		return
	}
	fold, err := past.At(r.Context(), at)
	if err != nil {
		s.fail(w, err)
		return
	}
	spent, err := sajou.State[*cost](fold, costs.Name)
	if err != nil {
		s.fail(w, err)
		return
	}
	s.answer(w, map[string]any{"entry": fold.Head().Seq, "cost": spent.total})
}

// say has an agent speak in the world of the session. The agent joins with its first
// message.
func (s *service) say(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Text  string `json:"text"`
		To    string `json:"to"`     // "" for everybody
		ReqID string `json:"req_id"` // a repeat returns the first outcome
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body); err != nil {
		http.Error(w, "want a JSON object with the strings text, to and req_id", http.StatusBadRequest)
		return
	}
	ses, err := s.open(r.Context(), r.PathValue("session"))
	if err != nil {
		s.fail(w, err)
		return
	}
	room, agent := message.New(ses), r.PathValue("agent")
	if _, registered := ses.Agents().LatestViewSeq(agent); !registered {
		if err := room.Join(r.Context(), message.Member{AgentID: agent}); err != nil {
			s.fail(w, err)
			return
		}
	}
	outcome, err := room.Emit(r.Context(), agent, message.Message{Text: body.Text, To: body.To, ReqID: body.ReqID})
	if err != nil {
		s.fail(w, err)
		return
	}
	s.answer(w, map[string]any{"status": outcome.Status.String()})
}

// ready answers the readiness probe. A log that has failed works again when the store is
// opened again, so the process should then be restarted.
func (s *service) ready(w http.ResponseWriter, _ *http.Request) {
	health := s.eng.Health()
	if err := health.Err(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	s.answer(w, map[string]any{"sinks_failed": health.SinksDetached, "snapshots": health.Snapshots == nil})
}

// backup copies the store while it is in use, verifies the copy, and returns its heads.
// Only heads that are kept elsewhere prove later that no entry was removed from an end.
func (s *service) backup(w http.ResponseWriter, r *http.Request) {
	dir, err := filepath.Localize(r.PathValue("name"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := os.MkdirAll(s.backups, 0o700); err != nil {
		s.fail(w, err)
		return
	}
	reports, err := s.eng.Backup(r.Context(), filepath.Join(s.backups, dir))
	if err != nil {
		s.fail(w, err)
		return
	}
	heads := map[string]string{}
	for _, report := range reports {
		heads[report.Session] = report.Head.String()
	}
	s.answer(w, map[string]any{"heads": heads})
}

// fail reports an error with the status that tells the client what to do.
func (s *service) fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if refused, ok := errors.AsType[*agents.Rejection](err); ok {
		if failure, known := refused.Code.Failure(); known {
			status = failure.HTTP
		}
		if refused.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refused.RetryAfter.Seconds()))))
		}
	} else if _, ok := errors.AsType[*signal.SyntaxError](err); ok {
		status = http.StatusBadRequest
	}
	for _, class := range []struct {
		status int
		errs   []error
	}{
		{http.StatusBadRequest, []error{signal.ErrSchema, session.ErrTime, eventlog.ErrInvalid, replay.ErrSyntax}},
		{http.StatusConflict, []error{fs.ErrExist}}, // the name of a backup is taken
		{http.StatusNotFound, []error{eventlog.ErrNoSession, replay.ErrNoAddress}},
		{http.StatusRequestEntityTooLarge, []error{eventlog.ErrTooLarge}},
		{http.StatusServiceUnavailable, []error{eventlog.ErrReadOnly, eventlog.ErrClosed, context.Canceled, context.DeadlineExceeded}},
	} {
		if slices.ContainsFunc(class.errs, func(target error) bool { return errors.Is(err, target) }) {
			status = class.status
		}
	}
	if status == http.StatusInternalServerError {
		s.logger.Error("a request failed", slog.Any("err", err))
		http.Error(w, "internal error", status)
		return
	}
	http.Error(w, err.Error(), status)
}

// answer writes the result of a request.
func (s *service) answer(w http.ResponseWriter, result map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(result); err != nil {
		s.logger.Info("the client is gone", slog.Any("err", err))
	}
}
