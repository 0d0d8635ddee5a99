package otlp

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// The bounds of a record in protobuf, beyond which the decoder of the collector would use
// its stack and memory without any.
const (
	maxDepth = 100
	maxParts = 200_000
)

var (
	errDeep  = errors.New("its values are nested too deeply")
	errParts = errors.New("it has too many parts")
)

// shape has the fields of a message that are messages, as far as their values can be nested.
type shape map[protowire.Number]shape

// The shapes of the messages of OTLP that have values.
var shapeSpan, shapeLog, shapeResource = func() (span, log, resource shape) {
	value, keyValue := shape{}, shape{}
	value[5] = shape{1: value}    // an array
	value[6] = shape{1: keyValue} // a list of keys and values
	keyValue[2] = value
	span = shape{9: keyValue, 11: {3: keyValue}, 13: {4: keyValue}}
	log = shape{5: value, 6: keyValue}
	return span, log, shape{1: keyValue}
}()

// checkShape checks that a message is well formed and stays in the bounds.
func checkShape(b []byte, s shape) error {
	parts := 0
	return check(b, s, 0, &parts)
}

func check(b []byte, s shape, depth int, parts *int) error {
	if depth > maxDepth {
		return errDeep
	}
	for len(b) > 0 {
		if *parts++; *parts > maxParts {
			return errParts
		}
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		n = protowire.ConsumeFieldValue(num, kind, b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if inner, is := s[num]; is && kind == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(b)
			if err := check(content, inner, depth+1, parts); err != nil {
				return err
			}
		}
		b = b[n:]
	}
	return nil
}

// checkRecord checks a span or a log record, and tells which of them it is: the time of a log record
// stands in field 1 or 11, which are messages and bytes in a span.
func checkRecord(b []byte) (isLog bool, err error) {
	for rest := b; len(rest) > 0; {
		num, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return false, protowire.ParseError(n)
		}
		if kind == protowire.Fixed64Type && (num == 1 || num == 11) {
			isLog = true
		}
		m := protowire.ConsumeFieldValue(num, kind, rest[n:])
		if m < 0 {
			return false, protowire.ParseError(m)
		}
		rest = rest[n+m:]
	}
	if isLog {
		return true, checkShape(b, shapeLog)
	}
	return false, checkShape(b, shapeSpan)
}
