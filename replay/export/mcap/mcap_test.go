package mcap_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/export/mcap"
	"github.com/sajou-dev/sajou-go/replay/fork"
	"github.com/sajou-dev/sajou-go/session"
)

// cursor reads fields by the specification of MCAP, which has no other source here.
type cursor struct {
	t *testing.T
	b []byte
}

func (c *cursor) take(n int) []byte {
	c.t.Helper()
	require.LessOrEqual(c.t, n, len(c.b), "a field goes beyond its record")
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) u8() byte     { return c.take(1)[0] }
func (c *cursor) u16() uint16  { return binary.LittleEndian.Uint16(c.take(2)) }
func (c *cursor) u32() uint32  { return binary.LittleEndian.Uint32(c.take(4)) }
func (c *cursor) u64() uint64  { return binary.LittleEndian.Uint64(c.take(8)) }
func (c *cursor) text() string { return string(c.take(int(c.u32()))) }
func (c *cursor) sub() *cursor { return &cursor{c.t, c.take(int(c.u32()))} }

func (c *cursor) end() {
	c.t.Helper()
	require.Empty(c.t, c.b, "bytes after the last field")
}

// record reads the record at an offset of a file.
func record(t *testing.T, file []byte, at uint64) (op byte, content *cursor, length uint64) {
	t.Helper()
	c := cursor{t, file[at:]}
	op = c.u8()
	n := c.u64()
	return op, &cursor{t, c.take(int(n))}, 9 + n
}

type message struct {
	topic string
	time  uint64
	data  string
}

type channel struct{ topic, encoding, schema string }

// read reads a whole file twice, record by record and by its index, and compares them.
func read(t *testing.T, file []byte) (messages []message, metadata map[string]string) {
	t.Helper()
	const magic = "\x89MCAP0\r\n"
	require.Equal(t, magic, string(file[:8]))
	require.Equal(t, magic, string(file[len(file)-8:]))
	z, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer z.Close()

	schemas, channels := map[uint16]string{}, map[uint16]channel{}
	places := map[uint64]message{} // by chunk and offset
	type placed struct{ chunk, time, offset uint64 }
	var indexed []placed
	var chunks []uint64
	counts := map[uint16]uint64{}
	sequence := map[uint16]uint32{}
	var chunkAt uint64
	metadata = map[string]string{}
	at := uint64(8)
	ended := false
	for n := 0; !ended; n++ {
		op, c, length := record(t, file, at)
		require.Equal(t, n == 0, op == 1, "the header comes first")
		switch op {
		case 1:
			assert.Empty(t, c.text())
			assert.Equal(t, "sajou-go", c.text())
		case 3:
			id := c.u16()
			name := c.text()
			assert.Equal(t, "jsonschema", c.text())
			schemas[id] = name
			_, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(c.text())))
			require.NoError(t, err)
		case 4:
			id := c.u16()
			schema, known := schemas[c.u16()]
			require.True(t, known)
			channels[id] = channel{c.text(), c.text(), schema}
			assert.Equal(t, "json", channels[id].encoding)
			c.sub().end()
		case 6:
			from, to, size, sum := c.u64(), c.u64(), c.u64(), c.u32()
			require.Equal(t, "zstd", c.text())
			data, err := z.DecodeAll(c.take(int(c.u64())), nil)
			require.NoError(t, err)
			require.Len(t, data, int(size))
			require.Equal(t, sum, crc32.ChecksumIEEE(data))
			chunkAt = at
			chunks = append(chunks, at)
			least, most := ^uint64(0), uint64(0)
			for inside := uint64(0); inside < size; {
				op, m, length := record(t, data, inside)
				require.Equal(t, byte(5), op)
				id := m.u16()
				require.Equal(t, sequence[id], m.u32())
				sequence[id]++
				counts[id]++
				logged := m.u64()
				require.Equal(t, logged, m.u64())
				require.Contains(t, channels, id)
				msg := message{channels[id].topic, logged, string(m.b)}
				messages = append(messages, msg)
				places[chunkAt<<32|inside] = msg
				least, most = min(least, logged), max(most, logged)
				inside += length
			}
			require.Equal(t, []uint64{least, most}, []uint64{from, to})
			c.end()
		case 7:
			id := c.u16()
			list := c.sub()
			last := uint64(0)
			for len(list.b) > 0 {
				p := placed{chunkAt, list.u64(), list.u64()}
				require.GreaterOrEqual(t, p.time, last)
				last = p.time
				require.Equal(t, channels[id].topic, places[p.chunk<<32|p.offset].topic)
				indexed = append(indexed, p)
			}
			c.end()
		case 0x0c:
			assert.Equal(t, "sajou", c.text())
			for list := c.sub(); len(list.b) > 0; {
				key := list.text()
				metadata[key] = list.text()
			}
			c.end()
		case 0x0f:
			require.Equal(t, crc32.ChecksumIEEE(file[:at]), c.u32(), "the sum of the data section")
			c.end()
			ended = true
		default:
			t.Fatalf("a record %#x in the data section", op)
		}
		at += length
	}
	require.Len(t, indexed, len(messages))
	for _, p := range indexed {
		require.Equal(t, p.time, places[p.chunk<<32|p.offset].time)
	}

	summary := at
	op, footer, length := record(t, file, uint64(len(file)-8-29))
	require.Equal(t, byte(2), op)
	require.Equal(t, uint64(29), length)
	require.Equal(t, summary, footer.u64())
	offsets := footer.u64()
	require.Equal(t, crc32.ChecksumIEEE(file[summary:len(file)-12]), footer.u32(), "the sum of the summary")
	var order []byte
	groups := map[byte][2]uint64{}
	var seen []uint64
	for at < uint64(len(file)-8-29) {
		op, c, length := record(t, file, at)
		if op != 0x0e {
			g := groups[op]
			if g[1] == 0 {
				order = append(order, op)
				g[0] = at
			}
			groups[op] = [2]uint64{g[0], g[1] + length}
		}
		switch op {
		case 3, 4:
		case 0x0b:
			require.Equal(t, uint64(len(messages)), c.u64())
			require.Equal(t, uint16(len(schemas)), c.u16())
			require.Equal(t, uint32(len(channels)), c.u32())
			require.Equal(t, []uint32{0, 1, uint32(len(chunks))}, []uint32{c.u32(), c.u32(), c.u32()})
			times := make([]uint64, len(messages))
			for i, m := range messages {
				times[i] = m.time
			}
			require.Equal(t, []uint64{slices.Min(times), slices.Max(times)}, []uint64{c.u64(), c.u64()})
			for list := c.sub(); len(list.b) > 0; {
				id := list.u16()
				require.Equal(t, counts[id], list.u64())
			}
			c.end()
		case 0x0d:
			start, n := c.u64(), c.u64()
			op, _, length := record(t, file, start)
			require.Equal(t, byte(0x0c), op)
			require.Equal(t, length, n)
			require.Equal(t, "sajou", c.text())
			c.end()
		case 0x08:
			c.u64()
			c.u64()
			start, n := c.u64(), c.u64()
			seen = append(seen, start)
			op, _, length := record(t, file, start)
			require.Equal(t, byte(6), op)
			require.Equal(t, length, n)
			for list := c.sub(); len(list.b) > 0; {
				id := list.u16()
				op, index, _ := record(t, file, list.u64())
				require.Equal(t, byte(7), op)
				require.Equal(t, id, index.u16())
			}
			c.u64()
			require.Equal(t, "zstd", c.text())
			c.u64()
			c.u64()
			c.end()
		case 0x0e:
			require.GreaterOrEqual(t, at, offsets)
			of := c.u8()
			require.Equal(t, groups[of], [2]uint64{c.u64(), c.u64()})
			order = slices.DeleteFunc(order, func(o byte) bool { return o == of })
			c.end()
		default:
			t.Fatalf("a record %#x in the summary", op)
		}
		at += length
	}
	require.Empty(t, order, "groups without an offset")
	require.Equal(t, chunks, seen)
	return messages, metadata
}

