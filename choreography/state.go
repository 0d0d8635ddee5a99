package choreography

import (
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/choreography/definition"
)

// stateVersion is the first element of a state. It changes with the format and with
// every change of rules under which old bytes would continue differently.
const stateVersion = 2

// AppendState appends the whole state of s to dst: canonical bytes, equal for
// equal histories however time was cut. They are one MessagePack array:
//
//	[version, now, catalog, definitions, retired, cues, performances]
//	[version, now, catalog, definitions, retired, cues, performances, refused, skipped]
//
//	now           session time in ns
//	catalog       [[word, value]…], what is in force by name, in the order of
//	              [language.Catalog.All]
//	definitions   [definition…] in force, in order, with all declarations that
//	              they refer to by name written into them
//	retired       [definition…] that were replaced and are still performed, in
//	              order of their first use
//	cues          [[seq, correlationId or nil, payload]…], the signals of
//	              active performances in order of their first use; where
//	              matching has a cost, a fourth field holds it
//	performances  [[seq, index, definition, cue, handler, began, waiting,
//	              cursor]…] in creation order; definition and cue count from
//	              0, retired definitions after those in force
//	waiting       whether it waits for the names of its guard. If not, it
//	              holds them, unless it is a handler. The names follow from
//	              definition and cue, the order of the waiting from creation
//	              order
//	cursor        [node] done or not begun; [node, phase, since] inside an
//	              action or wait; [node, phase, cursor…] in a group
//	refused       declarations that the budget has kept out of force
//	skipped       performances that [MaxUnderWay] has prevented; both are left
//	              out if both are 0
//
// Sink, observer and stage are not part of it.
func (s *Scheduler) AppendState(dst []byte) []byte {
	fields := uint32(7)
	if s.refused > 0 || s.skipped > 0 {
		fields = 9
	}
	dst = msgp.AppendArrayHeader(dst, fields)
	dst = msgp.AppendInt(dst, stateVersion)
	dst = msgp.AppendInt64(dst, s.now)
	var declared uint32
	for range s.catalog.All() {
		declared++
	}
	dst = msgp.AppendArrayHeader(dst, declared)
	for d := range s.catalog.All() {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendString(dst, d.Word())
		dst = append(dst, d.Value()...)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(s.registry.all)))
	for _, d := range s.registry.all {
		dst = append(dst, d.Value()...)
	}

	// Cues and retired definitions get their numbers at their first use.
	var (
		cues    []*cue
		retired []*definition.Definition
		numbers map[*definition.Definition]uint32
	)
	for p := s.first; p != nil; p = p.next {
		if !p.cue.numbered {
			p.cue.numbered, p.cue.number = true, uint32(len(cues))
			cues = append(cues, p.cue)
		}
		if s.registry.has(p.def, p.slot) {
			continue
		}
		if _, numbered := numbers[p.def]; !numbered {
			if numbers == nil {
				numbers = make(map[*definition.Definition]uint32)
			}
			numbers[p.def] = uint32(len(s.registry.all) + len(retired))
			retired = append(retired, p.def)
		}
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(retired)))
	for _, d := range retired {
		dst = append(dst, d.Value()...)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(cues)))
	for _, c := range cues {
		if c.matching > 0 {
			dst = msgp.AppendArrayHeader(dst, 4)
		} else {
			dst = msgp.AppendArrayHeader(dst, 3)
		}
		dst = msgp.AppendUint64(dst, c.seq)
		if c.correlated {
			dst = msgp.AppendString(dst, c.correlationID)
		} else {
			dst = msgp.AppendNil(dst)
		}
		if len(c.resolver.Payload) > 0 {
			dst = append(dst, c.resolver.Payload...)
		} else {
			dst = msgp.AppendNil(dst)
		}
		if c.matching > 0 {
			dst = msgp.AppendInt(dst, c.matching)
		}
	}

	dst = msgp.AppendArrayHeader(dst, uint32(s.active))
	for p := s.first; p != nil; p = p.next {
		definition := uint32(p.slot)
		if retired != nil && !s.registry.has(p.def, p.slot) {
			definition = numbers[p.def]
		}
		dst = msgp.AppendArrayHeader(dst, 8)
		dst = msgp.AppendUint64(dst, p.seq)
		dst = msgp.AppendUint32(dst, p.index)
		dst = msgp.AppendUint32(dst, definition)
		dst = msgp.AppendUint32(dst, p.cue.number)
		dst = msgp.AppendBool(dst, p.handler)
		dst = msgp.AppendInt64(dst, p.began)
		dst = msgp.AppendBool(dst, p.waiting)
		dst = p.root.append(dst)
	}
	if fields == 9 {
		dst = msgp.AppendUint64(dst, s.refused)
		dst = msgp.AppendUint64(dst, s.skipped)
	}
	for _, c := range cues {
		c.numbered = false
	}
	return dst
}

func (c *cursor) append(dst []byte) []byte {
	switch {
	case c.phase == phaseFresh:
		dst = msgp.AppendArrayHeader(dst, 1)
		return msgp.AppendInt32(dst, c.node)
	case c.phase != phaseGroup:
		dst = msgp.AppendArrayHeader(dst, 3)
	default:
		dst = msgp.AppendArrayHeader(dst, uint32(2+len(c.kids)))
	}
	dst = msgp.AppendInt32(dst, c.node)
	dst = msgp.AppendUint8(dst, uint8(c.phase))
	if c.phase != phaseGroup {
		return msgp.AppendInt64(dst, c.since)
	}
	for i := range c.kids {
		dst = c.kids[i].append(dst)
	}
	return dst
}
