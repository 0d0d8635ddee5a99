package msgptest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/internal/msgptest"
)

func Example() {
	b := []byte{0x92, 0x01, 0x81, 0xa1, 'k', 0x93, 0x02, 0x03, 0x04} // [1, {"k": [2, 3, 4]}]
	fmt.Println(msgptest.Spans(b, 0))
	fmt.Printf("%x\n", msgptest.Get(b, 1, 1, 2))
	fmt.Printf("%x\n", msgptest.Set(b, []byte{0xc0}, 1, 1, 0))
	fmt.Printf("%x\n", msgptest.Swap(b, 0, 2, 1, 1))
	// Output:
	// [{0 9} {1 2} {2 9} {3 5} {5 9} {6 7} {7 8} {8 9}]
	// 04
	// 920181a16b93c00304
	// 920181a16b93040302
}

func TestDecode(t *testing.T) {
	b := msgp.AppendArrayHeader(nil, 5)
	b = msgp.AppendInt64(b, -3)
	b = msgp.AppendUint64(b, 300)
	b = msgp.AppendUint64(b, 1<<63)
	b = msgp.AppendString(msgp.AppendMapHeader(b, 1), "k")
	b = msgp.AppendUint64(b, 7)
	b = msgp.AppendNil(b)
	got, err := msgptest.Decode(b)
	require.NoError(t, err)
	assert.Equal(t, []any{int64(-3), int64(300), uint64(1 << 63), map[string]any{"k": int64(7)}, nil}, got)
	_, err = msgptest.Decode(append(b, 0))
	assert.Error(t, err)
}
