package servecmd

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/ingest/dial"
	"github.com/sajou-dev/sajou-go/ingest/hooks/forward"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/privatefile"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/signal"
)

// recordFlags are the flags of record.
type recordFlags struct {
	server string
	span   time.Duration
	most   int
}

// Record returns the command "record".
func Record(a *cli.App) *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record URL",
		Short: "Connect to a source of signals and record it",
		Long: `Record connects to a source of signals and records what it sends, until Ctrl-C,
for the time of --for, or up to --max signals. The source is
  ws://HOST, wss://      the WebSocket of an emitter: one signal a message
  http://HOST, https://  a stream of server-sent events, or lines of JSON
When the connection ends, record connects again after half a second, then after
longer waits, up to 30 seconds. Lines of JSON that have reached their end are
complete. A stream of events whose events have ids goes on where it ended.

Messages about the source ("meta") are left out. Ids may repeat. What lacks an
id, a time, a source or a payload gets one; JSON without a type becomes an
"event", and a message that is not JSON an "error". A signal that the schema
refuses is recorded and flagged.

It records into the session "live", or the one of --session, which may exist.
It holds the store, as import does; with --server, or SAJOU_SERVER without -C, it
sends the signals to a server that holds it. --token-file, SAJOU_TOKEN or the file
of SAJOU_TOKEN_FILE has the token for that server; the source gets none. While the
server takes nothing, record tries again every 2 seconds and soon reads no
further. At its end it tries for 10 seconds more, after Ctrl-C for 3.

The exit code is 0 after an interrupt too, 1 if the source refuses the
connection or signals that were read are not recorded, 2 if the URL is no source,
and 6 if another process has the store.`,
		Example: `  sajou-replay record ws://localhost:9100 --for 1s
  sajou-replay record http://127.0.0.1:3000/__signals__/stream --max 10 --for 1s`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.most < 0 || f.span < 0 {
				return cli.Misuse("--max and --for must not be negative")
			}
			if f.server != "" && cmd.Flags().Lookup("store").Changed {
				return cli.Misuse("--server and -C name two places to record into; omit one")
			}
			f.server = cmp.Or(f.server, a.Server) // of SAJOU_SERVER
			return record(cmd.Context(), a, args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.server, "server", "", "deliver to the server at `ADDRESS` instead of opening the store; SAJOU_SERVER sets the default")
	cmd.Flags().DurationVar(&f.span, "for", 0, "end after this `SPAN`")
	cmd.Flags().IntVar(&f.most, "max", 0, "end after `N` signals")
	return cmd
}

// signalSink takes the signals that were read.
type signalSink interface {
	add(ctx context.Context, sig *signal.Signal) error
	flush(ctx context.Context) error // makes all that was added durable
	durable() int                    // the number of signals that are
}

