// Package answer makes the JSON of answers about recorded sessions: states,
// differences, hits of searches, causes, views of agents, reports of
// verification. The command line prints it with -o json, and the servers send
// it, so a program reads the same members everywhere.
//
// A View is a value for [Marshal]. Times are milliseconds of session time, and
// integers are exact. The package computes nothing about a session: it takes
// what the packages of the engine have found. It also has what all askers must
// understand alike: the path of a state and the expressions of searches.
//
// docs/glossary.md has the nouns of all packages.
package answer

import (
	"bytes"
	"encoding/json"

	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// Marshal is [json.Marshal] without the escaping for HTML.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// MomentView is a moment; the offset is in milliseconds.
type MomentView struct {
	Seq    uint64  `json:"seq"`
	Offset float64 `json:"offset"`
}

// ViewMoment returns the view of a moment.
func ViewMoment(m replay.Moment) MomentView {
	return MomentView{uint64(m.Seq), projection.Millis(m.Offset)}
}