func written(t *testing.T, r *replay.Replay, from, to eventlog.Seq) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, mcap.Write(t.Context(), &out, r, from, to))
	return out.Bytes()
}

func of(messages []message, topic string) (data []string) {
	for _, m := range messages {
		if m.topic == topic {
			data = append(data, m.data)
		}
	}
	return data
}

// TestFile reads files by the specification: they have all entries and commands, each at
// its time, and the stage at the end.
func TestFile(t *testing.T) {
	_, r := enginetest.Recorded(t, enginetest.BustleSignals(5, 60), enginetest.Bustle)
	messages, metadata := read(t, written(t, r, 0, 0))
	assert.Equal(t, map[string]string{"session": "a", "head": r.Head().String(), "from": "1", "to": "65"}, metadata)
	origin := time.UnixMilli(1000).UnixNano() // the first signal is at session time 0
	var want []string
	for e, err := range r.Entries(t.Context(), 1) {
		require.NoError(t, err)
		want = append(want, string(session.AppendEntryJSON(nil, &e)))
		i := slices.IndexFunc(messages, func(m message) bool { return m.data == want[len(want)-1] })
		require.GreaterOrEqual(t, i, 0)
		assert.Equal(t, uint64(origin+int64(e.At)), messages[i].time)
	}
	assert.Equal(t, want, of(messages, "/entries"))
	var commands choreography.RecordingSink
	require.NoError(t, r.Commands(t.Context(), replay.Moment{}, replay.Moment{Seq: r.Head().Seq, Offset: time.Minute}, 0, &commands))
	want = nil
	for _, c := range commands.Commands {
		if c.Kind != choreography.CommandUpdate {
			data, err := json.Marshal(c)
			require.NoError(t, err)
			want = append(want, string(data))
		}
	}
	assert.Equal(t, want, of(messages, "/commands"))
	fold, err := r.At(t.Context(), replay.Moment{Seq: r.Head().Seq, Offset: time.Minute})
	require.NoError(t, err)
	last, err := json.Marshal(fold.View()["stage"])
	require.NoError(t, err)
	stages := of(messages, "/stage")
	assert.JSONEq(t, string(last), stages[len(stages)-1])
	for i := range stages[1:] {
		assert.NotEqual(t, stages[i], stages[i+1])
	}
}