func record(ctx context.Context, a *cli.App, url string, f recordFlags) (err error) {
	name := a.Session
	if name == "" {
		name = "live"
	}
	if err := eventlog.CheckName(name); err != nil {
		return cli.Misuse("--session: %s", cli.OneLine(err.Error()))
	}
	source, err := dial.New(dial.Config{
		URL: url, Now: time.Now, After: time.After,
		Jitter: rand.Float64, //nolint:forbidigo // the attempts of several recorders shall not coincide
		Note: func(err error, wait time.Duration) {
			if err == nil {
				fmt.Fprintf(a.Stderr, "sajou-replay: connected to %s\n", termtext.Printable(url))
				return
			}
			fmt.Fprintf(a.Stderr, "sajou-replay: %s; connecting again in %v\n", cli.OneLine(err.Error()), wait.Round(time.Millisecond))
		},
	})
	if err != nil {
		return cli.Misuse("%w", err)
	}
	var sink signalSink
	if f.server != "" {
		note := func(text string) { fmt.Fprintf(a.Stderr, "sajou-replay: %s\n", cli.OneLine(text)) }
		if sink, err = newServerSink(name, f.server, a.TokenFile, note); err != nil {
			return err
		}
	} else {
		engine, err := a.OpenWriting()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, engine.Close()) }()
		session, err := engine.Session(ctx, name)
		if err != nil {
			return err
		}
		recorder, err := ingest.NewRecorder(ctx, session, ingest.Config{Lenient: true})
		if err != nil {
			return err
		}
		defer recorder.Close()
		sink = storeSink{recorder}
	}
	failed := copySignals(ctx, source.Read, sink, f)
	n, counts := sink.durable(), source.Counts()
	text := fmt.Sprintf("recorded %s into %q", cli.Plural(n, "signal", "signals"), termtext.Printable(name))
	if counts.Meta > 0 {
		text += fmt.Sprintf("; left out %s about the source", cli.Plural(counts.Meta, "message", "messages"))
	}
	if counts.Unreadable > 0 {
		text += fmt.Sprintf("; %s not JSON or too long", cli.Plural(counts.Unreadable, "message was", "messages were"))
	}
	lost := counts.Signals - n
	if lost > 0 {
		text += fmt.Sprintf("; %s read and not recorded", cli.Plural(lost, "signal was", "signals were"))
	}
	result := struct {
		Session     string `json:"session"`
		Signals     int    `json:"signals"`
		Meta        int    `json:"meta"`
		Unreadable  int    `json:"unreadable"`
		Connections int    `json:"connections"`
		NotRecorded int    `json:"not_recorded,omitempty"`
	}{name, n, counts.Meta, counts.Unreadable, counts.Connections, lost}
	if err := a.Output().One(text, result); err != nil {
		return errors.Join(failed, err)
	}
	if errors.Is(failed, dial.ErrRefused) {
		return &cli.ExitError{Code: cli.ExitNo, Cause: failed}
	}
	return failed
}

// errEnough ends the reading of a source after the signals of --max.
var errEnough = errors.New("the recording has the signals that were asked for")

// The times for which the signals that were read are delivered after the recording has
// ended: after an interrupt the command has to end before it is stopped.
const (
	finishTime      = 10 * time.Second
	interruptedTime = 3 * time.Second
)

// copySignals records the signals of a source until it ends, ctx does, or a flag says so.
// While the ones that were read become durable, it reads on, as far as the channel has room.
func copySignals(ctx context.Context, source func(context.Context, func(*signal.Signal) error) error, sink signalSink, f recordFlags) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	if f.span > 0 {
		reading, stop = context.WithTimeout(ctx, f.span)
		defer stop()
	}
	read := make(chan *signal.Signal, 256)
	ended := make(chan error, 1)
	go func() {
		n := 0
		err := source(reading, func(sig *signal.Signal) error {
			read <- sig // which is received until the channel is closed
			if n++; n == f.most {
				return errEnough
			}
			return reading.Err()
		})
		if reading.Err() != nil || errors.Is(err, errEnough) {
			err = nil
		}
		ended <- err
		close(read)
		stop()
	}()
	// Signals that were read are recorded, also after an interrupt.
	recording, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	go func() {
		<-reading.Done()
		select {
		case <-ctx.Done():
		case <-time.After(finishTime - interruptedTime):
		case <-recording.Done():
		}
		select {
		case <-time.After(interruptedTime):
			giveUp()
		case <-recording.Done():
		}
	}()
	var err error
	for sig := range read {
		if err == nil {
			err = sink.add(recording, sig)
		}
		if err == nil && len(read) == 0 {
			err = sink.flush(recording)
		}
		if err != nil {
			stop() // the reader ends, and closes the channel
		}
	}
	if err == nil {
		err = sink.flush(recording)
	}
	return errors.Join(err, <-ended)
}

// storeSink records into a session of an open store. It waits for the disk as long as it
// takes.
type storeSink struct{ *ingest.Recorder }

func (s storeSink) add(ctx context.Context, sig *signal.Signal) error {
	return s.Add(context.WithoutCancel(ctx), recording.Item{Signal: sig, Size: len(sig.Payload)})
}

