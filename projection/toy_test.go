package projection_test

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// counter counts entries and their bytes.
type counter struct{ entries, bytes uint64 }

func (c *counter) Apply(e *eventlog.Entry) { c.entries++; c.bytes += uint64(len(e.Data)) }
func (c *counter) Advance(time.Duration)   {}
func (c *counter) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, c.entries), c.bytes)
}

func (c *counter) View() any {
	return map[string]any{"entries": int64(c.entries), "bytes": int64(c.bytes)}
}

func restoreCounter(b []byte) (projection.State, error) {
	if len(b) != 16 {
		return nil, errors.New("want 16 bytes")
	}
	return &counter{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}

// alarm rings some milliseconds after each entry, as many as the entry's first byte,
// and hashes the number of rings before each entry.
type alarm struct {
	due           []time.Duration // in the order of the entries
	rung, latency int64
	calls         []string // not part of the state
}

func (a *alarm) Apply(e *eventlog.Entry) {
	a.calls = append(a.calls, "apply")
	a.latency = a.latency*31 + a.rung
	if len(e.Data) > 0 {
		a.due = append(a.due, e.At+time.Duration(e.Data[0])*time.Millisecond)
	}
}

func (a *alarm) Advance(at time.Duration) {
	a.calls = append(a.calls, "advance "+at.String())
	kept := a.due[:0]
	for _, d := range a.due {
		if d <= at {
			a.rung++
		} else {
			kept = append(kept, d)
		}
	}
	a.due = kept
}

func (a *alarm) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(a.rung))
	dst = binary.BigEndian.AppendUint64(dst, uint64(a.latency))
	for _, d := range a.due {
		dst = binary.BigEndian.AppendUint64(dst, uint64(d))
	}
	return dst
}

func (a *alarm) View() any {
	return map[string]any{"rung": a.rung, "waiting": int64(len(a.due))}
}

func restoreAlarm(b []byte) (projection.State, error) {
	if len(b) < 16 || len(b)%8 != 0 {
		return nil, errors.New("want whole numbers")
	}
	a := &alarm{rung: int64(binary.BigEndian.Uint64(b)), latency: int64(binary.BigEndian.Uint64(b[8:]))}
	for b = b[16:]; len(b) > 0; b = b[8:] {
		a.due = append(a.due, time.Duration(binary.BigEndian.Uint64(b)))
	}
	return a, nil
}

var toys = projection.Set{
	{Name: "counter", Version: 1, New: func() projection.State { return new(counter) }, Restore: restoreCounter},
	{Name: "alarm", Version: 3, New: func() projection.State { return new(alarm) }, Restore: restoreAlarm},
}
