package ingest

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// MismatchError reports that an ingestion of the given definitions and signals would
// not have recorded the entries of a session. Nothing was recorded.
type MismatchError struct{ Reason string }

func (e *MismatchError) Error() string { return "ingest: " + e.Reason + "; nothing was recorded" }

func mismatch(format string, args ...any) error { return &MismatchError{fmt.Sprintf(format, args...)} }

// recordedSignals are the signals of a session whose ingestion is resumed, in
// order. The nil value has none.
type recordedSignals struct {
	pull func() (eventlog.Entry, error, bool)
	stop func()
	seq  eventlog.Seq // of the entry that next returned
	over bool         // next has returned the last one
}

// recordedOf returns the signals that an ingestion of definitions has recorded.
// It refuses a session that no ingestion of these definitions has made.
func recordedOf(ctx context.Context, log *eventlog.SessionReader, definitions []language.Declaration) (*recordedSignals, error) {
	defined := 0
	for e, err := range log.Entries(ctx, 1) {
		if err != nil {
			return nil, err
		}
		switch e.Kind {
		case eventlog.KindSession:
			continue
		case eventlog.KindSignal:
			if sig, err := signal.Decode(e.Data); err == nil && sig.Type == recording.TypeEnd {
				return nil, mismatch("entry %d of %q says that the recording is complete", e.Seq, log.Name())
			}
			continue
		case eventlog.KindDefine:
			if defined < len(definitions) && isDefinition(&e, definitions[defined]) {
				defined++
				continue
			}
		default:
		}
		return nil, mismatch("entry %d of %q is not what an import with these definitions records", e.Seq, log.Name())
	}
	if defined < len(definitions) {
		return nil, mismatch("%q has %d of the %d definitions", log.Name(), defined, len(definitions))
	}
	pull, stop := iter.Pull2(log.Entries(ctx, 1))
	return &recordedSignals{pull: pull, stop: stop}, nil
}

func isDefinition(e *eventlog.Entry, want language.Declaration) bool {
	d, err := session.DeclarationOf(e)
	return err == nil && d.Word() == want.Word() && bytes.Equal(d.Value(), want.Value())
}

// next returns the data of the next recorded signal, nil after the last.
func (s *recordedSignals) next() ([]byte, error) {
	for s != nil && !s.over {
		e, err, more := s.pull()
		if err != nil {
			return nil, err
		}
		if s.over = !more; more && e.Kind == eventlog.KindSignal {
			s.seq = e.Seq
			return e.Data, nil
		}
	}
	return nil, nil
}

// has reports whether a signal is the next recorded one. False means that all
// recorded signals came before it; the error is a [MismatchError] if another
// signal was recorded in its place.
func (s *recordedSignals) has(sig *signal.Signal) (bool, error) {
	data, err := s.next()
	if data == nil || err != nil {
		return false, err
	}
	recorded, err := signal.Decode(data)
	if err != nil {
		return false, &eventlog.EntryError{Seq: s.seq, Op: "compare", Err: err}
	}
	same := *sig
	same.Problem = recorded.Problem // depends on the schema of that time, not on the signal
	if !bytes.Equal(same.Append(nil), data) {
		return false, mismatch("the signal differs from entry %d of the session", s.seq)
	}
	return true, nil
}

// checkResumed refuses a session that has more signals than the sources.
func (r *Recorder) checkResumed() error {
	left, err := r.resumed.next()
	if left == nil && err == nil {
		return nil
	}
	r.mismatch = true
	if err != nil {
		return err
	}
	return mismatch("the session has more signals than the files, from entry %d on", r.resumed.seq)
}
