package stage

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Errors of [Restore].
var (
	// ErrState says that bytes are no state of a stage.
	ErrState = errors.New("stage: corrupt state")
	// ErrStateVersion says that a state was written under other rules: of
	// another version, or with other custom actions.
	ErrStateVersion = errors.New("stage: state of other rules")
)

// Restore returns the stage in the state that [Stage.Append] wrote. It believes
// nothing of data: what no stage could have written is refused with [ErrState],
// and a state of another version or of other custom actions than cfg has with
// [ErrStateVersion].
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
	// The version comes before any judgement: another one may have another
	// number of elements.
	n, rest, err := msgp.ReadArrayHeaderBytes(data)
	if err != nil {
		return nil, err
	}
	r := stateReader{rest: rest, s: New(cfg)}
	if version := r.int(); r.err == nil && version != stateVersion {
		return nil, fmt.Errorf("%w: version %d, this program knows %d", ErrStateVersion, version, stateVersion)
	}
	if n != 12 {
		return nil, errors.New("want an array of 12")
	}
	s := r.s
	s.lively = math.MaxInt64 // as nobody has looked yet
	r.actions()
	s.now = r.time(math.MaxInt64)
	s.choreographed = r.bool()
	switch v := r.value(); {
	case r.err != nil:
	case v.Kind() == signal.KindNull:
	default:
		sc, err := scene.Compile(slices.Clone(v))
		if err != nil {
			return nil, err
		}
		s.SetScene(sc)
	}
	if r.err == nil {
		r.entities()
	}
	if r.err == nil {
		r.acts()
	}
	if r.err == nil {
		r.beams()
	}
	for range r.array() {
		r.fields(3, "a sound")
		s.sounds = append(s.sounds, Sound{At: r.time(s.now), Sound: r.text(), Entity: r.text()})
	}
	r.diagnostics()
	switch {
	case r.err != nil:
		return nil, r.err
	case len(r.rest) > 0:
		return nil, errors.New("bytes after the end")
	case len(s.sounds) > MaxSounds || len(s.diagnostics.recent) > MaxRecent:
		return nil, errors.New("more than is remembered")
	}
	for a := s.firstAct; a != nil; a = a.next {
		if a.first == nil {
			return nil, errors.New("an act that moves nothing")
		}
	}
	// Whatever can be written in two ways is caught here, all at once: the
	// digest of a state is taken over these bytes.
	if !bytes.Equal(s.Append(make([]byte, 0, len(data))), data) {
		return nil, errors.New("not in canonical form")
	}
	return s, nil
}

// stateReader reads a state from the front. After the first error every read
// returns zero.
type stateReader struct {
	rest []byte
	err  error

	s        *Stage
	numbered []*entity
}

func (r *stateReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
		r.rest = nil
	}
}

// array reads the head of an array. Each element takes at least one byte, so a
// count that the rest cannot hold is refused before anything is made for it.
func (r *stateReader) array() int {
	if r.err != nil {
		return 0
	}
	n, rest, err := msgp.ReadArrayHeaderBytes(r.rest)
	if err != nil {
		r.fail("%w", err)
		return 0
	}
	if uint64(n) > uint64(len(rest)) {
		r.fail("an array of %d in %d bytes", n, len(rest))
		return 0
	}
	r.rest = rest
	return int(n)
}

// fields reads the head of an array that has so many elements.
func (r *stateReader) fields(want int, what string) {
	if n := r.array(); r.err == nil && n != want {
		r.fail("%s of %d fields", what, n)
	}
}

func (r *stateReader) int() int64 {
	if r.err != nil {
		return 0
	}
	i, rest, err := msgp.ReadInt64Bytes(r.rest)
	if err != nil {
		r.fail("%w", err)
		return 0
	}
	r.rest = rest
	return i
}

// between reads a number within limits.
func (r *stateReader) between(low, high int64, what string) int64 {
	i := r.int()
	if r.err == nil && (i < low || i > high) {
		r.fail("%s %d", what, i)
		return low
	}
	return i
}

func (r *stateReader) uint() uint64 {
	if r.err != nil {
		return 0
	}
	i, rest, err := msgp.ReadUint64Bytes(r.rest)
	if err != nil {
		r.fail("%w", err)
		return 0
	}
	r.rest = rest
	return i
}

// time reads an instant not after latest.
func (r *stateReader) time(latest time.Duration) time.Duration {
	return time.Duration(r.between(0, int64(latest), "an instant"))
}

func (r *stateReader) bool() bool {
	if r.err != nil {
		return false
	}
	b, rest, err := msgp.ReadBoolBytes(r.rest)
	if err != nil {
		r.fail("%w", err)
		return false
	}
	r.rest = rest
	return b
}

// text reads a text, as memory of its own.
func (r *stateReader) text() string {
	if r.err != nil {
		return ""
	}
	b, rest, err := msgp.ReadStringZC(r.rest)
	switch {
	case err != nil:
		r.fail("%w", err)
		return ""
	case !utf8.Valid(b):
		r.fail("a text that is not UTF-8")
		return ""
	}
	r.rest = rest
	return string(b)
}

