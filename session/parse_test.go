package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzParseEntryJSON(f *testing.F) {
	f.Add([]byte(`{"seq":1,"at":0,"kind":"define","hash":"","define":{"w":"one"}}`))
	f.Add([]byte(`{"seq":2,"at":1.5,"kind":"signal","hash":"","id":"a","type":"b","timestamp":1,"source":"c","payload":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := ParseEntryJSON(text)
		if err != nil {
			require.ErrorIs(t, err, ErrEntryJSON)
			return
		}
		require.NotZero(t, e.Seq)
		require.True(t, e.Kind.Valid())
	})
}
