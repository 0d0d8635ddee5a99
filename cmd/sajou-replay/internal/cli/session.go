package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/variant"
)

// Resolve returns the moment of an address in the session.
func (t *OpenedSession) Resolve(ctx context.Context, address string) (replay.Moment, error) {
	parsed, err := ParseAddress(address)
	if err != nil {
		return replay.Moment{}, err
	}
	return t.Travel.Resolve(ctx, parsed)
}

// ParseAddress reads the address of one moment.
func ParseAddress(address string) (replay.Address, error) {
	parsed, err := replay.ParseAddress(address)
	if err != nil && strings.Contains(address, "..") {
		return parsed, Misuse("%q is a range; name one moment", address)
	}
	return parsed, err
}

// ResolveSeq returns the Seq of the address of an entry.
func (t *OpenedSession) ResolveSeq(ctx context.Context, address string) (eventlog.Seq, error) {
	m, err := t.Resolve(ctx, address)
	if err != nil {
		return 0, err
	}
	if m.Offset != 0 {
		return 0, Misuse("%s is a moment between two entries; name an entry", address)
	}
	return m.Seq, nil
}

// ResolveRange returns the first and the last Seq of a range; the empty text means
// every entry. A moment between two entries is rounded into the range.
func (t *OpenedSession) ResolveRange(ctx context.Context, text string) (from, to eventlog.Seq, err error) {
	return answer.EntryRange(ctx, t.Travel, text)
}

// MomentOf returns the moment right after entry seq.
func MomentOf(seq eventlog.Seq) replay.Moment { return replay.Moment{Seq: seq} }

