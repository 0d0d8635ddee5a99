package signal

// Unmarshal returns v as a T, by the rules of [Value.Decode]. It is the inverse of
// [Marshal]: a program marshals its own types where a Value goes in, such as a payload,
// and unmarshals where one comes out, such as an entity of a view.
//
// A part that does not fit is a [*ValueError] with its path, and the result is then the
// zero T. An absent value does not fit any type.
func Unmarshal[T any](v Value) (T, error) {
	var t, zero T
	if err := v.Decode(&t); err != nil {
		return zero, err
	}
	return t, nil
}

// Convert returns a Go value as a T by its JSON: it is [Marshal] and then [Unmarshal].
// Views of states, such as that of projection.Fold, are maps, slices and scalars, and
// Convert makes a program's own type of them or of their parts.
func Convert[T any](v any) (T, error) {
	value, err := Marshal(v)
	if err != nil {
		var zero T
		return zero, err
	}
	return Unmarshal[T](value)
}
