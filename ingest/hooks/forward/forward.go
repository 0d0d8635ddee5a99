// Package forward takes the object that an agent hands to a hook, maps it to signals and
// delivers these to a server. What cannot be delivered now waits in a file, the spool, and is
// delivered later, in order.
//
// A hook must not disturb the agent that runs it. [Main] is therefore the whole of a
// program that prints nothing, always ends normally, and ends soon: its failures go to
// a file of limited size, [LogFile].
//
// # How one object is delivered
//
//	read and map       the object becomes an [HookItem]: a session, an idempotency key, signals
//	write the spool    under the lock of the spool; the item survives the end of the process
//	deliver            under the lock of delivery, which one process has at a time: the
//	                   oldest item of the spool, then the next, until [Config.Deadline]
//
// An item leaves the spool when the server has answered that it is durable, or that it never
// will be. The idempotency key makes a repeated delivery harmless, so items are never lost
// or recorded twice, in whatever order processes end.
//
// # The spool
//
// Each server has a file of its own in [Config.Dir], readable by its owner only. The first line
// is a header of fixed length; each further one is the JSON of an [HookItem]:
//
//	sajou-hooks/1 00000000000000000044 0000000000000\n
//	              offset of the next   delivery waits until, in
//	              item, 20 digits      milliseconds since 1970, 13 digits
//
// A spool whose items are all delivered is empty. A line that is not an item, such as one that
// was cut off, is skipped and noted in the log.
//
// # Limits
//
// The spool is not synced to the disk: it outlives the process, but not a loss of power. A
// spool that has reached [Config.MaxSpool] takes nothing more until the server answers; what
// is lost then is counted in the log. The files are protected from other users by their mode
// alone.
//
// docs/recording.md describes the hooks for users.
package forward

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/hooks"
	"github.com/sajou-dev/sajou-go/ingest/partition"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

// The defaults of a [Config].
const (
	DefaultServer   = "http://127.0.0.1:5175"
	DefaultDeadline = 300 * time.Millisecond
	DefaultMaxSpool = 64 << 20
)

// MaxObject bounds one object of a hook, in bytes.
const MaxObject = recording.MaxLine

// DialFunc connects to an address: "tcp" and HOST:PORT, or "unix" and a path.
type DialFunc func(ctx context.Context, network, address string) (io.ReadWriteCloser, error)

// Config says where objects go.
type Config struct {
	// Server is the address of the server: http://HOST:PORT, https://HOST:PORT if
	// DialTLS is set, or unix:PATH. Empty means [DefaultServer].
	Server string

	// Token authenticates to the server. It is never sent over an unencrypted
	// connection to another machine. Empty means none.
	Token string

	// Hold, unless nil, is why nothing can be delivered now, such as a token that cannot be
	// read. Objects then wait in the spool.
	Hold error

	// Session is the session that is recorded into, or to whose name Split adds a part. If
	// it is empty, it is the name of the agent, and Split by the native session unless it is set.
	Session string
	Split   partition.Split

	// Source is the source of the signals. Empty means "adapter:" and the agent.
	Source string

	// Dir is the directory of the spool and the log. It is created with mode 0700.
	Dir string

	// Deadline bounds the delivery of one call of [Handle]. Zero means
	// [DefaultDeadline].
	Deadline time.Duration

	// MaxSpool bounds the spool of one server, in bytes. Zero means [DefaultMaxSpool].
	MaxSpool int64

	// Now is the clock; it is required.
	Now func() time.Time

	// Random fills a slice with random bytes, which name an object; it is required.
	Random func([]byte)

	// Dial connects to an address as net.Dialer does; it is required. A read or a write of
	// the connection that blocks must return when the connection is closed.
	Dial DialFunc

	// DialTLS connects to an address with TLS. Nil means that https is refused: a small program
	// does without it.
	DialTLS DialFunc

	// Note, unless nil, receives what the caller of Handle or Drain does not learn from the
	// result: an item that the server refused, a line that is not an item.
	Note func(error)
}

