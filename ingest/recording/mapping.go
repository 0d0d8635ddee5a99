package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// Mapping turns the records of one recording into signals. A format begins each native
// record with [Mapping.Begin] (sequences of [Recorded] do it), may say its time, id and
// metadata, and then says what the record means: by the methods that emit signals, by
// [Mapping.Keep], by [Mapping.Skip] with the name of a rule, or by [Mapping.Hold]. A
// record of which nothing is said is kept.
type Mapping struct {
	format  Format
	options Options
	balance *Balance
	yield   func(Item, error) bool

	stopped bool  // the consumer wants no more
	failed  error // the reading ends with it

	origin  *signal.Object // payload of the first signal
	begun   bool           // the first signal was emitted
	session string

	root   string // the name of the recording
	now    current
	agents map[string]*agent
	calls  calls
	queue  timeQueue

	recent      map[string]bool // see Repeats
	recentOrder []string

	clock Instant // of formats without times

	source string
	role   []byte // space for the role of a signal
}

// current is the record that is being mapped.
type current struct {
	open   bool
	rec    NativeRecord
	native string // its id
	value  signal.Value
	meta   signal.Object
	count  int // signals of it
	types  typeCounts
	fate   fate // if nothing was emitted
	sized  bool // an item carries its size
	length int  // of its text, for the stated clock
}

type fate uint8

const (
	undecided fate = iota
	skipped
	held
	released
	unreadable
	kept
)

func newMapping(f Format, root string, o Options, b *Balance, yield func(Item, error) bool) *Mapping {
	m := &Mapping{format: f, root: root, options: o, balance: b, yield: yield, agents: map[string]*agent{}}
	m.source = "import:" + f.Name
	m.origin = signal.NewObject(8).Text("format", f.Name)
	m.queue.maxSkew = Instant(o.MaxSkew)
	return m
}

// Stopped reports whether nothing more is wanted.
func (m *Mapping) Stopped() bool { return m.stopped || m.failed != nil }

// Begin begins a native record and ends the one before.
func (m *Mapping) Begin(rec NativeRecord) {
	m.end()
	m.balance.Records++
	m.now = current{open: true, rec: rec, native: m.placeID(rec.Place), value: rec.Value, meta: m.now.meta[:0], types: m.now.types[:0]}
	m.queue.begin(m.balance.Records)
	m.drain(false, false)
	if m.balance.Records%1000 == 0 && m.balance.tooBad(m.options.MaxBad) {
		m.tooBad()
	}
}

// placeID returns the native id of a record that has none of its own: its place within the
// recording, which does not depend on where the recording lies or what it is called.
func (m *Mapping) placeID(p Place) string {
	file := p.File
	if rest, inside := strings.CutPrefix(file, m.root); inside {
		file = strings.TrimPrefix(rest, "/")
	} else if rest, beside := strings.CutPrefix(file, path.Dir(m.root)+"/"); beside {
		file = rest
	}
	id := file + ":" + strconv.Itoa(p.Line)
	if p.Line == 0 {
		id = file + ":" + strconv.FormatInt(p.Offset, 10)
	}
	return id + p.Pointer
}

// idle says that the recording has no further record for now: the signals that are
// known are yielded, as at the end of a recording that is not final.
func (m *Mapping) idle() {
	m.end()
	m.drain(true, false)
}

func (m *Mapping) tooBad() {
	if m.failed == nil {
		m.failed = fmt.Errorf("%w: %d of %d (%v is the last); raise the limit with --max-bad, or name the format with --format",
			ErrUnreadable, m.balance.Unreadable, m.balance.Records, m.now.rec.Place)
	}
}

// end accounts for the current record.
func (m *Mapping) end() {
	r := &m.now
	if !r.open {
		return
	}
	if r.count == 0 && r.fate == undecided {
		kind := r.value.TextOf("type")
		if kind == "" {
			kind = "record"
		}
		m.Keep(kind)
	}
	r.open = false
	if m.format.Invented && r.count > 0 {
		// The step of the stated clock, see SetLength.
		m.clock += Instant(ReadingTime(r.length))
	}
	switch {
	case r.fate == skipped:
		// It is counted with its rule, also if the end of the recording gave it signals.
	case r.fate == unreadable:
		m.balance.Unreadable++
	case r.fate == kept:
		m.balance.Kept++
	case r.count > 0 || r.fate == released:
		m.balance.Mapped++
	case r.fate == held:
		m.balance.Held++
	}
}

