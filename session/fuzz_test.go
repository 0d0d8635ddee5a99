package session_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
)

// No bytes make trouble when a state is restored from them, and what is
// restored is written as the very bytes it was restored from: there is one form
// of a state, and so one digest.
func FuzzRestoreState(f *testing.F) {
	for _, p := range session.Projections(session.ProjectionConfig{}) {
		f.Add(p.New().Append(nil))
	}
	for _, entries := range recorded(f) {
		fold := projection.NewFold(session.Projections(session.ProjectionConfig{}), eventlog.Genesis("fuzz"))
		for i := range entries {
			require.NoError(f, fold.Apply(&entries[i]))
			if i%7 == 0 {
				for _, p := range fold.Image().Parts {
					f.Add(p.Data)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { restoreAny(t, data) })
}

// restoreAny restores every projection from bytes, and fails the test if one of
// them takes them for a state that it does not write so. It reports how many do.
func restoreAny(t *testing.T, data []byte) (restored int) {
	t.Helper()
	for _, p := range session.Projections(session.ProjectionConfig{}) {
		was := bytes.Clone(data)
		st, err := p.Restore(data)
		if !bytes.Equal(was, data) {
			t.Errorf("%s: restoring changed the bytes", p.Name)
		}
		if err != nil {
			continue
		}
		restored++
		if again := st.Append(nil); !bytes.Equal(again, data) {
			t.Errorf("%s: restored from %x\nwritten as     %x", p.Name, data, again)
		}
		_ = st.View()
	}
	return restored
}