// Each calls visit for every entry from one Seq to another.
func (t *OpenedSession) Each(ctx context.Context, from, to eventlog.Seq, visit func(*eventlog.Entry) error) error {
	if from > to {
		return nil
	}
	for e, err := range t.Travel.Entries(ctx, from) {
		if err != nil {
			return err
		}
		if e.Seq > to {
			break
		}
		if err := visit(&e); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// SplitArgs divides arguments into the name of a session, if they begin with one,
// and the rest. The first argument is not a name if --session is given or if it
// parses as an address or a range. An argument that begins like an address but
// does not parse is an error, and not the name of a session.
func (a *App) SplitArgs(args []string) (session string, rest []string, err error) {
	if slices.Contains(args, "") {
		return "", nil, errEmptyArgument
	}
	if len(args) == 0 || a.Session != "" {
		return "", args, nil
	}
	_, err = replay.ParseRange(args[0])
	switch {
	case err == nil:
		return "", args, nil
	case likeAddress(args[0]):
		return "", nil, err
	}
	return args[0], args[1:], nil
}

// SplitRange divides the arguments of a command that takes [SESSION] [RANGE].
func (a *App) SplitRange(cmd *cobra.Command, args []string) (session, text string, err error) {
	session, rest, err := a.SplitArgs(args)
	if err != nil {
		return "", "", err
	}
	if len(rest) > 1 {
		return "", "", Misuse("too many arguments: %q; usage: %s", rest[1], cmd.UseLine())
	}
	return session, strings.Join(rest, ""), nil
}

// errEmptyArgument refuses an empty argument. It is likely an unset variable of
// the shell, which must not mean the latest session or the last entry.
var errEmptyArgument = Misuse("an argument is empty; is a variable of the shell unset?")

// numbered matches the number of an entry, alone or with an offset.
var numbered = regexp.MustCompile(`^[0-9]+(\+.*)?$`)

func likeAddress(s string) bool {
	if numbered.MatchString(s) {
		return true
	}
	for _, prefix := range []string{"#", "@", "t:", "perf:", "corr:", "beat:", "turn:", "end+", "end-", "+", "-"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return strings.Contains(s, "..")
}

// SessionArg takes the one optional argument of a command as a session.
func (a *App) SessionArg(args []string) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	if args[0] == "" {
		return "", errEmptyArgument
	}
	if a.Session != "" && a.Session != args[0] {
		return "", Misuse("two sessions are given, %q and --session %q; omit one", args[0], a.Session)
	}
	return args[0], nil
}

// WholeStore refuses --session for a command on all sessions of a store. instead is what
// does it for one session.
func (a *App) WholeStore(cmd *cobra.Command, instead string) error {
	if a.Session == "" {
		return nil
	}
	return Misuse("%s is about all sessions of the store, and --session %q would be ignored; %s", cmd.Name(), a.Session, instead)
}

// OpenedSession is the session of a command and its store.
type OpenedSession struct {
	Engine *sajou.Engine
	Name   string
	Log    *eventlog.SessionReader
	Travel *replay.Replay

	anchors *anchors

	// changed is the session through other declarations, nil as it was recorded.
	changed *variant.Variant
}

// Close closes the store.
func (t *OpenedSession) Close() error { return t.Engine.Close() }

// OpenSession opens the store for reading, and the session of that name; the empty
// name means that of --session, or else the latest. The caller closes it.
func (a *App) OpenSession(name string) (*OpenedSession, error) {
	engine, err := a.openReading()
	if err != nil {
		return nil, err
	}
	t, err := a.OpenSessionIn(engine, name)
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return t, nil
}

// OpenArgSession is [App.OpenSession] for a command whose only argument is the
// session.
func (a *App) OpenArgSession(args []string) (*OpenedSession, error) {
	name, err := a.SessionArg(args)
	if err != nil {
		return nil, err
	}
	return a.OpenSession(name)
}

// OpenSessionIn is [App.OpenSession] in an open store. If it fails, the caller still
// closes the store.
func (a *App) OpenSessionIn(engine *sajou.Engine, name string) (*OpenedSession, error) {
	name, err := a.SessionName(engine, name)
	if err != nil {
		return nil, err
	}
	a.Opened = name
	if a.mirrored != nil {
		if err := a.mirrored.copyOf(a.ctx(), engine, name); err != nil {
			return nil, a.remoteError(err)
		}
	}
	travel, err := engine.Replay(name)
	if errors.Is(err, eventlog.ErrDeleted) {
		return nil, err
	}
	if errors.Is(err, eventlog.ErrNoSession) || errors.Is(err, eventlog.ErrInvalid) {
		names, err := a.names(engine)
		if err != nil {
			return nil, err
		}
		return nil, noSession(names, a.Place(), name)
	}
	if err != nil {
		return nil, err
	}
	log, err := engine.Log().Session(name)
	if err != nil {
		return nil, err
	}
	t := &OpenedSession{Engine: engine, Name: name, Log: log, Travel: travel, anchors: &anchors{app: a, session: name, genesis: log.Genesis().String()}}
	t.Anchor(travel)
	return t, nil
}

// SessionName returns the name of the session of a command: the given one, that of
// --session, or the latest. The session need not exist.
func (a *App) SessionName(engine *sajou.Engine, name string) (string, error) {
	if name == "" {
		name = a.Session
	}
	if name != "" {
		return name, nil
	}
	names, err := a.names(engine)
	if err == nil && len(names) == 0 {
		if a.Server != "" {
			return "", Fail(ExitNotFound, "the server at %s has no session yet", a.Server)
		}
		return "", Fail(ExitNotFound, "the store in %s has no session yet; record one with: sajou-replay import FILE", a.Store)
	}
	if err != nil {
		return "", err
	}
	return names[len(names)-1], nil
}

// NoSession returns the error for a missing session, with the nearest name, or else
// with the last few.
func NoSession(engine *sajou.Engine, store, name string) error {
	names, err := engine.Sessions()
	if err != nil {
		names = nil
	}
	return noSession(names, store, name)
}

// noSession is [NoSession] for the names of the sessions that there are.
func noSession(names []string, store, name string) error {
	const most = 5
	if len(names) == 0 {
		return Fail(ExitNotFound, "there is no session %q in %s; it has none yet", name, store)
	}
	if meant, ok := nearestSession(name, names); ok {
		return Fail(ExitNotFound, "there is no session %q in %s; did you mean %q?", name, store, meant)
	}
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[len(names)-most:]
	}
	return Fail(ExitNotFound, "there is no session %q in %s; it has %s%s", name, store, strings.Join(names, ", "), more)
}

// nearestSession returns the session that was probably meant by a name: one that is
// spelt nearly so, but for capitals, or else the latest whose name contains it or is
// contained in it.
func nearestSession(name string, names []string) (string, bool) {
	const least = 3 // letters in common
	folded := make([]string, len(names))
	for i, n := range names {
		folded[i] = strings.ToLower(n)
	}
	name = strings.ToLower(name)
	if meant, ok := spelling.Nearest(name, folded); ok {
		return names[slices.Index(folded, meant)], true
	}
	for i, n := range slices.Backward(folded) {
		if len(name) >= least && strings.Contains(n, name) || len(n) >= least && strings.Contains(name, n) {
			return names[i], true
		}
	}
	return "", false
}

// digits matches the numbers by which names of a series differ.
var digits = regexp.MustCompile(`[0-9]+`)

// RemarkNew warns that a command which adds to a session will begin it, if another
// session has nearly that name. Names that differ only in a number are of a series.
func (a *App) RemarkNew(engine *sajou.Engine, name string) error {
	names, err := engine.Sessions()
	if err != nil || slices.Contains(names, name) {
		return err
	}
	meant, ok := spelling.Nearest(name, names)
	if ok && digits.ReplaceAllString(name, "") != digits.ReplaceAllString(meant, "") {
		fmt.Fprintf(a.Stderr, "sajou-replay: %q is a new session; did you mean %q?\n", name, meant)
	}
	return nil
}

// CompleteSession completes the names of sessions for the shell, and after an at sign
// those of bookmarks.
func (a *App) CompleteSession(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if strings.HasPrefix(begun, "@") {
		return a.completeBookmark(args)
	}
	a.Wait = 0
	engine, err := a.OpenReading()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer engine.Close()
	a.Lost = nil
	names, err := engine.Sessions()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// OpenSessionAndRest opens the session of the arguments, and returns the other
// arguments.
func (a *App) OpenSessionAndRest(args []string) (*OpenedSession, []string, error) {
	session, rest, err := a.SplitArgs(args)
	if err != nil {
		return nil, nil, err
	}
	if len(rest) > 0 {
		// A malformed address is reported before the store is opened.
		if _, err := ParseAddress(rest[0]); err != nil {
			return nil, nil, err
		}
	}
	t, err := a.OpenSession(session)
	return t, rest, err
}

// Fold returns the state at an address.
func (t *OpenedSession) Fold(cmd *cobra.Command, address string) (*projection.Fold, error) {
	f, _, err := t.FoldAt(cmd.Context(), address)
	return f, err
}

// FoldAt returns the state at an address, and its moment.
func (t *OpenedSession) FoldAt(ctx context.Context, address string) (*projection.Fold, replay.Moment, error) {
	m, err := t.Resolve(ctx, address)
	if err != nil {
		return nil, m, err
	}
	f, err := t.Travel.At(ctx, m)
	return f, m, t.BehindGap(ctx, m, true, err)
}