// finish ends the reading: final emits what the end implies. Whole says that the recording
// was read to its end.
func (m *Mapping) finish(whole, final bool) {
	m.end()
	if m.failed == nil && m.balance.tooBad(m.options.MaxBad) {
		m.tooBad()
		whole, final = false, false
	}
	if final && m.begun {
		m.finishAgents()
		m.Emit(TypeEnd, "", signal.NewObject(1).Int("records", int64(m.balance.Records)).Value())
	}
	// No record will follow in a recording that does not grow, so no jump of time waits for one.
	m.drain(true, final || whole && !m.format.Grows)
}

// SetTime says the time of the current record; signals that follow have it. A record
// without a time has that of the one before.
func (m *Mapping) SetTime(t Instant, ok bool) {
	if ok && t.valid() {
		m.queue.time(t)
	}
}

// Moved says that the format, which knows the times of all records, gave the current one
// another time than it has: by how much, or that its clock was wrong by a jump ahead.
func (m *Mapping) Moved(by time.Duration, ahead bool) {
	if ahead {
		m.now.meta.Set("clockAhead", signal.Bool(true))
		m.balance.Ahead++
		return
	}
	m.now.meta.Float("skewMs", float64(by)/float64(time.Millisecond))
	m.balance.Clamped++
	m.balance.MaxClamped = max(m.balance.MaxClamped, by)
}

// Sorted says that n records were put before ones that stand earlier in the file, and
// by how much the furthest of them was behind.
func (m *Mapping) Sorted(n int, furthest time.Duration) {
	m.balance.Sorted += n
	m.balance.MaxSorted = max(m.balance.MaxSorted, furthest)
}

// Agent returns the name of the format's main agent.
func (m *Mapping) Agent() string { return m.format.Agent }

// MaxSkew returns the jump of time that may be a wrong clock, see [Options.MaxSkew].
func (m *Mapping) MaxSkew() time.Duration { return m.options.MaxSkew }

// KeepsNative reports whether [Options.KeepNative] is set, so that a format that reads all records
// first knows whether their values are needed.
func (m *Mapping) KeepsNative() bool { return m.options.KeepNative }

// SetLength says how many bytes of text a record has that somebody has to read or
// write, in formats without times: the stated clock begins at 0 (or at [Mapping.SetClock]),
// and a record that gives signals takes the [ReadingTime] of n.
func (m *Mapping) SetLength(n int) { m.now.length = n }

// SetClock sets the stated clock, where a header has a time and the records have none.
func (m *Mapping) SetClock(t Instant, ok bool) {
	if ok && t >= m.clock {
		m.clock = t
	}
}

// Elapse moves the stated clock within a record, as between a call and its result that are
// one record. It has no effect where records have times.
func (m *Mapping) Elapse(d time.Duration) {
	if m.format.Invented && d > 0 && d < 24*time.Hour {
		m.clock += Instant(d)
	}
}

// Invent says that this recording has no times, though others of its format have: it is
// then as one of a format that is [Format.Invented]. It must be called before the first signal.
func (m *Mapping) Invent() { m.format.Invented = true }

// ReadingTime is the step of the stated clock for a text of n bytes: one second, and one
// for each 50 bytes, 31 at most.
func ReadingTime(n int) time.Duration {
	return time.Second + time.Duration(min(n/50, 30))*time.Second
}

// SetNativeID says the id that the record has in its recording; without it, it is
// the record's place in it. It must be unique in the recording.
func (m *Mapping) SetNativeID(id string) {
	if id != "" {
		m.now.native = id
	}
}

// NativeID returns the id of the current record.
func (m *Mapping) NativeID() string { return m.now.native }

// SetNative sets the value that [Options.KeepNative] keeps. [NativeRecord.Value] is the default.
func (m *Mapping) SetNative(v signal.Value) { m.now.value = v }

// AddMeta adds a member to the metadata of the signals of the current record that follow.
// Absent, null and trimmed values are left out.
func (m *Mapping) AddMeta(name string, v signal.Value) {
	if k := v.Kind(); k == signal.KindAbsent || k == signal.KindNull || Trimmed(v) {
		return
	}
	m.now.meta.Set(name, v)
}

// SetSession says the native id of the session. The first one is noted in the first signal.
func (m *Mapping) SetSession(id string) {
	if id == "" {
		return
	}
	m.session = strings.Clone(id)
	m.Origin("session", signal.Text(id))
}

