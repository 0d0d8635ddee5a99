package variant

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// droppedData is the data of the entry in the place of a dropped one.
var droppedData = session.AppendWord(nil, session.WordDropped, signal.NewObject(0).Value())

// New returns the variant of parent with changes. It keeps the slices of c. Errors:
// [ErrChange] for changes that the parent does not admit, such as a change of an entry that
// it does not have, data of another kind, or a declaration that would not come into force;
// those of reading, and of ctx.
func New(ctx context.Context, parent replay.Source, c Edits) (*Variant, error) {
	b := builder{parent: parent, last: parent.Head().Seq, points: map[eventlog.Seq]*point{}}
	if c.Until > b.last {
		return nil, impossible("the session cannot end with entry %d: the last one is %d", c.Until, b.last)
	}
	if c.Until > 0 {
		b.last = c.Until
	}
	for _, step := range []func(context.Context, *Edits) error{b.set, b.drop, b.swap, b.insert, b.define, b.policy} {
		if err := step(ctx, &c); err != nil {
			return nil, err
		}
	}
	v := &Variant{parent: parent, until: b.last, points: b.ordered()}
	return v, v.measure(ctx)
}

func impossible(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrChange, fmt.Errorf(format, args...))
}

// builder collects the points of a variant.
type builder struct {
	parent replay.Source
	last   eventlog.Seq // of the parent that the variant has
	points map[eventlog.Seq]*point
}

// change returns the point at an entry that is to be set, dropped or swapped.
func (b *builder) change(seq eventlog.Seq) (*point, error) {
	if seq < 1 || seq > b.last {
		return nil, impossible("there is no entry %d to change: the entries are 1 to %d", seq, b.last)
	}
	p := b.point(seq)
	if p.set != nil || p.drop {
		return nil, impossible("entry %d is changed twice", seq)
	}
	return p, nil
}

func (b *builder) point(seq eventlog.Seq) *point {
	p := b.points[seq]
	if p == nil {
		p = &point{seq: seq}
		b.points[seq] = p
	}
	return p
}

// entry reads one entry of the parent.
func (b *builder) entry(ctx context.Context, seq eventlog.Seq) (eventlog.Entry, error) {
	for e, err := range b.parent.Entries(ctx, seq) {
		if err != nil {
			return e, fmt.Errorf("variant: read entry %d: %w", seq, err)
		}
		return e, nil
	}
	return eventlog.Entry{}, fmt.Errorf("variant: read entry %d: %w", seq, cmp.Or(ctx.Err(), eventlog.ErrCorrupt))
}

func (b *builder) set(ctx context.Context, c *Edits) error {
	for _, seq := range slices.Sorted(maps.Keys(c.Set)) {
		p, err := b.change(seq)
		if err != nil {
			return err
		}
		e, err := b.entry(ctx, seq)
		if err != nil {
			return err
		}
		p.set = &eventlog.Draft{Kind: e.Kind, At: e.At, Data: c.Set[seq]}
		if err := check(p.set); err != nil {
			return impossible("entry %d cannot be set: %w", seq, err)
		}
		if err := sameEpisode(&e, c.Set[seq]); err != nil {
			return impossible("entry %d cannot be set: %w", seq, err)
		}
		if seq == 1 && session.RulesOf(&e) != session.RulesOf(&eventlog.Entry{Seq: 1, Kind: e.Kind, Data: p.set.Data}) {
			return impossible("entry 1 cannot be set to one of other rules")
		}
	}
	return nil
}

// sameEpisode refuses an episode in the place of one with another id: the recorded events of
// the director name that one.
func sameEpisode(e *eventlog.Entry, data []byte) error {
	was, err := session.DeclarationOf(e)
	if err != nil || was.Word() != episode.Word {
		return nil //nolint:nilerr // it declares no episode
	}
	now, err := session.DeclarationOf(&eventlog.Entry{Seq: e.Seq, Kind: e.Kind, At: e.At, Data: data})
	switch {
	case err != nil:
		return err
	case now.Word() != episode.Word || now.Name() != was.Name():
		return fmt.Errorf("it declares the episode %q, which the events of the director name; keep its id", was.Name())
	}
	return nil
}

// check returns why no session can have a draft, by its form.
func check(d *eventlog.Draft) (err error) {
	switch d.Kind {
	case eventlog.KindSignal:
		_, err = signal.Decode(d.Data)
	case eventlog.KindEffect, eventlog.KindBeat, eventlog.KindDefine, eventlog.KindSession:
		_, _, err = session.SplitWord(d.Data)
	default:
		err = fmt.Errorf("%w: no kind %v", eventlog.ErrInvalid, d.Kind)
	}
	if err == nil && d.At < 0 {
		err = fmt.Errorf("%w: the session time %v is negative", eventlog.ErrInvalid, d.At)
	}
	return err
}