// TestReaders: independent readers find what the file has. The one of the authors of the
// format runs where .ci/mcap has installed it.
func TestReaders(t *testing.T) {
	_, r := enginetest.Recorded(t, enginetest.BustleSignals(5, 600), enginetest.Bustle)
	file := written(t, r, 0, 0)
	messages, metadata := read(t, file)
	modules := os.Getenv("MCAP_CORE")
	if modules == "" {
		return // the reader above has checked the file
	}
	node := exec.CommandContext(t.Context(), "node", "testdata/read.mjs", modules)
	node.Stdin, node.Stderr = bytes.NewReader(file), os.Stderr
	out, err := node.Output()
	require.NoError(t, err)
	var got []message
	for line := range strings.Lines(string(out)) {
		var one struct {
			Topic, Time, Data, Name string
			Metadata                map[string]string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		if one.Name != "" {
			assert.Equal(t, metadata, one.Metadata)
			continue
		}
		at, err := strconv.ParseUint(one.Time, 10, 64)
		require.NoError(t, err)
		got = append(got, message{one.Topic, at, one.Data})
	}
	assert.Equal(t, messages, got)
	t.Logf("@mcap/core read %d messages", len(got))
}

// A stage is written as encoding/json does, but for the order of its members.
func TestStageJSON(t *testing.T) {
	_, r := enginetest.Recorded(t, append(enginetest.BustleSignals(3, 40),
		`{"id":"x","type":"text_delta","timestamp":90000,"source":"s","payload":{"agentId":"<a>\u2028\"é","content":"\\ \u0007"}}`), enginetest.Bustle)
	messages, _ := read(t, written(t, r, 0, 0))
	var last string
	for step, err := range r.Moments(t.Context(), replay.MomentRange{From: replay.Moment{Seq: 1}, To: replay.Moment{Seq: r.Head().Seq}, Rest: true}, replay.NeedsState) {
		require.NoError(t, err)
		view, err := json.Marshal(step.View()[session.ProjectionStage])
		require.NoError(t, err)
		for len(messages) > 0 && messages[0].topic != "/stage" {
			messages = messages[1:]
		}
		if len(messages) > 0 && string(view) != last {
			require.JSONEq(t, string(view), messages[0].data, "moment %v", step.Moment)
			messages = messages[1:]
		}
		last = string(view)
	}
	assert.Empty(t, of(messages, "/stage"))
}

// The file of a fork has the label.
func TestFork(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	ses := enginetest.BeginManual(t, eng, "a")
	_, err := ses.Signal(t.Context(), enginetest.TaskSignal(1, 10))
	require.NoError(t, err)
	_, _, err = eng.Fork(t.Context(), "a", "b", fork.Config{})
	require.NoError(t, err)
	r, err := eng.Replay("b")
	require.NoError(t, err)
	_, metadata := read(t, written(t, r, 0, 0))
	assert.Contains(t, metadata["fork"], `fork of "a" at 2, head 2:`)
}

// TestChunks: a file of several chunks has all messages.
func TestChunks(t *testing.T) {
	_, r := enginetest.Recorded(t, enginetest.BustleSignals(6, 2500))
	file := written(t, r, 0, 0)
	messages, _ := read(t, file)
	assert.Len(t, of(messages, "/entries"), int(r.Head().Seq))
	assert.Greater(t, bytes.Count(file, []byte("zstd")), 3, "chunks and their indexes")
}

// TestRange: a part has its entries, and the commands that its first one causes.
func TestRange(t *testing.T) {
	_, r := enginetest.Recorded(t, []string{
		`{"id":"0","type":"note","timestamp":1000,"source":"s","payload":{}}`,
		`{"id":"1","type":"ring","timestamp":1000,"source":"s","payload":{}}`,
		`{"id":"2","type":"ring","timestamp":1500,"source":"s","payload":{}}`,
	}, `{"on":"ring","steps":[{"action":"playSound","entity":"bell"}]}`)
	messages, _ := read(t, written(t, r, 4, 4))
	assert.Len(t, of(messages, "/entries"), 1)
	assert.Len(t, of(messages, "/commands"), 1)
	whole, _ := read(t, written(t, r, 1, 5))
	assert.Len(t, of(whole, "/commands"), 2)
}

// TestLate: a late signal is marked as everywhere else, in a part too.
func TestLate(t *testing.T) {
	_, r := enginetest.Recorded(t, []string{
		`{"id":"0","type":"note","timestamp":2000,"source":"s","payload":{}}`,
		`{"id":"1","type":"note","timestamp":1000,"source":"s","payload":{}}`,
	})
	last := r.Head().Seq
	for _, from := range []eventlog.Seq{1, last} {
		messages, _ := read(t, written(t, r, from, last))
		entries := of(messages, "/entries")
		assert.Contains(t, entries[len(entries)-1], `"late":true`)
		assert.Equal(t, 1, strings.Count(strings.Join(entries, "\n"), `"late":true`))
	}
}
