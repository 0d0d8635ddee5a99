package signal

import (
	"math"
	"math/big"
	"strconv"

	"github.com/tinylib/msgp/msgp"
)

// maxDigits bounds the significant digits of a number. It is also what
// [strconv.ParseFloat] looks at, so up to it the rounding is right.
const maxDigits = 800

// digits skips decimal digits from i on.
func (p *parser) digits(i int) int {
	for i < len(p.src) && p.src[i] >= '0' && p.src[i] <= '9' {
		i++
	}
	return i
}

// number reads a number: first its grammar, then its value.
func (p *parser) number() bool {
	start := p.i
	i := start
	if p.src[i] == '-' {
		i++
	}
	whole := i
	i = p.digits(i)
	switch {
	case i == whole:
		p.i = i
		return p.unexpected("a digit")
	case p.src[whole] == '0' && i > whole+1:
		return p.fail(start, "a number with a leading zero")
	}
	if i == len(p.src) || p.src[i] != '.' && p.src[i] != 'e' && p.src[i] != 'E' {
		p.i = i
		return p.integer(start, whole, i)
	}
	f := float{negative: whole > start, text: p.src[start:], whole: p.src[whole:i]}
	if p.src[i] == '.' {
		point := i + 1
		if i = p.digits(point); i == point {
			p.i = i
			return p.unexpected("a digit")
		}
		f.fraction = p.src[point:i]
	}
	if i < len(p.src) && (p.src[i] == 'e' || p.src[i] == 'E') {
		i++
		if i < len(p.src) && (p.src[i] == '+' || p.src[i] == '-') {
			f.down = p.src[i] == '-'
			i++
		}
		power := i
		if i = p.digits(power); i == power {
			p.i = i
			return p.unexpected("a digit")
		}
		f.power = p.src[power:i]
	}
	p.i = i
	f.text = p.src[start:i]
	value, why := f.value()
	if why != "" {
		return p.fail(start, why)
	}
	p.dst = msgp.AppendFloat64(p.dst, value)
	return true
}

// integer keeps the integer literal src[start:end], whose digits start at whole.
func (p *parser) integer(start, whole, end int) bool {
	negative := whole > start
	var u uint64
	if end-whole <= 19 { // cannot overflow
		for _, c := range p.src[whole:end] {
			u = u*10 + uint64(c-'0')
		}
	} else {
		var err error
		if u, err = strconv.ParseUint(view(p.src[whole:end]), 10, 64); err != nil {
			return p.fail(start, "an integer that fits no 64 bits")
		}
	}
	switch {
	case negative && u > 1<<63:
		return p.fail(start, "an integer that fits no 64 bits")
	case negative:
		p.dst = msgp.AppendInt64(p.dst, -int64(u))
	default:
		p.dst = Uint(u).Append(p.dst)
	}
	return true
}

// float is a number literal with a fraction or an exponent, in its parts.
type float struct {
	text            []byte // all of it
	negative        bool
	whole, fraction []byte // digits
	down            bool   // the exponent is negative
	power           []byte // digits of the exponent
}

// value returns the double for f, or why no double keeps it.
func (f *float) value() (float64, string) {
	// Most literals end here: a double distinguishes decimals of so few digits,
	// the exponent is small, and a double keeps every integer below 2^53.
	if len(f.whole)+len(f.fraction) <= 17 && len(f.power) <= 3 {
		v, err := strconv.ParseFloat(view(f.text), 64)
		if err != nil || math.Abs(v) < 1<<53 {
			return f.judge(v, err)
		}
	}
	// The significant digits, and the power of ten that the first one after
	// the point would have if the point stood before all of them.
	digits := make([]byte, 0, min(len(f.whole)+len(f.fraction), maxDigits+1))
	point := len(f.whole)
	zeros := 0 // seen, not yet known to be followed by another digit
	for _, part := range [][]byte{f.whole, f.fraction} {
		for _, c := range part {
			switch {
			case c == '0' && len(digits) == 0:
				point--
			case c == '0':
				zeros++
			default:
				if len(digits)+zeros >= maxDigits {
					return 0, "a number with more than 800 significant digits"
				}
				for ; zeros > 0; zeros-- {
					digits = append(digits, '0')
				}
				digits = append(digits, c)
			}
		}
	}
	if len(digits) == 0 {
		v := 0.0
		if f.negative {
			v = math.Copysign(0, -1)
		}
		return v, ""
	}
	// The conversion would truncate runs of zeros and long exponents, so the
	// decimal is rewritten without them.
	plain := make([]byte, 0, len(digits)+32)
	if f.negative {
		plain = append(plain, '-')
	}
	plain = append(plain, "0."...)
	plain = append(plain, digits...)
	plain = append(plain, 'e')
	plain = strconv.AppendInt(plain, int64(point)+f.exponent(), 10)
	v, err := strconv.ParseFloat(view(plain), 64)
	v, why := f.judge(v, err)
	// A double holds no fraction from 2^53 on, but some decimals with one are
	// rounded to there.
	integral := math.Abs(v) >= 1<<53 && int64(point)+f.exponent() >= int64(len(digits))
	switch {
	case why != "" || len(digits) <= 17 && (!integral || written(v, digits)):
		return v, why
	}
	exact, _ := new(big.Rat).SetString(view(plain))
	if double := new(big.Rat).SetFloat64(v); exact == nil || double == nil || exact.Cmp(double) != 0 {
		if len(digits) <= 17 {
			return 0, "an integral number that a double does not keep"
		}
		return 0, "a number with more digits than a double keeps"
	}
	return v, ""
}

// written reports whether v is written with these significant digits. A decimal
// of v's magnitude then reads back as v: 1e23 lies between two doubles, and its
// nearest double is written 1e+23.
func written(v float64, digits []byte) bool {
	var buffer [32]byte
	shortest := strconv.AppendFloat(buffer[:0], math.Abs(v), 'e', -1, 64)
	at := 0
	for _, c := range shortest {
		switch {
		case c == 'e':
			return at == len(digits)
		case c == '.':
		case at == len(digits) || c != digits[at]:
			return false
		default:
			at++
		}
	}
	return false
}

// exponent returns the power, cut to a range far beyond any that a text of
// maxText could bring back to a double's.
func (f *float) exponent() int64 {
	const most = 1 << 40
	var e int64
	for _, c := range f.power {
		e = min(e*10+int64(c-'0'), most)
	}
	if f.down {
		return -e
	}
	return e
}

// judge refuses a conversion that overflowed, or that gave zero for another number.
func (f *float) judge(v float64, err error) (float64, string) {
	if err != nil || math.IsInf(v, 0) {
		return 0, "a number too great for a double"
	}
	if v == 0 {
		for _, part := range [][]byte{f.whole, f.fraction} {
			for _, c := range part {
				if c != '0' {
					return 0, "a number too small for a double"
				}
			}
		}
	}
	return v, ""
}
