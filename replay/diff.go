package replay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/wI2L/jsondiff"
)

// Diff returns the JSON Patch (RFC 6902) that makes b of a, "[]" when they are
// equal. Both are views: values that encoding/json writes. Numbers are compared
// by their digits, so 64-bit integers are exact. Values of two kinds at the
// root give an add to the path "", which replaces the whole.
func Diff(a, b any) ([]byte, error) {
	// Factorize, which would find moved values, stays off: it has made patches
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