// Origin adds a member to the payload of the first signal, such as the version of the
// tool. It has no effect once a signal was emitted.
func (m *Mapping) Origin(name string, v signal.Value) {
	if k := v.Kind(); m.begun || k == signal.KindAbsent || k == signal.KindNull || Trimmed(v) {
		return
	}
	if name == "session" {
		if _, had := m.origin.Value().Get(name); had {
			return
		}
	}
	m.origin.Set(name, v)
}

// recentIDs is the number of native ids that [Mapping.Repeats] remembers.
const recentIDs = 1 << 14

// Repeats reports whether an id was given to it before, among the last 16,384: recordings
// now and then have a record twice.
func (m *Mapping) Repeats(id string) bool {
	if m.recent[id] {
		return true
	}
	if m.recent == nil {
		m.recent = map[string]bool{}
	}
	id = strings.Clone(id) // the text of a record is a part of all of it
	m.recent[id] = true
	m.recentOrder = append(m.recentOrder, id)
	if len(m.recentOrder) > recentIDs {
		delete(m.recent, m.recentOrder[0])
		m.recentOrder = m.recentOrder[1:]
	}
	return false
}

// Skip says that a rule leaves the record out.
func (m *Mapping) Skip(rule string) {
	if m.now.count == 0 && m.now.fate == undecided {
		m.now.fate = skipped
		m.balance.skip(rule)
	}
}

// Hold says that the record waits for later ones. A record that a later one
// completes counts with [Mapping.Release].
func (m *Mapping) Hold() {
	if m.now.count == 0 && m.now.fate == undecided {
		m.now.fate = held
	}
}

// Release says that n records that were held are mapped now.
func (m *Mapping) Release(n int) {
	if n > m.balance.Held && m.now.open && m.now.count == 0 && m.now.fate == held {
		// The current record is among them, at the end of the recording.
		m.now.fate = released
	}
	n = min(n, m.balance.Held)
	m.balance.Held -= n
	m.balance.Mapped += n
}

// Keep keeps the record as a signal of the type FORMAT.KIND with the record as payload.
func (m *Mapping) Keep(kind string) {
	v := m.now.value
	if v.Kind() != signal.KindObject {
		v = signal.NewObject(1).Add("value", cmpValue(v)).Value()
	}
	m.now.fate = kept
	m.Emit(m.format.Name+"."+kindWord(kind), "", v)
}

// KeepPart keeps a part of the current record, such as a block of a kind that the format does
// not know, as a signal of the type FORMAT.KIND with the part as payload. The record
// itself counts as mapped.
func (m *Mapping) KeepPart(kind, corr string, part signal.Value) {
	if part.Kind() != signal.KindObject {
		part = signal.NewObject(1).Add("value", cmpValue(part)).Value()
	}
	m.Emit(m.format.Name+"."+kindWord(kind), corr, part)
}

// Unreadable keeps a record that cannot be read as a signal FORMAT.unreadable with its
// place, the reason and the beginning of its text.
func (m *Mapping) Unreadable(reason string, text []byte) {
	const most = 4 << 10
	o := signal.NewObject(5).Text("reason", reason).Int("bytes", int64(m.now.rec.Size))
	if p := m.now.rec.Place; p.Line > 0 {
		o.Int("line", int64(p.Line))
	}
	if len(text) > most {
		// Whole words only: a stage would not find the half of a secret.
		text = text[:max(bytes.LastIndexAny(text[:most], " \t,;\"'"), 0)]
	}
	if len(text) > 0 {
		o.Text("text", strings.ToValidUTF8(string(text), "\uFFFD"))
	}
	m.now.fate = unreadable
	m.Emit(m.format.Name+".unreadable", "", o.Value())
}

// Remark records something that the user should know about the recording.
func (m *Mapping) Remark(kind, message string) {
	m.Emit(TypeRemark, "", signal.NewObject(2).Text("kind", kind).Text("message", message).Value())
}

// Note says in the [Balance] why a recording gives no signal, where a remark would be
// the only one.
func (m *Mapping) Note(message string) { m.balance.Notes = append(m.balance.Notes, message) }

// kindWord makes the name of a kind that is safe in the type of a signal.
func kindWord(kind string) string {
	const most = 64
	word := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, kind)
	if len(word) > most {
		word = word[:most]
	}
	return word
}

