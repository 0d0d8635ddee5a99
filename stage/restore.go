package stage

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/curve"
	"github.com/sajou-dev/sajou-go/internal/statecodec"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Errors of [Restore].
var (
	// ErrState is the error of bytes that no stage could have written.
	ErrState = errors.New("stage: corrupt state")
	// ErrStateVersion is the error of a state of another version, or of other custom
	// actions.
	ErrStateVersion = errors.New("stage: state of other rules")
)

// Restore returns the stage whose state [Stage.Append] wrote. It trusts nothing in
// data: bytes that no stage could have written are refused with [ErrState], a state of
// another version or of other custom actions than those of cfg with [ErrStateVersion].
func Restore(cfg Config, data []byte) (*Stage, error) {
	s, err := restore(cfg, data)
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, ErrStateVersion):
		return nil, err
	default:
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
}

func restore(cfg Config, data []byte) (*Stage, error) {
	r := stateReader{Reader: statecodec.Reader{Rest: data}, s: New(cfg)}
	fields := stateFields
	if n, _, err := msgp.ReadArrayHeaderBytes(data); err == nil && n == stateFields+1 {
		fields++
	}
	if r.Begin(stateVersion, fields, ErrStateVersion); r.Err != nil {
		return nil, r.Err
	}
	s := r.s
	s.busyUntil = math.MaxInt64 // unknown until the first scan
	r.actions()
	s.now = r.time(math.MaxInt64)
	s.choreographed = r.Bool()
	switch v := r.Value(); {
	case r.Err != nil:
	case v.Kind() == signal.KindNull:
	default:
		sc, err := scene.Compile(slices.Clone(v))
		if err != nil {
			return nil, err
		}
		s.SetScene(sc)
	}
	if r.Err == nil {
		r.entities()
	}
	if r.Err == nil {
		r.acts()
	}
	if r.Err == nil {
		r.beams()
	}
	for range r.Array() {
		r.Fields(3, "a sound")
		s.sounds = append(s.sounds, Sound{At: r.time(s.now), Sound: r.Text(), Entity: r.Text()})
	}
	r.diagnostics()
	if fields > stateFields {
		r.unresolved()
	}
	switch err := r.End(); {
	case err != nil:
		return nil, err
	case len(s.sounds) > maxSounds || len(s.diagnostics.recent) > maxRecent:
		return nil, errors.New("too many sounds or diagnostics")
	}
	for a := s.firstAct; a != nil; a = a.next {
		if a.first == nil {
			return nil, errors.New("an act without a claim")
		}
	}
	return s, statecodec.Canonical(data, s.Append)
}

// stateReader reads a state.
type stateReader struct {
	statecodec.Reader

	s        *Stage
	numbered []*entity
}

// time reads an instant that is not after latest.
func (r *stateReader) time(latest time.Duration) time.Duration {
	return time.Duration(r.Between(0, int64(latest), "an instant"))
}

// textOrNil reads a text or nil.
func (r *stateReader) textOrNil() (string, bool) {
	if r.None() {
		return "", false
	}
	return r.Text(), r.Err == nil
}

// number reads a number and refuses one outside of the limits of a channel. It compares
// bits, because -0 and NaN have no canonical form in a state.
func (r *stateReader) number(ch channel) float64 {
	f := r.Float()
	if r.Err == nil && math.Float64bits(ch.bound(f)) != math.Float64bits(f) {
		r.Fail("%s %v", channelNames[ch], f)
		return 0
	}
	return f
}

func (r *stateReader) point() scene.Point {
	return scene.Point{X: r.number(channelX), Y: r.number(channelY)}
}

func (r *stateReader) run() performanceKey {
	return performanceKey{r.Uint(), uint32(r.Between(0, math.MaxUint32, "a performance's number"))}
}

// actions compares the custom actions of the state with those of the program. Other
// versions of them would continue the same acts differently.
func (r *stateReader) actions() {
	names := slices.Sorted(maps.Keys(r.s.actions))
	n := r.Array()
	same := n == len(names)
	for i := range n {
		r.Fields(2, "an action")
		name, version := r.Text(), r.Between(0, math.MaxUint32, "an action's version")
		same = same && name == names[i] && uint32(version) == r.s.actions[name].Version
	}
	if r.Err == nil && !same {
		r.Fail("%w: other custom actions", ErrStateVersion)
	}
}

// entities reads both lists. The entities of the scene were placed by SetScene.
func (r *stateReader) entities() {
	s := r.s
	for e := s.first; e != nil; e = e.next {
		r.numbered = append(r.numbered, e)
	}
	placed, last := len(r.numbered), int64(-1)
	for range r.Array() {
		r.Fields(1+int(bodyFields), "an entity")
		last = r.Between(last+1, int64(placed)-1, "entity")
		if r.Err != nil {
			return
		}
		e := r.numbered[last]
		if e.home != "" {
			s.leaveHome(e)
		}
		r.body(e)
	}
	for range r.Array() {
		r.Fields(2+int(bodyFields), "an entity")
		e := &entity{id: r.Text(), actor: r.Text(), cell: noCell}
		r.body(e)
		if r.Err != nil {
			return
		}
		for _, o := range s.names[e.id] {
			if o.id == e.id {
				r.Fail("two entities %q", e.id)
				return
			}
		}
		s.add(e)
		r.numbered = append(r.numbered, e)
	}
}

