package eventlog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// ErrLost is the error of Open for a store that holds less than was acknowledged;
// see [LossError].
var ErrLost = errors.New("eventlog: acknowledged entries are missing")

// Loss describes the entries that one session lost.
type Loss struct {
	// Session is the session's name; when the record of a name longer than 119
	// bytes is lost as well, its beginning.
	Session string

	// Have is the present end of the session.
	Have Head

	// Noted is the newest entry that was noted as durable. It is zero when the
	// loss is known from the write-ahead log alone.
	Noted Head

	// Seen is the Seq of the newest entry whose batch was found behind the place
	// where the write-ahead log breaks; zero when none was.
	Seen Seq
}

func (l *Loss) String() string {
	switch last := max(l.Noted.Seq, l.Seen); {
	case last <= l.Have.Seq:
		return fmt.Sprintf("entry %d of session %q is not the one that was noted as durable", l.Noted.Seq, l.Session)
	case l.Have.Seq == 0:
		return fmt.Sprintf("session %q with %d entries is gone", l.Session, last)
	default:
		return fmt.Sprintf("session %q ends with entry %d, entry %d was written", l.Session, l.Have.Seq, last)
	}
}

// maxLosses bounds the sessions that a [LossError] lists.
const maxLosses = 1000

// LossError describes the entries that a store lost. It matches [ErrLost].
type LossError struct {
	// File is the name of the file of the write-ahead log that breaks, and
	// Offset the place where its intact records end. File is empty when every
	// file of the write-ahead log that is there is whole.
	File   string
	Offset int64

	// Last and At name the last batch in front of that place: its session and its
	// last entry. Last is empty when there is none.
	Last string
	At   Seq

	// Losses are the sessions that are known to have lost entries, in the order
	// they were begun; More counts those that are not listed.
	Losses []Loss
	More   int
}

func (e *LossError) Error() string {
	var b strings.Builder
	b.WriteString(ErrLost.Error())
	separator := ": "
	part := func(format string, args ...any) {
		b.WriteString(separator)
		fmt.Fprintf(&b, format, args...)
		separator = "; "
	}
	const most = 3
	for i := range min(len(e.Losses), most) {
		part("%s", &e.Losses[i])
	}
	if more := e.More + len(e.Losses) - most; more > 0 {
		part("%d more sessions lost entries", more)
	}
	if e.File != "" {
		part("%s breaks at byte %d", e.File, e.Offset)
		if e.Last != "" {
			fmt.Fprintf(&b, ", behind entry %d of session %q", e.At, e.Last)
		}
	}
	return b.String()
}

func (e *LossError) Unwrap() error { return ErrLost }

// of returns the loss of a session, or nil.
func (e *LossError) of(name string) *Loss {
	if e == nil {
		return nil
	}
	for i := range e.Losses {
		if e.Losses[i].Session == name {
			return &e.Losses[i]
		}
	}
	return nil
}

// Loss returns the loss that was found when the store was opened read-only or with
// [Config.AcceptLoss], or nil.
func (l *Log) Loss() *LossError { return l.loss }

// Doubts returns the reasons, for people, why a loss at the end of the store could
// have escaped notice: the noted heads are missing or damaged.
func (l *Log) Doubts() []string { return l.doubts }

// lostFault returns the fault of a session whose chain is whole up to end, but whose
// last entries were lost; nil if none were.
func (l *Log) lostFault(name string, end Head) *verify.Fault {
	loss := l.loss.of(name)
	if loss == nil || l.cfg.AcceptLoss {
		return nil
	}
	last := max(loss.Noted.Seq, loss.Seen)
	if last <= end.Seq {
		return &verify.Fault{Seq: loss.Noted.Seq, Kind: verify.FaultAltered, Detail: fmt.Sprintf("its hash is not the noted %v", loss.Noted.Hash)}
	}
	how := "was found behind the break of the write-ahead log"
	if loss.Noted.Seq == last {
		how = "was noted as durable"
	}
	return &verify.Fault{Seq: end.Seq + 1, Kind: verify.FaultMissing, Detail: fmt.Sprintf("the log ends with entry %d, entry %d %s", end.Seq, last, how)}
}

// lostReport returns the report on a session that lost all its entries, or nil.
func (l *Log) lostReport(name string) *verify.SessionReport {
	begin := Head{Hash: Genesis(name)}
	if f := l.lostFault(name, begin); f != nil {
		return &verify.SessionReport{Session: name, Head: begin, Fault: f}
	}
	return nil
}
