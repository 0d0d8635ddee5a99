package rl

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/signal"
)

// What an episode's records are read from may be anything: it is refused, or it says
// the same when it is written again.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"episode":1,"seed":42,"agents":["a","b"]}`))
	f.Add([]byte(`{"episode":1,"step":2,"turn":"a","after":31,"agents":[{"agent":"a","req_id":"rl/1/2","global_seq":9,"reward":0.5},` +
		`{"agent":"b","code":"COOLDOWN_ACTIVE","reason":"Move again after 1s","reward":-1,"truncated":true}]}`))
	f.Add([]byte(`{"episode":-1,"agents":7}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := signal.ParseValue(text)
		if err != nil {
			return
		}
		check[episode](t, v)
		if m, ok := check[mark](t, v); ok {
			for i := range m.Agents {
				j := &m.Agents[i]
				if j.recall(); (j.rejection != nil) != (j.Code != "") {
					t.Errorf("%q is recalled as %v", j.Code, j.rejection)
				}
			}
		}
	})
}

func check[T any](t *testing.T, v signal.Value) (T, bool) {
	t.Helper()
	first, err := decode[T](v)
	if err != nil {
		assert.ErrorIsf(t, err, ErrRecord, "%v: %v, want ErrRecord", v, err)
		return first, false
	}
	again, err := payload(first)
	require.NoErrorf(t, err, "%+v", first)
	second, err := decode[T](again)
	if err != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("%v: %+v, and again %+v, %v", v, first, second, err)
	}
	return first, true
}