func (r *stateReader) body(e *entity) {
	s := r.s
	e.touched = true
	e.look = r.Text()
	e.label, e.labelled = r.textOrNil()
	if e.home = r.Text(); e.home != "" {
		s.taken[e.home]++
	}
	e.homeAt = r.point()
	e.cell = int32(r.Between(noCell, maxEntities, "cell"))
	if r.Err == nil && e.cell != noCell {
		for len(s.cells) <= int(e.cell) {
			s.cells = append(s.cells, false)
		}
		if s.cells[e.cell] || e.home != "" {
			r.Fail("a cell that is taken")
			return
		}
		s.cells[e.cell] = true
	}
	for ch := range e.values {
		e.values[ch] = r.number(channel(ch))
	}
	e.color = r.Text()
	e.layer = int(r.Between(0, math.MaxInt32, "layer"))
	e.visible = r.Bool()
	e.state = r.Text()
	e.words = r.words()
	e.glow, e.ray = glow{}, ray{}
	if !r.None() {
		r.Fields(2, "a glow")
		e.glow = glow{color: r.Text(), since: r.time(s.now)}
	}
	if !r.None() {
		r.Fields(4, "a ray")
		e.ray = ray{to: r.Text(), at: r.point(), since: r.time(s.now)}
	}
	e.undo = nil
	last := int64(-1)
	for range r.Array() {
		r.Fields(5, "a property")
		last = r.Between(last+1, int64(properties)-1, "property")
		u := undo{property: property(last), performance: r.run(), number: r.number(channelX), text: r.Text()}
		if r.Err != nil {
			return
		}
		e.undo = append(e.undo, u)
	}
}

// words reads a text that stays, or speech, which is an array.
func (r *stateReader) words() words {
	if r.Err != nil {
		return words{}
	}
	if msgp.NextType(r.Rest) != msgp.ArrayType {
		w := words{text: r.Text()}
		if utf8.RuneCountInString(w.text) > MaxText {
			r.Fail("a text that is too long")
		}
		return w
	}
	r.Fields(5, "speech")
	w := words{text: r.Text(), speech: true, stream: r.Bool()}
	w.runes = utf8.RuneCountInString(w.text)
	if w.runes > maxSpeech {
		r.Fail("speech that is too long")
	}
	// The lower bound is what speech without a pause could reach in all of session time.
	w.before = int(r.Between(-1<<39, int64(w.runes), "typed"))
	w.since = r.time(r.s.now)
	w.said = r.time(r.s.now)
	return w
}

// entity reads the number of an entity. Only a touched entity is in the state with its
// body, so a claim or a beam can only begin at one of those.
func (r *stateReader) entity(touched bool) *entity {
	i := r.Between(0, int64(len(r.numbered))-1, "entity")
	if r.Err != nil {
		return nil
	}
	e := r.numbered[i]
	if touched && !e.touched {
		r.Fail("an untouched entity moves")
	}
	return e
}

func (r *stateReader) acts() {
	began := time.Duration(0)
	for range r.Array() {
		r.Fields(7, "an act")
		p := r.run()
		key := choreography.ActKey{Seq: p.seq, Index: p.index, Node: int32(r.Between(0, math.MaxInt32, "node"))}
		start, duration := r.time(r.s.now), r.time(math.MaxInt64)
		curve, err := curve.Parse(r.Text())
		switch {
		case r.Err != nil:
			return
		case err != nil:
			r.Fail("%w", err)
			return
		case r.s.acts[key] != nil:
			r.Fail("a duplicate act")
			return
		case start < began:
			r.Fail("acts out of order")
			return
		}
		began = start
		a := r.s.begin(key, start, duration, curve)
		for range r.Array() {
			r.claim(a)
			if r.Err != nil {
				return
			}
		}
	}
}

