package signal

import (
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"
)

// The lengths of the three arrays that a signal can be kept as.
const (
	rawForm      = 2 // [raw, problem]
	validForm    = 7 // [id, type, timestamp, source, correlationId, metadata, payload]
	refusedForm  = 8 // the same and problem
	envelopeRoom = MaxDepth - 1
)

// Append appends the signal's entry data to dst; the package comment has the
// format. The signal must come from [Parse], [ParseLenient] or [Decode], or have
// passed [Signal.Validate]; the bytes of any other signal may not decode.
func (s *Signal) Append(dst []byte) []byte {
	if s.Raw != nil {
		dst = append(dst, 0x90|rawForm)
		dst = append(dst, s.Raw...)
		return msgp.AppendString(dst, s.Problem)
	}
	form := byte(validForm)
	if s.Problem != "" {
		form = refusedForm
	}
	dst = append(dst, 0x90|form)
	dst = msgp.AppendString(dst, s.ID)
	dst = msgp.AppendString(dst, s.Type)
	dst = s.Timestamp.Append(dst)
	dst = msgp.AppendString(dst, s.Source)
	if s.CorrelationID != nil {
		dst = msgp.AppendString(dst, *s.CorrelationID)
	} else {
		dst = append(dst, 0xc0)
	}
	if s.Metadata != nil {
		dst = append(dst, s.Metadata...)
	} else {
		dst = append(dst, 0xc0)
	}
	dst = append(dst, s.Payload...)
	if s.Problem != "" {
		dst = msgp.AppendString(dst, s.Problem)
	}
	return dst
}

// Decode reads entry data written by [Signal.Append]. The signal's strings
// and values are views of data.
//
// Decode accepts bytes of unknown origin: it checks the kind of every element, that
// each is complete, and that nothing follows. It only measures the contents of
// metadata and payload, which takes most of its time: a [Value]'s methods treat
// malformed bytes as absent and never panic, and [CheckValue] reports them. Decode does not check the schema again, so that a log stays readable when
// the schema grows. Its errors wrap [ErrCorrupt].
func Decode(data []byte) (Signal, error) {
	r := reader{b: data}
	var s Signal
	switch form := r.first(); form {
	case rawForm:
		s.Raw = r.value(KindObject)
		s.Problem = r.problem()
		if r.err == nil {
			s.fill(s.Raw, nil)
		}
	case validForm, refusedForm:
		s.ID = r.text()
		s.Type = r.text()
		s.Timestamp = r.number()
		s.Source = r.text()
		if !r.null() {
			correlation := r.text()
			s.CorrelationID = &correlation
		}
		if !r.null() {
			s.Metadata = r.value(KindObject)
		}
		s.Payload = r.value(KindObject)
		if form == refusedForm {
			s.Problem = r.problem()
		}
	default:
		r.fail("no array of 2, 7 or 8 elements")
	}
	if r.err == nil && r.i < len(data) {
		r.fail("something after the end of the signal")
	}
	if r.err != nil {
		return Signal{}, r.err
	}
	return s, nil
}

// DecodeSound is [Decode] that also checks metadata and payload, or the raw object,
// as [CheckValue] does. A fold that keeps values of a signal uses DecodeSound,
// because the readers of its state refuse malformed values.
func DecodeSound(data []byte) (Signal, error) {
	s, err := Decode(data)
	if err != nil {
		return Signal{}, err
	}
	if s.Raw != nil {
		_, _, err = CheckValue(s.Raw) // the others are parts of it
	} else {
		if s.Metadata != nil {
			_, _, err = CheckValue(s.Metadata)
		}
		if err == nil {
			_, _, err = CheckValue(s.Payload)
		}
	}
	if err != nil {
		return Signal{}, err
	}
	return s, nil
}

// reader takes the elements of entry data one by one. After its first error
// every element is empty.
type reader struct {
	b   []byte
	i   int
	err error
}

func (r *reader) fail(why string) {
	if r.err == nil {
		r.err = corrupt(r.i, why)
	}
}

// first reads the head of the outer array, which is always of one byte, and
// returns its length, -1 if data does not begin with such a head.
func (r *reader) first() int {
	if len(r.b) == 0 || r.b[0]&0xf0 != 0x90 {
		return -1
	}
	r.i = 1
	return int(r.b[0] & 0x0f)
}

func (r *reader) null() bool {
	if r.err != nil || r.i >= len(r.b) || r.b[r.i] != 0xc0 {
		return false
	}
	r.i++
	return true
}

func (r *reader) text() string {
	if r.err != nil {
		return ""
	}
	s, size := readText(r.b[r.i:])
	if size == 0 {
		r.fail("no whole string")
		return ""
	}
	if !utf8.ValidString(s) {
		r.fail("a string that is not UTF-8")
		return ""
	}
	r.i += size
	return s
}

func (r *reader) problem() string {
	s := r.text()
	if s == "" {
		r.fail("a signal that is refused without a problem")
	}
	return s
}

func (r *reader) number() Number {
	if r.err != nil {
		return Number{}
	}
	k, bits, size := readHead(r.b[r.i:])
	if size == 0 || !k.IsNumber() || k == KindFloat && !finite(bits) {
		r.fail("no whole number")
		return Number{}
	}
	r.i += size
	return Number{k, bits}
}

func (r *reader) value(kind ValueKind) Value {
	if r.err != nil {
		return nil
	}
	v := Value(r.b[r.i:])
	if v.Kind() != kind {
		r.fail("no " + kind.String())
		return nil
	}
	size := extent(v)
	if size == 0 {
		r.fail("no whole " + kind.String())
		return nil
	}
	r.i += size
	return v[:size:size]
}
