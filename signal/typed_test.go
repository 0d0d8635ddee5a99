package signal_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/signal"
)

// reading is a payload of a program's own type.
type reading struct {
	Sensor string             `json:"sensor"`
	Value  float64            `json:"value"`
	Count  uint64             `json:"count,omitempty"`
	Tags   []string           `json:"tags,omitempty"`
	Limits map[string]float64 `json:"limits,omitempty"`
}

// A value comes back as the type that it was marshalled from, directly and by the maps
// and slices of Value.Any.
func TestUnmarshalRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := reading{
			Sensor: rapid.StringMatching(`[a-zé"/]{0,6}`).Draw(t, "sensor"), Value: rapid.Float64Range(-1e12, 1e12).Draw(t, "value"),
			Count: rapid.Uint64().Draw(t, "count"),
		}
		if rapid.Bool().Draw(t, "more") {
			want.Tags, want.Limits = []string{"a", ""}, map[string]float64{"least": rapid.Float64Range(0, 1).Draw(t, "least")}
		}
		v, err := signal.Marshal(want)
		require.NoError(t, err)
		got, err := signal.Unmarshal[reading](v)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		got, err = signal.Convert[reading](v.Any())
		require.NoError(t, err)
		assert.Equal(t, want, got)
	})
}

// An error names the path, and nothing is returned of what did fit.
func TestUnmarshalErrors(t *testing.T) {
	v, err := signal.ParseValue([]byte(`{"sensor":"door","tags":["a",5]}`))
	require.NoError(t, err)
	got, err := signal.Unmarshal[reading](v)
	var wrong *signal.ValueError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "/tags/1", wrong.Path)
	assert.Zero(t, got)
	got, err = signal.Convert[reading](map[string]any{"sensor": "door", "limits": map[string]any{"a/b": "x"}})
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "/limits/a~1b", wrong.Path)
	assert.Zero(t, got)
	_, err = signal.Convert[reading](map[string]any{"value": func() {}})
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "/value", wrong.Path)
	_, err = signal.Unmarshal[reading](nil)
	assert.Error(t, err, "an absent value")
}

func ExampleUnmarshal() {
	payload, err := signal.Marshal(reading{Sensor: "door", Value: 21.5}) // of a signal, an intent, an effect
	if err != nil {
		fmt.Println(err)
		return
	}
	back, err := signal.Unmarshal[reading](payload)
	fmt.Println(back.Sensor, back.Value, err)
	_, err = signal.Unmarshal[struct{ Sensor int }](payload)
	fmt.Println(err)
	// Output:
	// door 21.5 <nil>
	// signal: /sensor: a string does not fit int
}