func (c Config) withDefaults() Config {
	if c.Server == "" {
		c.Server = DefaultServer
	}
	if c.Session == "" && c.Split == partition.SplitNone {
		c.Split = partition.SplitNative
	}
	if c.Deadline == 0 {
		c.Deadline = DefaultDeadline
	}
	if c.MaxSpool == 0 {
		c.MaxSpool = DefaultMaxSpool
	}
	if c.Note == nil {
		c.Note = func(error) {}
	}
	return c
}

// HookItem is one object of a hook on its way: signals for one session.
type HookItem struct {
	Session string `json:"session"`

	// Key is the idempotency key: the server records the item once.
	Key string `json:"key"`

	// Signals is a JSON array of signals.
	Signals json.RawMessage `json:"signals"`
}

// ErrTooLong reports an object of more than [MaxObject] bytes.
var ErrTooLong = fmt.Errorf("the object has more than %d MiB", MaxObject>>20)

// Handle reads one object, and delivers it with those that wait, or leaves it in the spool.
// The error says why the object was not delivered; [ErrWaiting] is among its causes if
// it is in the spool. An object for an address that cannot be used waits for [DefaultServer];
// one for a session that cannot be goes to that of its agent.
func Handle(ctx context.Context, in io.Reader, cfg Config) error {
	at := cfg.Now() // before anything that takes time
	cfg = cfg.withDefaults()
	if err := cfg.Split.Check(cmp.Or(cfg.Session, "claude")); err != nil {
		cfg.Note(err)
		cfg.Session, cfg.Split = "", partition.SplitNative
	}
	text, err := readAll(in)
	if err != nil {
		return err
	}
	item, err := cfg.item(text, at)
	if err != nil || len(item.Signals) == 0 {
		return err
	}
	to, err := cfg.target()
	if errors.Is(err, errAddress) {
		cfg.Server = DefaultServer
	}
	if err = errors.Join(cfg.Hold, err); err != nil {
		return cfg.keep(item, err)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Deadline)
	defer cancel()
	s, err := openSpool(cfg)
	if err != nil {
		// No order can be kept, and nothing can be kept for later: try once.
		return errors.Join(err, to.post(ctx, item))
	}
	defer s.close()
	return s.send(ctx, to, item)
}

// keep leaves an item in the spool that cannot be delivered for a reason.
func (c Config) keep(item HookItem, reason error) error {
	s, err := openSpool(c)
	if err != nil {
		return errors.Join(reason, err)
	}
	defer s.close()
	if _, err := s.append(item); err != nil {
		return errors.Join(reason, err)
	}
	return fmt.Errorf("%w: %w", ErrWaiting, reason)
}

// readAll reads an object to its end, and no more of it than is allowed.
func readAll(in io.Reader) ([]byte, error) {
	var text bytes.Buffer
	n, err := io.Copy(&text, io.LimitReader(in, MaxObject+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the object: %w", err)
	}
	if n > MaxObject {
		// The agent writes to the end before it goes on.
		_, err := io.Copy(io.Discard, in)
		return nil, errors.Join(ErrTooLong, err)
	}
	return text.Bytes(), nil
}

// item maps an object. An object that has no meaning gives an item without signals.
func (c Config) item(text []byte, at time.Time) (HookItem, error) {
	var key [16]byte
	c.Random(key[:])
	live, err := hooks.Live(text, hooks.Arrival{
		At: recording.Instant(at.UnixNano()), Key: hex.EncodeToString(key[:]), Source: c.Source,
	})
	if err != nil || len(live.Signals) == 0 {
		return HookItem{}, err
	}
	list := []byte{'['}
	for i, sig := range live.Signals {
		if i > 0 {
			list = append(list, ',')
		}
		list = sig.AppendJSON(list)
	}
	name := c.Split.Part(cmp.Or(c.Session, live.Agent), live.Signals[0], at)
	return HookItem{Session: name, Key: live.Key, Signals: append(list, ']')}, nil
}
