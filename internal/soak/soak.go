package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/server"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/server/record"
	"github.com/sajou-dev/sajou-go/signal"
)

// The sessions of a run.
const (
	openSession   = "open"   // every client may use it
	hiddenSession = "hidden" // holds the text secret; most clients may not know of it
	worldSession  = "world"  // of two agents, of which one is out of sight and says the text secret
)

// secret is in what is hidden from most clients.
const secret = "the-key-is-under-the-third-stone"

// The bounds within which the process has to return to what it was. Caches of the store
// and of the runtime grow for a while.
const (
	moreGoroutines = 4
	moreFiles      = 16
	moreHeap       = 64 << 20 // bytes
	returnWithin   = 30 * time.Second
	slowest        = 30 * time.Second // that all kinds of clients may be to complete an act
)

// usage is what the process holds.
type usage struct {
	goroutines int
	files      int // without the tables of the store
	heap       uint64
}

func used() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{goroutines: runtime.NumGoroutine(), heap: m.HeapAlloc}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return u // elsewhere files are not counted
	}
	for _, file := range list {
		// The store keeps a bounded number of its tables open, the more the larger it is.
		if name, _ := os.Readlink("/proc/self/fd/" + file.Name()); filepath.Ext(name) != ".sst" {
			u.files++
		}
	}
	return u
}

// within reports whether u has returned to what was before.
func (u usage) within(before usage) bool {
	return u.goroutines <= before.goroutines+moreGoroutines && u.files <= before.files+moreFiles && u.heap <= before.heap+moreHeap
}

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %d files, %.1f MiB of heap", u.goroutines, u.files, float64(u.heap)/(1<<20))
}

// report is the outcome of a run.
type report struct {
	length        time.Duration
	before, after usage
	receipts      int            // acknowledgements that were compared with the log
	acts          map[string]int // completed acts, by kind of client
}

func (r report) String() string {
	return fmt.Sprintf("%v; acts: %v; %d acknowledged heads are in the log\nbefore: %v\nafter:  %v", r.length, r.acts, r.receipts, r.before, r.after)
}

// receipt is the place that an acknowledgement told.
type receipt struct {
	session string
	head    eventlog.Head
}

// soak is one run.
type soak struct {
	address string
	token   string // may record into and read the open session, and act as one agent

	mu       sync.Mutex
	receipts []receipt      // guarded by mu
	acts     map[string]int // guarded by mu
	faults   []error        // what must not happen; guarded by mu
}

// keep notes an acknowledgement.
func (s *soak) keep(session string, seq uint64, hash string) {
	head, err := eventlog.ParseHead(fmt.Sprintf("%d:%s", seq, hash))
	if err != nil {
		s.fault(fmt.Errorf("an acknowledgement without a head: %w", err))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receipts = append(s.receipts, receipt{session, head})
}

// maxFaults bounds the faults that are listed.
const maxFaults = 20

func (s *soak) fault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, err)
	}
}

// act counts a completed act, and returns the number of kinds that have completed one.
func (s *soak) act(kind string) (kinds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acts[kind]++
	return len(s.acts)
}

