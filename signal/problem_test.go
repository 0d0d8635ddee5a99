package signal_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/signal"
)

// A problem is recorded with its signal, so its text is part of the format of entry
// data. There is one case for each reason; no expected text may change.
func TestProblemsAreFormat(t *testing.T) {
	for text, want := range map[string]string{
		envelope("tool_call", `{"agentId":"a"}`):                         `/payload/toolName: is required`,
		envelope("tool_call", `{"toolName":"x","agentId":"a","a/b~":1}`): `/payload/a~1b~0: is not a field of tool_call`,
		envelope("x", `{},"`+strings.Repeat("ü", 40)+`":1`):              `/` + strings.Repeat("ü", 32) + `…: is not a field of a signal`,
		envelope("tool_call", `{"toolName":null,"agentId":"a"}`):         `/payload/toolName: must be a string, not null`,
		envelope("tool_call", `{"toolName":1,"agentId":"a"}`):            `/payload/toolName: must be a string, not an integer`,
		envelope("tool_call", `{"toolName":1.5,"agentId":"a"}`):          `/payload/toolName: must be a string, not a number`,
		envelope("tool_call", `{"toolName":true,"agentId":"a"}`):         `/payload/toolName: must be a string, not a boolean`,
		envelope("tool_call", `{"toolName":{},"agentId":"a"}`):           `/payload/toolName: must be a string, not an object`,
		envelope("x", `[]`): `/payload: must be an object, not an array`,
		envelope("token_usage", `{"agentId":"a","promptTokens":1.5,"completionTokens":0}`):         `/payload/promptTokens: must be an integer, not 1.5`,
		envelope("token_usage", `{"agentId":"a","promptTokens":1,"completionTokens":0,"cost":-1}`): `/payload/cost: must be at least 0, not -1`,
		envelope("error", `{"message":"m","severity":"fatal"}`):                                    `/payload/severity: "fatal" is none of warning, error, critical`,
	} {
		s, err := signal.ParseLenient([]byte(text))
		require.NoErrorf(t, err, "%s", text)
		assert.Equal(t, want, s.Problem, text)
	}
}
