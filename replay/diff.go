package replay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/wI2L/jsondiff"
)

// Diff returns the JSON Patch (RFC 6902) from a to b, "[]" if they are equal. Both are
// views: values that encoding/json can encode. Numbers are compared by their digits,
// so 64-bit integers are exact. Values of different kinds at the root give an add to
// the path "", which replaces the root.
func Diff(a, b any) ([]byte, error) {
	// The Factorize option, which finds moved values, is off: it has produced patches
	// that did not lead from a to b.
	patch, err := jsondiff.Compare(a, b, jsondiff.UnmarshalFunc(unmarshalExact))
	if err != nil {
		return nil, fmt.Errorf("replay: diff: %w", err)
	}
	if len(patch) == 0 {
		return []byte("[]"), nil
	}
	out, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("replay: diff: %w", err)
	}
	return out, nil
}

func unmarshalExact(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}
