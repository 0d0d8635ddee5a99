package content

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/redact"
	"github.com/sajou-dev/sajou-go/signal"
)

// kept are the fields of well-known payloads whose texts are no content: names and ids.
// Fields of other kinds stay too, except for objects of free form.
var kept = []string{
	"taskId", "from", "to", "toolName", "agentId", "callId", "model", "code", "severity", "contentType",
	"target", "entityId", "toSlot", "toZone", "zone", "action",
}

// Kept returns the fields of well-known payloads whose texts stay.
func Kept() []string { return slices.Clone(kept) }

// payload returns what remains of a payload.
func (r *Remover) payload(typ string, v signal.Value) signal.Value {
	fields, wellKnown := signal.PayloadFields(typ)
	switch {
	case !wellKnown && (strings.HasPrefix(typ, "import.") || strings.HasSuffix(typ, ".unreadable")):
		return r.structure(v)
	case !wellKnown:
		return r.object(v)
	}
	out := signal.NewObject(v.Len())
	for name, m := range v.Members() {
		i := slices.IndexFunc(fields, func(f signal.Field) bool { return f.Name == name })
		if i < 0 {
			r.count(m)
			continue
		}
		r.field(out, &fields[i], m)
	}
	return out.Value()
}

// field adds to a payload what remains of a field.
func (r *Remover) field(out *signal.Object, f *signal.Field, v signal.Value) {
	text, isText := v.Text()
	kind := v.Kind()
	switch {
	case f.Kind == signal.FieldString && isText:
		switch {
		case f.Enum != nil && slices.Contains(f.Enum, text):
		case f.Enum == nil && slices.Contains(kept, f.Name) && (f.Name != "code" || isWord(text)):
		default:
			text = r.text(text)
		}
		out.Text(f.Name, text)
	case f.Kind == signal.FieldBool && kind == signal.KindBool,
		(f.Kind == signal.FieldInteger || f.Kind == signal.FieldNumber) && kind.IsNumber():
		out.Add(f.Name, v)
	case f.Kind == signal.FieldObject && kind == signal.KindObject && f.Fields == nil:
		out.Add(f.Name, r.object(v))
	case f.Kind == signal.FieldObject && kind == signal.KindObject:
		inner := signal.NewObject(v.Len())
		for name, m := range v.Members() {
			if i := slices.IndexFunc(f.Fields, func(f signal.Field) bool { return f.Name == name }); i >= 0 && m.Kind().IsNumber() {
				inner.Add(name, m)
			} else {
				r.count(m)
			}
		}
		out.Add(f.Name, inner.Value())
	default:
		r.count(v) // of a kind that the schema refuses
	}
}

// structural are the words of names of members that describe the form of a session and
// not what was said in it.
var structural = set(`
	id ids uuid session agent parent task turn message thread trace span run call tool request response correlation prompt root sidechain is
	native line index offset byte bytes pointer ordinal step depth length size count total records lines
	token tokens usage input output completion cache cached read write creation reasoning thoughts cost price
	model provider format version role kind type status state code severity exit success failed final keep
	time timestamp source started ended duration latency elapsed ms ns us seconds millis skew clamped ahead clock synthetic begin end start
	attempt retry retries max cut repaired redact redactions removed parts redaction rules digest digests content none keyed unreadable
	stop reason finish level`)

// named are the last words of names whose texts are ids, codes and the like.
var named = set(`id uuid model provider format version role kind type status state code severity source timestamp time session thread turn`)

// codes are names, their words joined, whose texts are codes too.
var codes = set(`stopreason finishreason`)

// nested are names of objects whose members are looked at one by one.
var nested = set(`native usage tokens token removed redaction content cache cost`)

var digest = regexp.MustCompile(`^[0-9a-f]{16,128}$`)

// maxWord bounds a text that stays, in bytes.
const maxWord = 200

// structure returns what remains of metadata, or of the description of an import.
func (r *Remover) structure(v signal.Value) signal.Value {
	if v == nil {
		return nil
	}
	out := signal.NewObject(v.Len())
	changed := false
	for name, m := range v.Members() {
		words := wordsOf(name)
		known := len(words) > 0
		for _, word := range words {
			known = known && structural[word]
		}
		text, isText := m.Text()
		switch kind := m.Kind(); {
		case !known:
		case kind.IsNumber(), kind == signal.KindBool, kind == signal.KindNull:
			out.Add(name, m)
			continue
		case isText && (words[len(words)-1] == "digest" || name == "redact") && digest.MatchString(text),
			name == "content" && text == "removed", // the note of an import
			isText && (named[words[len(words)-1]] || codes[strings.Join(words, "")]) && isWord(text):
			out.Add(name, m)
			continue
		case kind == signal.KindObject && name == redact.NoteName:
			inner := redactions(m)
			changed = changed || len(inner) != len(m)
			out.Add(name, inner)
			continue
		case kind == signal.KindObject && nested[strings.Join(words, "")], kind == signal.KindObject && name == NoteName:
			inner := r.structure(m)
			changed = changed || len(inner) != len(m)
			out.Add(name, inner)
			continue
		}
		changed = true
		r.count(m)
	}
	if !changed {
		return v
	}
	return out.Value()
}

// redactions returns the note of a redaction. The names of its kinds stay; the counts under
// other names, which the author of the rules gave, are added up.
func redactions(note signal.Value) signal.Value {
	out := signal.NewObject(note.Len())
	others := note.IntOf(otherKinds)
	for name, v := range note.Members() {
		n, _ := v.Int64()
		switch {
		case name == otherKinds:
		case n > 0 && slices.ContainsFunc(redact.Kinds(), func(k redact.SecretKind) bool { return k.Name == name }):
			out.Int(name, n)
		default:
			others += max(n, 0)
		}
	}
	if others > 0 {
		out.Int(otherKinds, others)
	}
	return out.Value()
}

// otherKinds is the name of the counts that are added up.
const otherKinds = "other"

// isWord reports whether a text can be an id, a code or the name of a model: it has no
// white space and is short.
func isWord(text string) bool {
	return text != "" && len(text) <= maxWord && utf8.ValidString(text) &&
		strings.IndexFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) < 0
}

// wordsOf returns the words of a name in lower case: cacheReadTokens and
// cache_read_tokens are cache, read and tokens. A name with other characters than letters,
// digits and "_" has none.
func wordsOf(name string) []string {
	var words []string
	start := 0
	for i := 0; i <= len(name); i++ {
		switch {
		case i == len(name) || name[i] == '_':
			if start < i {
				words = append(words, strings.ToLower(name[start:i]))
			}
			start = i + 1
		case 'A' <= name[i] && name[i] <= 'Z':
			if start < i && (name[i-1] < 'A' || name[i-1] > 'Z') {
				words = append(words, strings.ToLower(name[start:i]))
				start = i
			}
		case (name[i] < 'a' || name[i] > 'z') && (name[i] < '0' || name[i] > '9'):
			return nil
		}
	}
	return words
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