// textOrNil reads a text that may be missing.
func (r *stateReader) textOrNil() (string, bool) {
	if r.none() {
		return "", false
	}
	return r.text(), r.err == nil
}

// none passes a nil, if one comes next.
func (r *stateReader) none() bool {
	if r.err != nil || len(r.rest) == 0 || r.rest[0] != 0xc0 {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

func (r *stateReader) float() float64 {
	if r.err != nil {
		return 0
	}
	f, rest, err := msgp.ReadFloat64Bytes(r.rest)
	if err != nil {
		r.fail("%w", err)
		return 0
	}
	r.rest = rest
	return f
}

// number reads a number within the limits of a channel.
func (r *stateReader) number(ch channel) float64 {
	f := r.float()
	if r.err == nil && math.Float64bits(ch.bound(f)) != math.Float64bits(f) {
		r.fail("%s %v", channelNames[ch], f)
		return 0
	}
	return f
}

func (r *stateReader) point() scene.Point {
	return scene.Point{X: r.number(chX), Y: r.number(chY)}
}

func (r *stateReader) run() run {
	return run{r.uint(), uint32(r.between(0, math.MaxUint32, "a performance's number"))}
}

func (r *stateReader) value() signal.Value {
	if r.err != nil {
		return nil
	}
	v, rest, err := signal.CheckValue(r.rest)
	if err != nil {
		r.fail("%w", err)
		return nil
	}
	r.rest = rest
	return v
}

// actions compares the custom actions with those of the stage.
func (r *stateReader) actions() {
	names := slices.Sorted(maps.Keys(r.s.actions))
	n := r.array()
	same := n == len(names)
	for i := range n {
		r.fields(2, "an action")
		name, version := r.text(), r.between(0, math.MaxUint32, "an action's version")
		same = same && name == names[i] && uint32(version) == r.s.actions[name].Version
	}
	if r.err == nil && !same {
		r.fail("%w: other custom actions", ErrStateVersion)
	}
}

// entities reads both lists. Those of the scene stand already.
func (r *stateReader) entities() {
	s := r.s
	for e := s.first; e != nil; e = e.next {
		r.numbered = append(r.numbered, e)
	}
	placed, last := len(r.numbered), int64(-1)
	for range r.array() {
		r.fields(1+int(bodyFields), "an entity")
		last = r.between(last+1, int64(placed)-1, "entity")
		if r.err != nil {
			return
		}
		e := r.numbered[last]
		if e.home != "" {
			s.leaveHome(e)
		}
		r.body(e)
	}
	for range r.array() {
		r.fields(2+int(bodyFields), "an entity")
		e := &entity{id: r.text(), actor: r.text(), cell: noCell}
		r.body(e)
		if r.err != nil {
			return
		}
		for _, o := range s.names[e.id] {
			if o.id == e.id {
				r.fail("two entities %q", e.id)
				return
			}
		}
		s.enlist(e)
		r.numbered = append(r.numbered, e)
	}
}

func (r *stateReader) body(e *entity) {
	s := r.s
	e.touched = true
	e.look = r.text()
	e.label, e.labelled = r.textOrNil()
	if e.home = r.text(); e.home != "" {
		s.taken[e.home]++
	}
	e.homeAt = r.point()
	e.cell = int32(r.between(noCell, MaxEntities, "cell"))
	if r.err == nil && e.cell != noCell {
		for len(s.cells) <= int(e.cell) {
			s.cells = append(s.cells, false)
		}
		if s.cells[e.cell] || e.home != "" {
			r.fail("a cell that is taken")
			return
		}
		s.cells[e.cell] = true
	}
	for ch := range e.values {
		e.values[ch] = r.number(channel(ch))
	}
	e.color = r.text()
	e.layer = int(r.between(0, math.MaxInt32, "layer"))
	e.visible = r.bool()
	e.state = r.text()
	e.words = r.words()
	e.glow, e.ray = glow{}, ray{}
	if !r.none() {
		r.fields(2, "a glow")
		e.glow = glow{color: r.text(), since: r.time(s.now)}
	}
	if !r.none() {
		r.fields(4, "a ray")
		e.ray = ray{to: r.text(), at: r.point(), since: r.time(s.now)}
	}
	e.undo = nil
	last := int64(-1)
	for range r.array() {
		r.fields(5, "a property")
		last = r.between(last+1, int64(properties)-1, "property")
		u := undo{property: property(last), run: r.run(), number: r.number(chX), text: r.text()}
		if r.err != nil {
			return
		}
		e.undo = append(e.undo, u)
	}
}

func (r *stateReader) words() words {
	if r.err != nil {
		return words{}
	}
	if msgp.NextType(r.rest) != msgp.ArrayType {
		w := words{text: r.text()}
		if utf8.RuneCountInString(w.text) > MaxText {
			r.fail("a text that is too long")
		}
		return w
	}
	r.fields(5, "speech")
	w := words{text: r.text(), speech: true, stream: r.bool()}
	w.runes = utf8.RuneCountInString(w.text)
	if w.runes > maxSpeech {
		r.fail("speech that is too long")
	}
	// As far below none as somebody can talk without a pause in all of time.
	w.before = int(r.between(-1<<39, int64(w.runes), "typed"))
	w.since = r.time(r.s.now)
	w.said = r.time(r.s.now)
	return w
}

// entity reads the number of an entity.
func (r *stateReader) entity(touched bool) *entity {
	i := r.between(0, int64(len(r.numbered))-1, "entity")
	if r.err != nil {
		return nil
	}
	e := r.numbered[i]
	if touched && !e.touched {
		r.fail("an entity to which nothing has happened moves")
	}
	return e
}

func (r *stateReader) acts() {
	began := time.Duration(0)
	for range r.array() {
		r.fields(7, "an act")
		p := r.run()
		key := choreography.ActKey{Seq: p.seq, Index: p.index, Node: int32(r.between(0, math.MaxInt32, "node"))}
		start, duration := r.time(r.s.now), r.time(math.MaxInt64)
		curve, err := choreography.ParseCurve(r.text())
		switch {
		case r.err != nil:
			return
		case err != nil:
			r.fail("%w", err)
			return
		case r.s.acts[key] != nil:
			r.fail("an act twice")
			return
		case start < began:
			r.fail("acts in another order")
			return
		}
		began = start
		a := r.s.begin(key, start, duration, curve)
		for range r.array() {
			r.claim(a)
			if r.err != nil {
				return
			}
		}
	}
}

func (r *stateReader) claim(a *act) {
	fields := r.array()
	e := r.entity(true)
	k := kind(r.between(0, int64(asCustom), "kind"))
	m := mask(r.between(1, int64(all), "channels"))
	contested := r.time(math.MaxInt64)
	if r.err != nil {
		return
	}
	if fields != 4+int(claimFields[k]) || !k.fits(m) {
		r.fail("a claim that is none")
		return
	}
	for ch := range channel(channels) {
		if m.has(ch) && e.owner[ch] != nil {
			r.fail("a channel of two acts")
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
		c.from.X, c.to.X, c.text = r.number(ch), r.number(ch), r.text()
	case asWay:
		c.from, c.to, c.height, c.arrival = r.point(), r.point(), r.number(chY), r.text()
	case asRoute:
		c.arrival = r.text()
		n := r.array()
		if r.err == nil && (n < 2 || n%2 != 0) {
			r.fail("a way of %d numbers", n)
		}
		for range n / 2 {
			c.points = append(c.points, r.point())
			if r.err != nil {
				return
			}
		}
		c.lengths = lengthsOf(c.points)
	case asPulse:
		c.from.X, c.to.X = r.number(chScale), r.number(chScale)
	case asTyping:
		c.text = r.text()
		if c.runes = utf8.RuneCountInString(c.text); c.runes > MaxText {
			r.fail("a text that is too long")
		}
	case asCustom:
		c.action = r.s.actions[r.text()]
		c.track.Channel = Channel(channelNames[m.only()])
		c.track.From, c.track.To, c.text = r.number(chX), r.number(chX), r.text()
		c.track.Text = c.text
		n := r.array()
		if r.err == nil && (n > MaxTrackData || c.action == nil) {
			r.fail("a track that is none")
			return
		}
		c.track.Data = make([]float64, n)
		for i := range c.track.Data {
			c.track.Data[i] = r.number(chX)
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

// fits reports whether a claim of kind k can be of those channels.
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
	for range r.array() {
		r.fields(10, "a beam")
		b := &beam{from: r.entity(true)}
		if !r.none() {
			b.to = r.entity(false)
		}
		b.at, b.name, b.color, b.width, b.began = r.point(), r.text(), r.text(), r.float(), r.time(r.s.now)
		number := int64(-1)
		if !r.none() {
			number = r.between(0, int64(len(acts))-1, "act")
		}
		b.grown = r.number(chOpacity)
		switch {
		case r.err != nil:
			return
		case !(b.width >= 0 && b.width <= widest) || b.began < began,
			b.to != nil && b.at != scene.Point{}, number >= 0 && b.grown != 0:
			r.fail("a beam that is none")
			return
		}
		began = b.began
		if number >= 0 {
			b.claim = r.s.claimOf(acts[number], b.from)
			b.claim.kind, b.claim.beam = asBeam, b
		}
		r.s.beams = append(r.s.beams, b)
	}
	if len(r.s.beams) > MaxBeams {
		r.fail("%d beams", len(r.s.beams))
	}
}

func (r *stateReader) diagnostics() {
	d := &r.s.diagnostics
	r.fields(int(noteKinds), "totals")
	for k := range d.totals {
		d.totals[k] = r.uint()
	}
	for range r.array() {
		r.fields(9, "a diagnostic")
		n := note{
			at: r.time(r.s.now), kind: noteKind(r.between(0, int64(noteKinds)-1, "kind of diagnostic")),
			entity: r.text(), channel: r.text(), run: r.run(), with: r.run(), detail: r.text(),
		}
		if r.err != nil {
			return
		}
		d.recent = append(d.recent, n)
	}
}