func (s storeSink) flush(ctx context.Context) error { return s.Flush(context.WithoutCancel(ctx)) }

func (s storeSink) durable() int { return s.Tally().Signals }

// The bounds of one delivery to a server, and of the waits between the attempts.
const (
	deliverySignals = 200
	deliveryBytes   = 1 << 20
	deliveryTime    = 10 * time.Second
	deliveryWait    = 2 * time.Second
)

// serverSink delivers to a server, which records each batch once.
type serverSink struct {
	deliver func(context.Context, forward.HookItem) error
	note    func(text string) // receives when the server goes away and comes back
	name    string
	server  string
	run     string // names the batches of this run
	batch   []byte
	n       int  // signals in the batch
	sent    int  // batches
	taken   int  // signals that the server has recorded
	away    bool // the server took nothing the last time
}

func (s *serverSink) durable() int { return s.taken }

func newServerSink(name, server, tokenFile string, note func(string)) (*serverSink, error) {
	if err := forward.CheckServer(server); err != nil {
		return nil, cli.Misuse("--server: %w", err)
	}
	cfg := *hookConfig()
	cfg.Server = server
	token, err := privatefile.Token(tokenFile)
	if err != nil {
		return nil, cli.Misuse("%w", err)
	}
	cfg.Token = token
	var run [16]byte
	cfg.Random(run[:])
	deliver := func(ctx context.Context, item forward.HookItem) error { return forward.Deliver(ctx, cfg, item) }
	return &serverSink{deliver: deliver, note: note, name: name, server: server, run: hex.EncodeToString(run[:])}, nil
}

func (s *serverSink) add(ctx context.Context, sig *signal.Signal) error {
	separator := byte(',')
	if s.n == 0 {
		separator = '['
	}
	s.batch = sig.AppendJSON(append(s.batch, separator))
	if s.n++; s.n >= deliverySignals || len(s.batch) >= deliveryBytes {
		return s.flush(ctx)
	}
	return nil
}

// flush delivers the batch. It tries again until ctx ends, unless the server refuses it.
func (s *serverSink) flush(ctx context.Context) error {
	if s.n == 0 {
		return nil
	}
	s.sent++
	item := forward.HookItem{Session: s.name, Key: fmt.Sprintf("%s-%d", s.run, s.sent), Signals: json.RawMessage(append(s.batch, ']'))}
	for wait := dial.FirstWait; ; wait = min(2*wait, deliveryWait) {
		attempt, cancel := context.WithTimeout(ctx, deliveryTime)
		err := s.deliver(attempt, item)
		cancel()
		switch {
		case err == nil:
			if s.away {
				s.note("the server takes signals again")
			}
			s.away = false
			s.taken += s.n
			s.batch, s.n = s.batch[:0], 0
			return nil
		case refused(err):
			return fmt.Errorf("the server does not take the signals: %w", err)
		case !s.away && ctx.Err() == nil:
			s.away = true
			s.note(fmt.Sprintf("the server takes no signals: %v; trying again", s.reason(err)))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server did not take the last signals: %w", s.reason(err))
		case <-time.After(wait):
		}
	}
}

// reason returns the error of a delivery with a text of its own.
func (s *serverSink) reason(err error) error {
	if _, answered := errors.AsType[*forward.BusyError](err); answered {
		return err
	}
	_, broken := errors.AsType[*net.OpError](err)
	if errors.Is(err, forward.ErrNotServer) && !broken && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", s.server, forward.ErrNotServer)
	}
	return &dial.ConnectionError{Host: s.server, Err: err}
}

// refused reports whether it makes no sense to send a batch again.
func refused(err error) bool {
	if _, never := errors.AsType[*forward.UndeliverableError](err); never {
		return true
	}
	busy, ok := errors.AsType[*forward.BusyError](err)
	return ok && (busy.Status == http.StatusUnauthorized || busy.Status == http.StatusForbidden || busy.Status == http.StatusNotFound)
}
