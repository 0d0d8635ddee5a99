package statecmd

import (
	"encoding/json"
	"fmt"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// showPatch writes a JSON Patch, at most the given number of its operations. Its
// error is [cli.AnswerNo] if the patch is not empty.
func showPatch(a *cli.App, patch []byte, most int) error {
	var ops []json.RawMessage
	if err := json.Unmarshal(patch, &ops); err != nil {
		return err
	}
	o := a.Output()
	for _, op := range ops[:min(most, len(ops))] {
		text, err := patchLine(op)
		if err != nil {
			return err
		}
		if err := o.Item(text, op); err != nil {
			return err
		}
	}
	if err := o.End(); err != nil {
		return err
	}
	if len(ops) > most {
		fmt.Fprintf(a.Stderr, "sajou-replay: showed %d of %d differences; name a PATH, or use --all\n", most, len(ops))
	}
	if len(ops) > 0 {
		return cli.AnswerNo
	}
	return nil
}

// patchLine returns an operation of a JSON Patch as a line of text.
func patchLine(op json.RawMessage) (string, error) {
	var fields struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		From  string          `json:"from"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(op, &fields); err != nil {
		return "", err
	}
	text := fmt.Sprintf("%-7s  %s", fields.Op, fields.Path)
	if fields.From != "" {
		text += "  from " + fields.From
	}
	if fields.Value != nil {
		text += "  " + string(fields.Value)
	}
	return termtext.Printable(text), nil
}

// patchLines returns the operations of a JSON Patch as lines of text.
func patchLines(patch []byte) ([]string, error) {
	var ops []json.RawMessage
	if err := json.Unmarshal(patch, &ops); err != nil {
		return nil, err
	}
	lines := make([]string, len(ops))
	for i, op := range ops {
		var err error
		if lines[i], err = patchLine(op); err != nil {
			return nil, err
		}
	}
	return lines, nil
}