func (r *stateReader) claim(a *act) {
	fields := r.Array()
	e := r.entity(true)
	k := kind(r.Between(0, int64(asCustom), "kind"))
	m := mask(r.Between(1, int64(all), "channels"))
	contested := r.time(math.MaxInt64)
	if r.Err != nil {
		return
	}
	if fields != 4+int(claimFields[k]) || !k.fits(m) {
		r.Fail("a malformed claim")
		return
	}
	for ch := range channel(channels) {
		if m.has(ch) && e.owner[ch] != nil {
			r.Fail("a channel with two owners")
			return
		}
	}
	c := r.s.claimOf(a, e)
	c.kind, c.mask, c.contested = k, m, contested
	for ch := range channel(channels) {
		if m.has(ch) {
			e.owner[ch] = c
		}
	}
	switch k {
	case asLine:
		ch := m.only()
		c.from.X, c.to.X, c.text = r.number(ch), r.number(ch), r.Text()
	case asWay:
		c.from, c.to, c.height, c.arrival = r.point(), r.point(), r.number(channelY), r.Text()
	case asRoute:
		c.arrival = r.Text()
		n := r.Array()
		if r.Err == nil && (n < 2 || n%2 != 0) {
			r.Fail("a path of %d numbers", n)
		}
		for range n / 2 {
			c.points = append(c.points, r.point())
			if r.Err != nil {
				return
			}
		}
		c.lengths = lengthsOf(c.points)
	case asPulse:
		c.from.X, c.to.X = r.number(chScale), r.number(chScale)
	case asTyping:
		c.text = r.Text()
		if c.runes = utf8.RuneCountInString(c.text); c.runes > MaxText {
			r.Fail("a text that is too long")
		}
	case asCustom:
		c.action = r.s.actions[r.Text()]
		c.track.Channel = Channel(channelNames[m.only()])
		c.track.From, c.track.To, c.text = r.number(channelX), r.number(channelX), r.Text()
		c.track.Text = c.text
		n := r.Array()
		if r.Err == nil && (n > MaxTrackData || c.action == nil) {
			r.Fail("a malformed track")
			return
		}
		c.track.Data = make([]float64, n)
		for i := range c.track.Data {
			c.track.Data[i] = r.number(channelX)
		}
	default:
	}
}

// only returns the one channel of a mask.
func (m mask) only() channel {
	for ch := range channel(channels) {
		if m.has(ch) {
			return ch
		}
	}
	return chText
}

// fits reports whether a claim of kind k can own these channels.
func (k kind) fits(m mask) bool {
	one := m&(m-1) == 0
	switch k {
	case asLine, asCustom:
		return one && m != chText.mask()
	case asWay, asRoute:
		return m&^position == 0
	case asPulse:
		return m == chScale.mask()
	case asTyping:
		return m == chText.mask()
	default:
		return false
	}
}

func (r *stateReader) beams() {
	var acts []*act
	for a := r.s.firstAct; a != nil; a = a.next {
		acts = append(acts, a)
	}
	began := time.Duration(0)
	for range r.Array() {
		r.Fields(10, "a beam")
		b := &beam{from: r.entity(true)}
		if !r.None() {
			b.to = r.entity(false)
		}
		b.at, b.name, b.color, b.width, b.began = r.point(), r.Text(), r.Text(), r.Float(), r.time(r.s.now)
		number := int64(-1)
		if !r.None() {
			number = r.Between(0, int64(len(acts))-1, "act")
		}
		b.grown = r.number(chOpacity)
		switch {
		case r.Err != nil:
			return
		case !(b.width >= 0 && b.width <= widest) || b.began < began,
			b.to != nil && b.at != scene.Point{}, number >= 0 && b.grown != 0:
			r.Fail("a malformed beam")
			return
		}
		began = b.began
		if number >= 0 {
			b.claim = r.s.claimOf(acts[number], b.from)
			b.claim.kind, b.claim.beam = asBeam, b
		}
		r.s.beams = append(r.s.beams, b)
	}
	if len(r.s.beams) > maxBeams {
		r.Fail("%d beams", len(r.s.beams))
	}
}

func (r *stateReader) diagnostics() {
	d := &r.s.diagnostics
	r.Fields(int(noteKinds), "totals")
	for k := range d.totals {
		d.totals[k] = r.Uint()
	}
	for range r.Array() {
		r.Fields(9, "a diagnostic")
		n := diagnostic{
			at: r.time(r.s.now), kind: diagnosticKind(r.Between(0, int64(noteKinds)-1, "kind of diagnostic")),
			entity: r.Text(), channel: r.Text(), performance: r.run(), with: r.run(), detail: r.Text(),
		}
		if r.Err != nil {
			return
		}
		d.recent = append(d.recent, n)
	}
}

func (r *stateReader) unresolved() {
	d := &r.s.diagnostics
	n := r.Array()
	if n < 1 || n > maxUnresolved {
		r.Fail("%d references that did not resolve", n)
	}
	for range n {
		r.Fields(8, "a reference that did not resolve")
		u := unresolved{
			place: place{int32(r.Between(0, math.MaxInt32, "the slot of a definition")), r.Text(), r.Text(), r.Text()},
			at:    r.time(r.s.now), performance: r.run(), definition: r.Text(),
		}
		if r.Err == nil && d.isUnresolved(u.place) {
			r.Fail("a reference that is reported twice")
		}
		if r.Err != nil {
			return
		}
		d.unresolved = append(d.unresolved, u)
	}
}
