package agentwire

import (
	"context"
	"errors"
	"sync"
	"time"
)

// transport carries the messages of one connection.
type transport interface {
	// Read returns the next message of the client. One goroutine reads. Close ends it.
	Read() ([]byte, error)
	// Write sends a message. One goroutine writes. It returns an error if the client
	// does not take the message in time.
	Write(frame []byte) error
	// Ping returns once the client has shown that it lives, or an error if it has not
	// before ctx ends.
	Ping(ctx context.Context) error
	// Close ends the connection, and the calls of the other methods.
	Close(how closing)
}

// errTooBig is returned by a transport whose client sent a message that is too large,
// errBinary for a binary message, and errFrame for an invalid frame.
var (
	errTooBig = errors.New("agentwire: the message is too large")
	errBinary = errors.New("agentwire: the message is not text")
	errFrame  = errors.New("agentwire: the bytes are not a frame of a WebSocket")
)

// link is a connection without its meaning: it reads, writes, sends heartbeats and ends.
type link struct {
	room *AgentDoor
	tr   transport

	ctx    context.Context // ends when the connection begins to end
	cancel context.CancelFunc
	tasks  sync.WaitGroup // what waits for outcomes and the ends of generations

	control chan []byte
	bulk    chan []byte   // observations or effects
	written chan struct{} // closed when the writer has ended
	bad     int           // messages that could not be read; the reader's

	mu  sync.Mutex
	how *closing // guarded by mu; nothing begins once it is set
}

// maxBad is how many messages that cannot be read a connection survives.
const maxBad = 16

// maxControl is how many control messages wait for the writer before their senders do.
const maxControl = 16

// start prepares a link. The end of ctx ends it.
func (l *link) start(ctx context.Context, r *AgentDoor, tr transport) {
	l.room, l.tr = r, tr
	l.control, l.bulk, l.written = make(chan []byte, maxControl), make(chan []byte), make(chan struct{})
	l.ctx, l.cancel = context.WithCancel(ctx)
}

// serve runs the link until it ends, and returns how it ended. handle carries
// out a message, and failed is called for each message that cannot be read. feed sends to bulk
// until l.ctx ends. The end of stopping ends the link.
func (l *link) serve(in channel, handle func(*incoming), failed func(), feed func(), stopping <-chan struct{}) closing {
	var loops sync.WaitGroup
	loops.Go(feed)
	loops.Go(l.beat)
	loops.Go(func() {
		select {
		case <-stopping:
			l.end(closeStopping)
		case <-l.ctx.Done():
		}
	})
	flush, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(l.written)
		l.write(flush)
	}()
	go func() {
		defer close(read)
		l.read(in, handle, failed)
	}()
	<-l.ctx.Done()
	l.end(closingOf(context.Cause(l.ctx))) // unless it was ended: the server gives up, or the token has ended
	// Nothing begins any more, and the answers to what began before are written.
	l.tasks.Wait()
	loops.Wait()
	close(flush)
	<-l.written
	l.mu.Lock()
	how := *l.how
	l.mu.Unlock()
	l.tr.Close(how)
	<-read
	return how
}

// spawn runs a task of the connection, unless it has ended.
func (l *link) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.how != nil {
		return false
	}
	l.tasks.Go(f)
	return true
}

// end begins the end of the connection. The first call decides how it ends.
func (l *link) end(how closing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.how == nil {
		l.how = &how
	}
	l.cancel()
}

// send gives a message to the writer. It waits for room: the writer takes all messages
// until the tasks have ended.
func (l *link) send(m any) {
	select {
	case l.control <- encode(m):
	case <-l.written:
	}
}

// read reads messages until the connection ends.
func (l *link) read(in channel, handle func(*incoming), failed func()) {
	for {
		frame, err := l.tr.Read()
		switch {
		case err == nil:
		case errors.Is(err, errTooBig):
			l.end(closeTooBig)
			return
		case errors.Is(err, errBinary):
			l.end(closeBinary)
			return
		case errors.Is(err, errFrame):
			l.end(closeFrame)
			return
		default: // the client has gone
			l.end(closeNormal)
			return
		}
		if l.ctx.Err() != nil {
			return
		}
		m, err := decode(in, frame)
		if err == nil && m.Type == "hello" {
			err = &badMessage{Detail: "/type: the connection has begun"}
		}
		if err != nil {
			l.send(faultOf(err))
			failed()
			if l.bad++; l.bad >= maxBad {
				l.end(closeProtocol)
			}
			continue
		}
		handle(m)
	}
}

// faultOf returns the answer to a message that cannot be read.
func faultOf(err error) fault {
	f := fault{Type: "error", Code: faultMessage, Detail: err.Error()}
	if bad, ok := errors.AsType[*badMessage](err); ok {
		f.ReqID = bad.ReqID
	}
	return f
}

// write writes messages, those that wait in control first, until the connection ends and
// flush is closed, and then what is left in control.
func (l *link) write(flush <-chan struct{}) {
	put := func(frame []byte) {
		if err := l.tr.Write(frame); err != nil {
			l.end(closeSlow)
		}
	}
	for {
		select {
		case frame := <-l.control:
			put(frame)
			continue
		default:
		}
		select {
		case frame := <-l.control:
			put(frame)
		case frame := <-l.bulk:
			put(frame)
		case <-flush:
			for {
				select {
				case frame := <-l.control:
					put(frame)
				default:
					return
				}
			}
		}
	}
}

// beat sends heartbeats and requires that the client answers each before the next.
func (l *link) beat() {
	for {
		if !l.room.pause(l.ctx, l.room.cfg.Heartbeat) {
			return
		}
		l.send(heartbeat{"heartbeat"})
		ctx, cancel := context.WithCancel(l.ctx)
		stop := l.room.cfg.AfterFunc(l.room.cfg.Heartbeat, cancel)
		err := l.tr.Ping(ctx)
		stop()
		cancel()
		if err != nil {
			l.end(closeSlow)
			return
		}
	}
}

// pause waits. It returns false if ctx ended before.
func (r *AgentDoor) pause(ctx context.Context, d time.Duration) bool {
	due := make(chan struct{})
	stop := r.cfg.AfterFunc(d, func() { close(due) })
	defer stop()
	select {
	case <-due:
		return true
	case <-ctx.Done():
		return false
	}
}