// run runs the clients for a time and checks what they left.
func run(ctx context.Context, length time.Duration) (r report, err error) {
	dir, err := os.MkdirTemp("", "sajou-soak-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	token, err := tokens(filepath.Join(dir, "tokens"))
	if err != nil {
		return r, err
	}
	eng, err := sajou.Open(filepath.Join(dir, "store"), sajou.Config{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	if err := population(ctx, eng); err != nil {
		return r, err
	}
	srv, err := server.New(eng, server.Config{
		Access: access.Config{Tokens: filepath.Join(dir, "tokens"), Loopback: []access.Scope{}},
		Limits: limit.Config{Rate: -1, UnknownRate: -1}, Record: record.Config{Stall: time.Second},
		HeaderTimeout: time.Second, BodyTimeout: 2 * time.Second, IdleTimeout: 2 * time.Second,
	})
	if err != nil {
		return r, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(serving, l) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()

	s := &soak{address: l.Addr().String(), token: token, acts: map[string]int{}}
	r.length = length
	// The first clients allocate what lasts for the whole run.
	s.clients(ctx, eng, length/10)
	r.before = used()
	s.clients(ctx, eng, length-length/10)
	r.receipts, r.acts = len(s.receipts), s.acts
	err = errors.Join(append(s.faults, check(ctx, eng, s.receipts))...)
	s.receipts = nil
	for deadline := time.Now().Add(returnWithin); ; {
		if r.after = used(); r.after.within(r.before) {
			return r, err
		}
		if time.Now().After(deadline) {
			return r, errors.Join(err, fmt.Errorf("the process has not returned to what it was: %v, before %v", r.after, r.before))
		}
		<-time.After(100 * time.Millisecond)
	}
}

// tokens writes the file of the access tokens, and returns the text of the one that the
// clients have.
func tokens(path string) (string, error) {
	text, token, err := access.NewToken(rand.Reader, "client", []access.Grant{
		{Scope: access.ScopeRecord, Sessions: []string{openSession}},
		{Scope: access.ScopeRead, Sessions: []string{openSession}},
		{Scope: access.ScopeAct, Sessions: []string{worldSession}, Agent: "near"},
	}, time.Now(), time.Time{})
	if err != nil {
		return "", err
	}
	return text, access.ChangeTokens(path, func(list []access.AccessToken) ([]access.AccessToken, error) {
		return access.AddToken(list, token, time.Now())
	})
}

// population begins the sessions.
func population(ctx context.Context, eng *sajou.Engine) error {
	for _, name := range []string{openSession, hiddenSession} {
		ses, err := eng.Session(ctx, name)
		if err != nil {
			return err
		}
		if _, err := ses.Signal(ctx, note(name+" "+secret, name == hiddenSession)); err != nil {
			return err
		}
	}
	ses, err := eng.Session(ctx, worldSession)
	if err != nil {
		return err
	}
	world := ses.Agents()
	if err := world.Configure(ctx, value(`{"cooldowns":"off","quota_intents_per_minute":-1,"quota_tokens_per_minute":-1,"staleness_threshold":1000000000,"max_queue_depth":1000}`)); err != nil {
		return err
	}
	if err := world.Begin(ctx, value(`{"entities":{"near":{"type":"agent"},"far":{"type":"agent"}},"relationships":{},"spatial_index":{"near":[0,0,0],"far":[900,0,0]}}`)); err != nil {
		return err
	}
	for _, agent := range []string{"near", "far"} {
		if _, err := world.Register(ctx, agent, value(`{"distance_limit":50}`)); err != nil {
			return err
		}
	}
	return nil
}

// note returns a signal. Its text is recorded if it is given.
func note(text string, given bool) *signal.Signal {
	if !given {
		text = "hello"
	}
	sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"n","type":"note","timestamp":%d,"source":"soak","payload":{"text":%q}}`, time.Now().UnixMilli(), text))
	if err != nil {
		panic(err) // the text is ours
	}
	return sig
}

func value(text string) signal.Value {
	v, err := signal.ParseValue([]byte(text))
	if err != nil {
		panic(err) // the texts are ours
	}
	return v
}

// check compares the acknowledged heads with the log, and verifies the log.
func check(ctx context.Context, eng *sajou.Engine, receipts []receipt) error {
	var faults []error
	for _, name := range []string{openSession, hiddenSession, worldSession} {
		verified, err := eng.Log().Verify(ctx, name, verify.Options{})
		if err == nil && verified.Fault != nil {
			err = fmt.Errorf("%v", verified.Fault)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("session %q: %w", name, err))
		}
	}
	log, err := eng.Log().Session(openSession)
	if err != nil {
		return err
	}
	hashes := make([]eventlog.Hash, log.Head().Seq+1)
	for e, err := range log.Entries(ctx, 1) {
		if err != nil {
			return errors.Join(append(faults, err)...)
		}
		hashes[e.Seq] = e.Hash
	}
	for _, r := range receipts {
		if int(r.head.Seq) >= len(hashes) || hashes[r.head.Seq] != r.head.Hash {
			if faults = append(faults, fmt.Errorf("entry %v was acknowledged and is not in session %q", r.head, r.session)); len(faults) == maxFaults {
				break
			}
		}
	}
	return errors.Join(faults...)
}
