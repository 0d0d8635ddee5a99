package history_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/agents/history"
)

func TestNoAgentError(t *testing.T) {
	for want, err := range map[string]history.NoAgentError{
		`sajou: session "s" never had an agent`:                           {Session: "s", Agent: "a"},
		`sajou: session "s" never had an agent "a"; it had b, c`:          {Session: "s", Agent: "a", Known: []string{"b", "c"}},
		`sajou: session "s" never had an agent "a"; it had b, c and more`: {Session: "s", Agent: "a", Known: []string{"b", "c"}, More: true},
	} {
		assert.EqualError(t, &err, want)
	}
}
