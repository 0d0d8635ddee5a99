package writer

import (
	"log/slog"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/statecodec"
	"github.com/sajou-dev/sajou-go/session"
)

// A noted position lets a session be opened without a fold. It is an array:
//
//	version, rules, seq, hash, authority, has origin, origin (ns), reacts
//
// Rules is the number of the program that noted it, because another program may react
// to other entries.
const (
	positionVersion = 1
	positionFields  = 8
)

// appendPosition appends the bytes of a position.
func appendPosition(dst []byte, p *position) []byte {
	dst = msgp.AppendArrayHeader(dst, positionFields)
	dst = msgp.AppendInt(dst, positionVersion)
	dst = msgp.AppendInt(dst, session.Rules)
	dst = msgp.AppendUint64(dst, uint64(p.head.Seq))
	dst = msgp.AppendString(dst, p.head.Hash.String())
	dst = msgp.AppendString(dst, string(p.Time.Authority))
	dst = msgp.AppendBool(dst, p.Time.HasOrigin)
	dst = msgp.AppendInt64(dst, p.Time.Origin)
	return msgp.AppendBool(dst, p.reacts)
}

// readPosition reads what appendPosition has written. It returns false for the
// position of another head, and for bytes that this program would not write.
func readPosition(data []byte, head eventlog.Head) (p position, ok bool) {
	r := statecodec.Reader{Rest: data}
	r.Fields(positionFields, "a position")
	version, rules := r.Int(), r.Int()
	p.head.Seq = eventlog.Seq(r.Uint())
	hash := r.Text()
	p.Time.Authority = session.TimeAuthority(r.Text())
	p.Time.HasOrigin = r.Bool()
	p.Time.Origin = r.Int()
	p.reacts = r.Bool()
	if r.End() != nil || version != positionVersion || rules != session.Rules || hash != head.Hash.String() {
		return p, false
	}
	p.head.Hash = head.Hash
	return p, p.head == head && (p.Time.Authority == "" || p.Time.Authority.Valid())
}

// position completes a position, whose head and time of the newest entry are set, by
// the noted one. It returns false if none is noted for that head.
func (g *Group) position(name string, p *position) bool {
	if g.cfg.Snapshots == nil {
		return false
	}
	data, err := g.cfg.Snapshots.Note(name)
	if err != nil || data == nil {
		return false // a note only saves time
	}
	noted, ok := readPosition(data, p.head)
	if ok {
		p.Time, p.reacts = noted.Time, noted.reacts
	}
	return ok
}

// NotePositions stores the positions of all sessions that have moved on, so that the
// next writer can open them without a fold. It is called once, when nothing can be
// appended any more and before the snapshots are closed.
func (g *Group) NotePositions() {
	if g.cfg.Snapshotter == nil {
		return
	}
	notes := map[string][]byte{}
	g.mu.Lock()
	for _, w := range g.writers {
		if p := &w.next; p.head != w.noted && p.head == w.log.Head() && w.broken.Load() == nil {
			notes[w.Name()] = appendPosition(nil, p)
		}
	}
	g.mu.Unlock()
	if err := g.cfg.Snapshots.PutNotes(notes); err != nil {
		g.cfg.Logger.Debug("the positions of sessions are not noted; opening them takes longer", slog.Any("err", err))
	}
}
