package mcap

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// magic begins and ends a file.
const magic = "\x89MCAP0\r\n"

// The kinds of records.
const (
	opHeader        = 0x01
	opFooter        = 0x02
	opSchema        = 0x03
	opChannel       = 0x04
	opMessage       = 0x05
	opChunk         = 0x06
	opMessageIndex  = 0x07
	opChunkIndex    = 0x08
	opStatistics    = 0x0b
	opMetadata      = 0x0c
	opMetadataIndex = 0x0d
	opSummaryOffset = 0x0e
	opDataEnd       = 0x0f
)

// chunkSize is the size at which a chunk is full, before compression.
const chunkSize = 1 << 20

// channel describes one channel of a file. Its messages are JSON.
type channel struct {
	topic      string
	schemaName string
	schema     string // a JSON schema
}

// writer writes a file by the specification of MCAP, version 0. Channels have the ids 1,
// 2, … in their order, and so have their schemas. It keeps one chunk, and the index of
// all chunks.
type writer struct {
	w      io.Writer
	at     uint64 // bytes written
	crc    hash.Hash32
	record []byte
	zstd   *zstd.Encoder

	channels []channel
	counts   []uint64 // messages of each channel

	chunk      []byte
	index      map[uint16][]indexed // of the chunk
	from, to   uint64               // times of the chunk
	chunks     []chunkIndex
	metadata   []metadataIndex
	first, end uint64 // times of all messages
}

// indexed is the place of a message in its chunk.
type indexed struct{ time, offset uint64 }

type chunkIndex struct {
	from, to              uint64
	start, length         uint64
	indexes               map[uint16]uint64
	indexLength           uint64
	compressed, unpressed uint64
}

type metadataIndex struct {
	start, length uint64
	name          string
}

// newWriter writes the beginning of a file: its header and its channels.
func newWriter(w io.Writer, channels []channel) (*writer, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	m := &writer{w: w, crc: crc32.NewIEEE(), zstd: z, channels: channels, counts: make([]uint64, len(channels)), index: map[uint16][]indexed{}}
	if err := m.raw([]byte(magic)); err != nil {
		return nil, err
	}
	if err := m.put(opHeader, text(text(nil, ""), "sajou-go")); err != nil {
		return nil, err
	}
	return m, m.declare()
}

// declare writes the schemas and the channels.
func (m *writer) declare() error {
	for i := range m.channels {
		if err := m.put(opSchema, m.schemaOf(i)); err != nil {
			return err
		}
	}
	for i := range m.channels {
		if err := m.put(opChannel, m.channelOf(i)); err != nil {
			return err
		}
	}
	return nil
}

func (m *writer) schemaOf(i int) []byte {
	c := &m.channels[i]
	b := binary.LittleEndian.AppendUint16(nil, uint16(i+1))
	b = text(text(b, c.schemaName), "jsonschema")
	return text(b, c.schema)
}

func (m *writer) channelOf(i int) []byte {
	c := &m.channels[i]
	b := binary.LittleEndian.AppendUint16(nil, uint16(i+1))
	b = binary.LittleEndian.AppendUint16(b, uint16(i+1))
	b = text(text(b, c.topic), "json")
	return binary.LittleEndian.AppendUint32(b, 0) // no metadata
}

// text appends a text with its length.
func text(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

// raw writes bytes and adds them to the sum of the section.
func (m *writer) raw(b []byte) error {
	m.crc.Write(b)
	n, err := m.w.Write(b)
	m.at += uint64(n)
	return err
}

// put writes a record.
func (m *writer) put(op byte, content []byte) error {
	m.record = appendRecord(m.record[:0], op, content)
	return m.raw(m.record)
}

func appendRecord(dst []byte, op byte, content []byte) []byte {
	dst = append(dst, op)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(content)))
	return append(dst, content...)
}

// note writes facts about the file.
func (m *writer) note(name string, facts map[string]string) error {
	var list []byte
	for _, key := range slices.Sorted(maps.Keys(facts)) {
		list = text(text(list, key), facts[key])
	}
	start := m.at
	if err := m.put(opMetadata, text(text(nil, name), string(list))); err != nil {
		return err
	}
	m.metadata = append(m.metadata, metadataIndex{start, m.at - start, name})
	return nil
}

// message adds a message to the chunk, and writes the chunk if it is full. The channel
// counts from 0; time is in nanoseconds.
func (m *writer) message(channel int, time uint64, data []byte) error {
	id := uint16(channel + 1)
	if len(m.chunk) == 0 {
		m.from, m.to = time, time
	}
	if m.counts0() == 0 {
		m.first, m.end = time, time
	}
	m.from, m.to = min(m.from, time), max(m.to, time)
	m.first, m.end = min(m.first, time), max(m.end, time)
	m.index[id] = append(m.index[id], indexed{time, uint64(len(m.chunk))})
	b := append(m.chunk, opMessage)
	b = binary.LittleEndian.AppendUint64(b, uint64(2+4+8+8+len(data)))
	b = binary.LittleEndian.AppendUint16(b, id)
	b = binary.LittleEndian.AppendUint32(b, uint32(m.counts[channel])) // the sequence wraps
	b = binary.LittleEndian.AppendUint64(b, time)
	b = binary.LittleEndian.AppendUint64(b, time)
	m.chunk = append(b, data...)
	m.counts[channel]++
	if len(m.chunk) >= chunkSize {
		return m.flush()
	}
	return nil
}