func cmpValue(v signal.Value) signal.Value {
	if v.Kind() == signal.KindAbsent {
		return signal.Null()
	}
	return v
}

// ID returns the id of a signal: it depends on the format, the native id and the role
// alone.
func ID(format, native, role string) string {
	text := make([]byte, 0, 160)
	for _, part := range [...]string{format, native, role} {
		text = strconv.AppendInt(text, int64(len(part)), 10)
		text = append(append(text, ':'), part...)
	}
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:16])
}

// typeCounts counts the signals of a record by type. A record has few types.
type typeCounts []typeCount

type typeCount struct {
	typ string
	n   int
}

// next returns the number of signals of a type before, and counts one more.
func (c *typeCounts) next(typ string) int {
	for i := range *c {
		if t := &(*c)[i]; t.typ == typ {
			t.n++
			return t.n - 1
		}
	}
	*c = append(*c, typeCount{typ, 1})
	return 0
}

// Emit emits a signal of any type. A corr of "" is none. The type of a kind of signal
// that is the format's own begins with its name.
func (m *Mapping) Emit(typ, corr string, payload signal.Value) {
	if m.stopped || m.failed != nil {
		return
	}
	if !m.begun {
		m.begun = true
		m.emitOrigin()
	}
	m.emitRaw(typ, corr, payload)
}

// emitOrigin emits the first signal of the recording.
func (m *Mapping) emitOrigin() {
	source := "recorded"
	if m.format.Invented {
		source = "synthetic"
	}
	m.origin.Text("timeSource", source)
	if m.options.KeepNative {
		m.origin.Bool("keepNative", true)
	}
	for name, v := range m.options.Notes.Members() {
		m.origin.Set(name, v)
	}
	native := m.now.native
	if m.session != "" {
		native = m.session
	}
	now := m.now.native
	m.now.native = native
	m.emitRaw(TypeRecording, "", m.origin.Value())
	m.now.native = now
}

func (m *Mapping) emitRaw(typ, corr string, payload signal.Value) {
	r := &m.now
	// The number tells the signals of one type in one record apart.
	role := append(append(m.role[:0], typ...), '/')
	role = strconv.AppendInt(role, int64(r.types.next(typ)), 10)
	m.role = role
	sig := &signal.Signal{
		ID:      ID(m.format.Name, r.native, string(role)),
		Type:    typ,
		Source:  m.source,
		Payload: payload,
	}
	if corr != "" {
		sig.CorrelationID = &corr
	}
	native := signal.NewObject(3).Text("id", r.native)
	if r.rec.Place.Line > 0 {
		native.Int("line", int64(r.rec.Place.Line))
	}
	meta := signal.NewObject(len(r.meta)+4).Add("native", native.Value())
	if m.session != "" {
		meta.Text("sessionId", m.session)
	}
	if m.format.Invented {
		meta.Text("timeSource", "synthetic")
		m.queue.stated = true
		m.queue.time(m.clock)
	}
	for _, member := range r.meta {
		meta.Add(member.Name, member.Value)
	}
	if m.options.KeepNative && r.value.Kind() != signal.KindAbsent && r.count == 0 && r.fate != kept && typ != TypeRecording {
		meta.Add("record", r.value)
	}
	r.count++
	item := Item{Signal: sig, Place: r.rec.Place}
	if !r.sized {
		r.sized, item.Size = true, r.rec.Size
	}
	m.queue.add(item, meta)
}

// deliver hands out one item whose time is decided.
func (m *Mapping) deliver(p *pendingItem, at Instant, moved time.Duration, ahead bool) {
	if m.stopped {
		return
	}
	sig := p.item.Signal
	sig.Timestamp = at.Milliseconds()
	if moved > 0 {
		p.meta.Float("skewMs", float64(moved)/float64(time.Millisecond))
	}
	if ahead {
		p.meta.Bool("clockAhead", true)
	}
	sig.Metadata = p.meta.Value()
	for _, stage := range m.options.Stages {
		stage(sig)
	}
	// A secret that is cut in two would not be found: nothing is cut before.
	if Fit(sig) {
		m.balance.Cut++
	}
	if m.balance.Signals == nil {
		m.balance.Signals = map[string]int{}
	}
	m.balance.Signals[sig.Type]++
	if !m.options.Unchecked {
		if err := sig.Validate(); err != nil {
			sig.Problem = err.Error()
		}
	}
	if !m.yield(p.item, nil) {
		m.stopped = true
	}
}
