package agents_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/msgptest"
	"github.com/sajou-dev/sajou-go/signal"
)

// nested is an object of that many levels.
func nested(t *testing.T, levels int) []byte {
	t.Helper()
	v, err := signal.ParseValue([]byte(strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)))
	require.NoError(t, err)
	return v
}

// A state that is well formed, and that no effects lead to, is refused.
func TestImpossibleWorlds(t *testing.T) {
	w, _ := busy(t)
	whole := w.AppendState(nil)
	const seq, simTime, kind, metadata, entities, places, relations = 2, 3, 4, 5, 6, 7, 8
	text := func(s string) []byte { return msgp.AppendString(nil, s) }
	large := msgp.AppendString(msgp.AppendString(msgp.AppendMapHeader(nil, 1), "a"), strings.Repeat("x", world.MaxEntityBytes))
	for name, data := range map[string][]byte{
		"an entity that is no object":      msgptest.Set(whole, text("x"), entities, 0, 1),
		"an entity that is too large":      msgptest.Set(whole, large, entities, 0, 1),
		"an entity that is too deep":       msgptest.Set(whole, nested(t, world.MaxEntityDepth+1), entities, 0, 1),
		"an entity without an id":          msgptest.Set(whole, text(""), entities, 0, 0),
		"an entity of a long id":           msgptest.Set(whole, text(strings.Repeat("x", world.MaxID+1)), entities, 0, 0),
		"entities in another order":        msgptest.Swap(whole, 0, 1, entities),
		"an entity twice":                  msgptest.Set(whole, msgptest.Get(whole, entities, 0), entities, 1),
		"metadata that are too large":      msgptest.Set(whole, large, metadata),
		"metadata that are too deep":       msgptest.Set(whole, nested(t, world.MaxEntityDepth+1), metadata),
		"metadata of the world's own":      msgptest.Set(whole, append([]byte{0x81}, append(text("last_effect_seq"), 1)...), metadata),
		"a time that is not finite":        msgptest.Set(whole, []byte{0xcb, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0}, simTime),
		"a negative number of effects":     msgptest.Set(whole, []byte{0xff}, seq),
		"a kind that is too long":          msgptest.Set(whole, text(strings.Repeat("x", world.MaxID+1)), kind),
		"a place beyond all":               msgptest.Set(whole, msgp.AppendFloat64(nil, 1e300), places, 0, 1),
		"a place below zero":               msgptest.Set(whole, []byte{0xcb, 0x80, 0, 0, 0, 0, 0, 0, 0}, places, 0, 3),
		"places in another order":          msgptest.Swap(whole, 0, 1, places),
		"relations of nothing":             msgptest.Set(whole, []byte{0x90}, relations, 0, 1),
		"a relation of no finite strength": msgptest.Set(whole, []byte{0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0}, relations, 0, 1, 0, 2),
		"a handler that is not there":      msgptest.Set(whole, []byte{0x90}, 1),
	} {
		_, err := world.RestoreWorld(data, handlers...)
		if !errors.Is(err, world.ErrState) && !errors.Is(err, world.ErrStateVersion) {
			t.Errorf("%s: err = %v, want ErrState", name, err)
		}
	}
	if _, err := world.RestoreWorld(msgptest.Set(whole, nested(t, world.MaxEntityDepth), entities, 0, 1), handlers...); err != nil {
		t.Errorf("an entity of as many levels as are allowed: %v", err)
	}
}