// counts0 is the number of all messages.
func (m *writer) counts0() (n uint64) {
	for _, c := range m.counts {
		n += c
	}
	return n
}

// flush writes the chunk and its indexes.
func (m *writer) flush() error {
	if len(m.chunk) == 0 {
		return nil
	}
	packed := m.zstd.EncodeAll(m.chunk, nil)
	b := binary.LittleEndian.AppendUint64(nil, m.from)
	b = binary.LittleEndian.AppendUint64(b, m.to)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(m.chunk)))
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(m.chunk))
	b = text(b, "zstd")
	b = binary.LittleEndian.AppendUint64(b, uint64(len(packed)))
	c := chunkIndex{from: m.from, to: m.to, start: m.at, indexes: map[uint16]uint64{}, compressed: uint64(len(packed)), unpressed: uint64(len(m.chunk))}
	if err := m.put(opChunk, append(b, packed...)); err != nil {
		return err
	}
	c.length = m.at - c.start
	for _, id := range slices.Sorted(maps.Keys(m.index)) {
		// The specification wants the messages of a channel in the order of their times.
		list := m.index[id]
		slices.SortStableFunc(list, func(a, b indexed) int { return cmp.Compare(a.time, b.time) })
		c.indexes[id] = m.at
		b := binary.LittleEndian.AppendUint16(nil, id)
		b = binary.LittleEndian.AppendUint32(b, uint32(16*len(list)))
		for _, x := range list {
			b = binary.LittleEndian.AppendUint64(b, x.time)
			b = binary.LittleEndian.AppendUint64(b, x.offset)
		}
		if err := m.put(opMessageIndex, b); err != nil {
			return err
		}
	}
	c.indexLength = m.at - c.start - c.length
	m.chunks = append(m.chunks, c)
	m.chunk = m.chunk[:0]
	clear(m.index)
	return nil
}

// group is a part of the summary with records of one kind.
type group struct {
	op            byte
	start, length uint64
}

// close writes the last chunk and the end of the file.
func (m *writer) close() error {
	if err := m.flush(); err != nil {
		return err
	}
	if err := m.put(opDataEnd, binary.LittleEndian.AppendUint32(nil, m.crc.Sum32())); err != nil {
		return err
	}
	m.crc.Reset()
	summary := m.at
	var groups []group
	of := func(op byte, n int, record func(int) []byte) error {
		start := m.at
		for i := range n {
			if err := m.put(op, record(i)); err != nil {
				return err
			}
		}
		if n > 0 {
			groups = append(groups, group{op, start, m.at - start})
		}
		return nil
	}
	for _, part := range []struct {
		op     byte
		n      int
		record func(int) []byte
	}{
		{opSchema, len(m.channels), m.schemaOf},
		{opChannel, len(m.channels), m.channelOf},
		{opStatistics, 1, m.statistics},
		{opMetadataIndex, len(m.metadata), m.metadataIndexOf},
		{opChunkIndex, len(m.chunks), m.chunkIndexOf},
	} {
		if err := of(part.op, part.n, part.record); err != nil {
			return err
		}
	}
	offsets := m.at
	for _, g := range groups {
		b := binary.LittleEndian.AppendUint64([]byte{g.op}, g.start)
		if err := m.put(opSummaryOffset, binary.LittleEndian.AppendUint64(b, g.length)); err != nil {
			return err
		}
	}
	b := binary.LittleEndian.AppendUint64(nil, summary)
	b = binary.LittleEndian.AppendUint64(b, offsets)
	// The sum covers the record up to itself.
	m.record = append(m.record[:0], opFooter)
	m.record = append(binary.LittleEndian.AppendUint64(m.record, 20), b...)
	m.crc.Write(m.record)
	m.record = binary.LittleEndian.AppendUint32(m.record, m.crc.Sum32())
	m.record = append(m.record, magic...)
	if _, err := m.w.Write(m.record); err != nil {
		return fmt.Errorf("mcap: %w", err)
	}
	return nil
}

func (m *writer) statistics(int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, m.counts0())
	b = binary.LittleEndian.AppendUint16(b, uint16(len(m.channels)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.channels)))
	b = binary.LittleEndian.AppendUint32(b, 0) // attachments
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.metadata)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.chunks)))
	b = binary.LittleEndian.AppendUint64(b, m.first)
	b = binary.LittleEndian.AppendUint64(b, m.end)
	b = binary.LittleEndian.AppendUint32(b, uint32(10*len(m.counts)))
	for i, n := range m.counts {
		b = binary.LittleEndian.AppendUint16(b, uint16(i+1))
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func (m *writer) metadataIndexOf(i int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, m.metadata[i].start)
	b = binary.LittleEndian.AppendUint64(b, m.metadata[i].length)
	return text(b, m.metadata[i].name)
}

func (m *writer) chunkIndexOf(i int) []byte {
	c := &m.chunks[i]
	var b []byte
	for _, v := range []uint64{c.from, c.to, c.start, c.length} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(10*len(c.indexes)))
	for _, id := range slices.Sorted(maps.Keys(c.indexes)) {
		b = binary.LittleEndian.AppendUint16(b, id)
		b = binary.LittleEndian.AppendUint64(b, c.indexes[id])
	}
	b = text(binary.LittleEndian.AppendUint64(b, c.indexLength), "zstd")
	b = binary.LittleEndian.AppendUint64(b, c.compressed)
	return binary.LittleEndian.AppendUint64(b, c.unpressed)
}
