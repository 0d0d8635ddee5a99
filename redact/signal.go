package redact

import (
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// NoteName is the member of the metadata in which a redacted signal records, by the
// name of the kind, how many parts were replaced.
const NoteName = "redactions"

// kindPath is the name under which the values at the paths of rules are counted.
const kindPath = "path"

// Redactor removes from signals what its rules find, and counts it. It is not safe for
// concurrent use.
type Redactor struct {
	finder
	paths  []path
	mark   string   // of values at paths
	at     []string // the place of the value that is searched, from the envelope
	pathed int
}

// NewRedactor returns a redactor that has counted nothing.
func (r *Ruleset) NewRedactor() *Redactor {
	mark := Mark
	if r.all != "" {
		mark = r.all
	}
	return &Redactor{finder: *newFinder(r.rules), paths: r.paths, mark: mark}
}

func newFinder(r *rules) *finder { return &finder{rules: r, owned: make([]int, len(r.patterns))} }

// Redact replaces in a signal everything that the rules find and returns the number of
// replacements: in the id, the source and the correlation id, in the keys and the values
// of metadata and payload at any depth, in a signal that breaks the schema, and in JSON
// within strings. It changes s, but none of the bytes that s is a view of. Nothing is
// cut: however long a text is, it is searched to its end.
//
// A signal with replacements records them in the member [NoteName] of its metadata.
// A signal that the schema accepts stays one: numbers, truth values and enumerated
// strings of its payload stay, because the schema fixes them. The type and the time stay.
// Equal texts are replaced equally, so ids that are equal stay equal; ids that differ
// only in what was replaced become equal.
//
// A second Redact with the same rules changes nothing and returns 0.
func (d *Redactor) Redact(s *signal.Signal) (n int) {
	before := d.tally()
	for range maxPasses {
		// What was replaced in a key may have been a part of a name, so that the key now
		// says something else about its value.
		found := d.total()
		if s.Raw != nil {
			d.redactRaw(s)
		} else {
			d.redactRegular(s)
		}
		if d.total() == found {
			break
		}
	}
	if d.total() > before.total {
		d.finish(s, before)
	}
	return d.total() - before.total
}

// finish notes what was replaced since a moment.
func (d *Redactor) finish(s *signal.Signal, before tally) {
	if s.Raw == nil {
		s.Metadata = d.note(s.Metadata, before)
		s.Recheck()
		return
	}
	members := signal.ObjectOf(s.Raw)
	if m := s.Raw.Member("metadata"); m == nil || m.Kind() == signal.KindObject {
		members.Set("metadata", d.note(m, before))
	}
	out, err := signal.ParseLenient(members.Value().AppendJSON(nil))
	if err != nil {
		panic("redact: the JSON of an object is not read back: " + err.Error()) // AppendJSON promises it
	}
	*s = *out
}

// Counts returns how many parts were replaced so far, by the names of kinds and
// patterns; "path" counts the values at paths.
func (d *Redactor) Counts() map[string]int { return d.since(tally{}) }

// tally is the counts at one moment.
type tally struct {
	counts [kinds]int
	owned  []int
	pathed int
	total  int
}

func (d *Redactor) tally() tally {
	return tally{d.counts, append([]int(nil), d.owned...), d.pathed, d.total()}
}

func (d *Redactor) total() int {
	n := d.pathed
	for _, c := range d.counts {
		n += c
	}
	for _, c := range d.owned {
		n += c
	}
	return n
}

// since returns the counts since a moment, those that are not 0.
func (d *Redactor) since(t tally) map[string]int {
	out := map[string]int{}
	for k, c := range d.counts {
		if c -= t.counts[k]; c > 0 {
			out[table[k].Name] = c
		}
	}
	for i, c := range d.owned {
		if t.owned != nil {
			c -= t.owned[i]
		}
		if c > 0 {
			out[d.patterns[i].name] = c
		}
	}
	if c := d.pathed - t.pathed; c > 0 {
		out[kindPath] = c
	}
	return out
}

func (d *Redactor) redactRegular(s *signal.Signal) {
	s.ID = d.envelope("id", s.ID)
	s.Source = d.envelope("source", s.Source)
	if s.CorrelationID != nil {
		if id := d.envelope("correlationId", *s.CorrelationID); id != *s.CorrelationID {
			s.CorrelationID = &id
		}
	}
	fields, fixed := signal.PayloadFields(s.Type)
	if !fixed {
		s.Type = d.text(s.Type, true)
	}
	d.at = append(d.at[:0], "metadata")
	s.Metadata = d.object(s.Metadata)
	d.at = append(d.at[:0], "payload")
	if fixed && s.Problem == "" {
		s.Payload = d.payload(s.Payload, fields)
	} else {
		s.Payload = d.object(s.Payload)
	}
}

// redactRaw redacts a signal whose envelope is irregular.
func (d *Redactor) redactRaw(s *signal.Signal) {
	d.at = d.at[:0]
	s.Raw = d.object(s.Raw)
}

// envelope redacts an id or the source of a signal.
func (d *Redactor) envelope(name, text string) string {
	d.at = append(d.at[:0], name)
	if d.pointed() && text != d.mark {
		d.pathed++
		return d.mark
	}
	return d.text(text, true)
}

// pointed reports whether a path leads to the current place.
func (d *Redactor) pointed() bool {
	for i := range d.paths {
		if d.paths[i].matches(d.at) {
			return true
		}
	}
	return false
}

// payload redacts the payload of a well-known type within what the schema allows.
func (d *Redactor) payload(v signal.Value, fields []signal.Field) signal.Value {
	members := signal.ObjectOf(v)
	changed := false
	for i := range members {
		m := &members[i]
		var field *signal.Field
		for k := range fields {
			if fields[k].Name == m.Name {
				field = &fields[k]
			}
		}
		d.at = append(d.at[:1], m.Name)
		var c bool
		switch {
		case field == nil || field.Enum != nil || field.Fields != nil:
			continue
		case field.Kind == signal.FieldString:
			text, _ := m.Value.Text()
			if d.pointed() {
				if c = text != d.mark; c {
					d.pathed++
					m.Value = signal.Text(d.mark)
				}
				break
			}
			out := d.whole(m.Name, text)
			if c = out != text; c {
				m.Value = signal.Text(out)
			}
		case field.Kind == signal.FieldObject:
			m.Value, c = d.free(m.Value)
		}
		changed = changed || c
	}
	if !changed {
		return v
	}
	return members.Value()
}

// object redacts an object that stays one, absent or not.
func (d *Redactor) object(v signal.Value) signal.Value {
	out, _ := d.free(v)
	return out
}

// free redacts an object that has to stay an object.
func (d *Redactor) free(v signal.Value) (signal.Value, bool) {
	if v == nil {
		return nil, false
	}
	if len(d.at) > 0 && d.pointed() {
		note := v.Member(NoteName)
		if v.TextOf("redacted") == d.mark && (v.Len() == 1 || v.Len() == 2 && note != nil && isNote(note)) {
			return v, false
		}
		d.pathed++
		return signal.NewObject(1).Text("redacted", d.mark).Value(), true
	}
	return d.members(v, plain)
}

// value redacts a value of a name, and reports whether it changed. Level l is that of
// the name, or of a name around it.
func (d *Redactor) value(name string, l level, v signal.Value) (signal.Value, bool) {
	kind := v.Kind()
	if kind == signal.KindNull || kind == signal.KindBool {
		return v, false
	}
	text, isText := v.Text()
	if d.pointed() {
		if isText && text == d.mark {
			return v, false
		}
		d.pathed++
		return signal.Text(d.mark), true
	}
	if isText {
		return d.string(name, l, v, text)
	}
	hide := plain
	switch {
	case l == secret && d.on[kindSecret], l == personal && d.on[kindPersonal]:
		hide = l
	}
	switch kind {
	case signal.KindArray:
		if hide == secret && v.Len() > 0 {
			return d.hidden(l)
		}
		return d.elements(name, l, v)
	case signal.KindObject:
		if hide != plain && v.Len() > 0 {
			return d.hidden(l)
		}
		if l != token {
			l = plain
		}
		return d.members(v, l)
	default: // a number
		if hide != plain {
			return d.hidden(l)
		}
		return v, false
	}
}

// hidden replaces the value of a name of level l as a whole.
func (d *Redactor) hidden(l level) (signal.Value, bool) {
	k := kindSecret
	if l == personal || l == place {
		k = kindPersonal
	}
	d.counts[k]++
	return signal.Text(d.rules.mark[k]), true
}

func (d *Redactor) string(name string, l level, v signal.Value, text string) (signal.Value, bool) {
	switch {
	case text == "" || d.marked(text) == len(text):
		return v, false
	case l == secret && d.on[kindSecret] && !telling(text),
		l == token && d.on[kindSecret] && tokenLike(text, true),
		l == personal && d.on[kindPersonal] && !telling(text),
		l == place && d.on[kindPersonal] && postal(text):
		return d.hidden(l)
	}
	out := d.whole(name, text)
	if out == text {
		return v, false
	}
	return signal.Text(out), true
}

// whole redacts a text of a name, as JSON and as text. Each search may make room for the
// other: they are repeated until nothing changes.
func (d *Redactor) whole(name, text string) string {
	for range maxPasses {
		next := d.text(d.inJSON(text), d.identifier(name))
		if next == text {
			return text
		}
		text = next
	}
	return d.rules.mark[kindSecret]
}

// inJSON redacts a text that is an object or an array of JSON as the values that it has.
// They have names that the search of text cannot see, and are free of escapes.
func (d *Redactor) inJSON(text string) string {
	trimmed := strings.TrimSpace(text)
	if len(trimmed) < 2 || trimmed[0] != '{' && trimmed[0] != '[' {
		return text
	}
	v, err := signal.ParseValue([]byte(trimmed))
	if err != nil {
		return text
	}
	var out signal.Value
	var changed bool
	at, paths := d.at, d.paths
	d.at, d.paths = nil, nil // the paths of rules end at a string
	if v.Kind() == signal.KindObject {
		out, changed = d.members(v, plain)
	} else {
		out, changed = d.elements("", plain, v)
	}
	d.at, d.paths = at, paths
	if !changed {
		return text
	}
	return string(out.AppendJSON(nil))
}

func (d *Redactor) elements(name string, l level, v signal.Value) (signal.Value, bool) {
	var out []signal.Value
	changed := false
	i := 0
	for e := range v.Elements() {
		d.at = append(d.at, strconv.Itoa(i))
		e, c := d.value(name, l, e)
		d.at = d.at[:len(d.at)-1]
		out, changed = append(out, e), changed || c
		i++
	}
	if !changed {
		return v, false
	}
	return signal.Array(out...), true
}

// members redacts the keys and the values of an object. inherited is the level of the
// name of the object.
func (d *Redactor) members(v signal.Value, inherited level) (signal.Value, bool) {
	members := signal.ObjectOf(v)
	beside := d.besideName(members)
	changed, renamed := false, false
	for i := range members {
		m := &members[i]
		if len(d.at) == 1 && d.at[0] == "metadata" && m.Name == NoteName && isNote(m.Value) {
			continue
		}
		l := max(inherited, d.level(d.unmarked(m.Name)))
		if beside > plain && strings.EqualFold(m.Name, "value") {
			l = max(l, beside)
		}
		d.at = append(d.at, m.Name)
		value, c := d.value(m.Name, l, m.Value)
		d.at = d.at[:len(d.at)-1]
		m.Value, changed = value, changed || c
		if key := d.text(m.Name, false); key != m.Name {
			m.Name, changed, renamed = key, true, true
		}
	}
	if !changed {
		return v, false
	}
	if renamed {
		d.distinct(members)
	}
	return members.Value(), true
}

// unmarked returns a name without the marks in it, whose words are not those of the name.
func (d *Redactor) unmarked(name string) string {
	for i := strings.IndexByte(name, '['); i >= 0 && i < len(name); i++ {
		if n := d.marked(name[i:]); n > 0 {
			name = name[:i] + name[i+n:]
			i--
		}
	}
	return name
}

// besideName returns the level of the name that an object has beside a value, as the
// variables of an environment and the headers of a request are often listed.
func (d *Redactor) besideName(members signal.Object) level {
	for _, m := range members {
		if strings.EqualFold(m.Name, "name") || strings.EqualFold(m.Name, "key") {
			if name, ok := m.Value.Text(); ok {
				if l := d.level(name); l >= token {
					return l
				}
			}
		}
	}
	return plain
}

// distinct gives the keys of an object that redaction has made equal numbers, in their
// last marks: [EMAIL], [EMAIL-2].
func (d *Redactor) distinct(members signal.Object) {
	count, taken := map[string]int{}, map[string]bool{}
	for _, m := range members {
		count[m.Name]++
	}
	for i := range members {
		first := members[i].Name
		for n := 2; taken[members[i].Name] || members[i].Name != first && count[members[i].Name] > 0; n++ {
			members[i].Name = d.numbered(first, n)
		}
		taken[members[i].Name] = true
	}
}

// numbered returns a name with the number n in its last mark.
func (d *Redactor) numbered(name string, n int) string {
	for i := strings.LastIndexByte(name, '['); i >= 0; i = strings.LastIndexByte(name[:i], '[') {
		if word, long := d.markAt(name[i:]); long > 0 {
			return name[:i+word] + "-" + strconv.Itoa(n) + name[i+long-1:]
		}
	}
	return name + "#" + strconv.Itoa(n)
}

// identifiers are last words of names whose values are identifiers or digests.
var identifiers = set(`id ids uuid uuids guid hash sha sha1 sha256 sha512 digest checksum integrity etag fingerprint commit revision rev head oid nonce signature`)

// identifier reports whether a name is one of an identifier: only what has a published
// form is searched for in it.
func (d *Redactor) identifier(name string) bool {
	if name == "" {
		return false
	}
	words := split(name)
	return len(words) > 0 && identifiers[words[len(words)-1]] || d.kept(name)
}

// isNote reports whether a value has the form of the note of a redaction.
func isNote(v signal.Value) bool {
	if v.Kind() != signal.KindObject {
		return false
	}
	for name, n := range v.Members() {
		if _, ok := n.Int64(); !ok || !patternName().MatchString(name) {
			return false
		}
	}
	return true
}

// note adds the counts since a moment to the note in the metadata.
func (d *Redactor) note(metadata signal.Value, before tally) signal.Value {
	old := metadata.Member(NoteName)
	if old != nil && !isNote(old) {
		return metadata // the sender's own member of that name
	}
	note := signal.ObjectOf(old)
	for name, n := range d.since(before) {
		note.Set(name, signal.Int(old.IntOf(name)+int64(n)).Value())
	}
	note.Sort()
	members := signal.ObjectOf(metadata)
	members.Set(NoteName, note.Value())
	return members.Value()
}
