package rehearsal

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
)

// CompareValues runs a scenario and describes each value of the stage at the end that is
// not the expected one. Numbers are compared by value.
func CompareValues(s *Scenario) (differences []string) {
	if len(s.Values) == 0 {
		return nil
	}
	_, st, _ := run(s, math.MaxInt)
	view := st.View()
	for _, want := range s.Values {
		got, ok := lookup(view, namesOf(want.Path)[1:])
		var wanted any
		if err := json.Unmarshal(want.Value.AppendJSON(nil), &wanted); err != nil {
			wanted = nil // a value of a signal is valid JSON
		}
		if !ok && wanted == nil {
			continue
		}
		text, err := json.Marshal(got)
		var have any
		if err == nil {
			err = json.Unmarshal(text, &have)
		}
		switch {
		case !ok:
			differences = append(differences, fmt.Sprintf("%s is not there, want %s", want.Path, want.Value.AppendJSON(nil)))
		case err != nil || !equalValues(have, wanted):
			differences = append(differences, fmt.Sprintf("%s is %s, want %s", want.Path, text, want.Value.AppendJSON(nil)))
		}
	}
	return differences
}

// namesOf splits a path with dots or a JSON Pointer.
func namesOf(path string) []string {
	if strings.HasPrefix(path, "/") {
		return jsonpointer.Split(path)
	}
	return strings.Split(path, ".")
}

func lookup(view any, names []string) (any, bool) {
	for _, name := range names {
		var ok bool
		if view, ok = jsonpointer.Member(view, name); !ok {
			return nil, false
		}
	}
	return view, true
}