func (b *builder) drop(_ context.Context, c *Edits) error {
	for _, seq := range c.Drop {
		p, err := b.change(seq)
		if err != nil {
			return err
		}
		if seq == 1 {
			return impossible("entry 1 cannot be dropped: it opens the session")
		}
		p.drop = true
	}
	return nil
}

func (b *builder) swap(ctx context.Context, c *Edits) error {
	for _, seq := range c.Swap {
		if seq < 2 || seq >= b.last {
			return impossible("entry %d cannot be swapped with the one behind it: it is 2 to %d", seq, b.last-1)
		}
		first, err := b.change(seq)
		if err != nil {
			return err
		}
		second, err := b.change(seq + 1)
		if err != nil {
			return err
		}
		var pair []eventlog.Entry
		for e, err := range b.parent.Entries(ctx, seq) {
			if err != nil {
				return fmt.Errorf("variant: read entry %d: %w", seq, err)
			}
			if pair = append(pair, e); len(pair) == 2 {
				break
			}
		}
		if len(pair) < 2 {
			return fmt.Errorf("variant: read entry %d: %w", seq+1, cmp.Or(ctx.Err(), eventlog.ErrCorrupt))
		}
		first.set = &eventlog.Draft{Kind: pair[1].Kind, At: pair[0].At, Data: pair[1].Data}
		second.set = &eventlog.Draft{Kind: pair[0].Kind, At: pair[1].At, Data: pair[0].Data}
	}
	return nil
}

func (b *builder) insert(ctx context.Context, c *Edits) error {
	for _, in := range c.Insert {
		if in.Before < 2 || in.Before > b.last+1 {
			return impossible("nothing can be inserted before entry %d: it is 2 to %d", in.Before, b.last+1)
		}
		if len(in.Drafts) == 0 {
			continue
		}
		front, err := b.entry(ctx, in.Before-1)
		if err != nil {
			return err
		}
		behind := eventlog.Entry{At: 1<<63 - 1}
		if in.Before <= b.last {
			if behind, err = b.entry(ctx, in.Before); err != nil {
				return err
			}
		}
		p := b.point(in.Before)
		from := front.At
		if n := len(p.insert); n > 0 {
			from = p.insert[n-1].At
		}
		for i, d := range in.Drafts {
			if err := check(&d); err != nil {
				return impossible("draft %d before entry %d: %w", i+1, in.Before, err)
			}
			d.At = min(max(d.At, from), behind.At)
			from = d.At
			p.insert = append(p.insert, d)
		}
	}
	return nil
}

// ordered returns the points in their order, each with the digest of all up to it.
func (b *builder) ordered() []point {
	points := make([]point, 0, len(b.points))
	for _, seq := range slices.Sorted(maps.Keys(b.points)) {
		points = append(points, *b.points[seq])
	}
	var shift eventlog.Seq
	var digest eventlog.Hash
	var buf []byte
	for i := range points {
		p := &points[i]
		shift += eventlog.Seq(len(p.insert))
		buf = append(buf[:0], digest[:]...)
		buf = fmt.Appendf(buf, "%d %t %d\n", p.seq, p.drop, len(p.insert))
		for _, d := range p.insert {
			buf = appendDraft(buf, &d)
		}
		if p.set != nil {
			buf = appendDraft(buf, p.set)
		}
		digest = sha256.Sum256(buf)
		p.shift, p.digest = shift, digest
	}
	return points
}

func appendDraft(dst []byte, d *eventlog.Draft) []byte {
	body := chain.AppendBody(nil, d, "")
	return append(fmt.Appendf(dst, "%d\n", len(body)), body...)
}

// measure sets the Head.
func (v *Variant) measure(ctx context.Context) error {
	parent := v.parent.Head()
	if v.until != parent.Seq {
		b := builder{parent: v.parent}
		e, err := b.entry(ctx, v.until)
		if err != nil {
			return err
		}
		parent = e.Head()
	}
	v.head = parent
	n := len(v.points)
	if n == 0 {
		return nil
	}
	p := &v.points[n-1]
	v.head.Seq += p.shift
	inserted := 0
	if p.seq > v.until {
		inserted = len(p.insert)
	}
	v.head.Hash = hashOf(p.digest, parent.Hash, inserted)
	return nil
}
