package storefile

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// rewriteFiles reads FILES and returns the bytes that are written for the same state.
func rewriteFiles(b []byte) ([]byte, error) {
	n, err := parseFileList(b)
	if err != nil {
		return nil, err
	}
	return append(n.Header(), n.Line()...), nil
}

// filesExample returns the contents of a FILES that has everything in it.
func filesExample() []byte {
	n := NewFileList("00112233445566778899aabbccddeeff")
	n.Iteration, n.Current = 3, "MANIFEST-000016"
	n.Manifests["MANIFEST-000016"] = Extent{161, 7}
	n.Logs["000017.log"] = ListedLog{Extent: Extent{2386, 9}, Must: true}
	n.Logs["000018.log"] = ListedLog{}
	n.Tables["000019.sst"] = false
	return append(n.Header(), n.Line()...)
}

// decodeHeadsOf reads the bytes of a file of noted heads.
func decodeHeadsOf(b []byte) (heads map[uint32]chain.Head, damage string, err error) {
	heads = make(map[uint32]chain.Head)
	damage, err = decodeHeads(bytes.NewReader(b), func(_ int, n NotedHead) { heads[n.Number] = n.Head })
	return heads, damage, err
}

// encodeHeads writes a file of noted heads with a cell for each name, numbered
// from 1.
func encodeHeads(names []string, heads []chain.Head) []byte {
	b := HeadsHeader()
	for i, name := range names {
		b = AppendHeadsCell(b, uint32(i+1), name, heads[i])
	}
	return b
}

// Arbitrary bytes as SAJOU cause no panic, and every accepted SAJOU has an id.
func FuzzFormatFile(f *testing.F) {
	const id = "00112233445566778899aabbccddeeff"
	f.Add(FormatContents(id, false))
	f.Add(FormatContents(id, true))
	f.Add([]byte("sajou store\nversion 2\n"))
	f.Add([]byte("sajou store\nversion 1\nid \nsum \n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseFormatFile(b)
		if err == nil && len(r.ID) != 32 {
			t.Errorf("id %q", r.ID)
		}
		if err != nil && !errors.Is(err, chain.ErrCorrupt) && !errors.Is(err, chain.ErrVersion) {
			t.Errorf("error of no class: %v", err)
		}
	})
}

// Every truncation and every changed byte of SAJOU is found.
func TestFormatFileChanged(t *testing.T) {
	whole := FormatContents("00112233445566778899aabbccddeeff", false)
	for n := range whole {
		if _, err := parseFormatFile(whole[:n]); !errors.Is(err, chain.ErrCorrupt) {
			t.Errorf("%d of %d bytes: err = %v, want ErrCorrupt", n, len(whole), err)
		}
		changed := append([]byte(nil), whole...)
		changed[n] ^= 1
		if _, err := parseFormatFile(changed); err == nil {
			t.Errorf("byte %d changed: no error", n)
		}
	}
}

// FILES is appended to, so a kill can leave a part of its last line, of which any byte may
// be torn. The line before then counts. A damaged line in the middle is damage.
func TestTornFiles(t *testing.T) {
	older := NewFileList("00112233445566778899aabbccddeeff")
	older.Tables["000004.sst"] = false
	newer := NewFileList("00112233445566778899aabbccddeeff")
	newer.Tables["000005.sst"] = false
	begin := append(older.Header(), older.Line()...)
	whole := append(bytes.Clone(begin), newer.Line()...)
	got, err := parseFileList(whole)
	require.NoError(t, err)
	require.Equal(t, newer, got)
	for n := len(begin); n < len(whole); n++ {
		got, err := parseFileList(whole[:n])
		require.NoError(t, err, "%d of %d bytes", n, len(whole))
		require.Equal(t, older, got, "%d of %d bytes", n, len(whole))
		torn := bytes.Clone(whole)
		torn[n] ^= 1
		got, err = parseFileList(torn)
		require.NoError(t, err, "byte %d", n)
		require.Equal(t, older, got, "byte %d", n)
		_, err = parseFileList(append(torn, newer.Line()...))
		if n < len(whole)-1 { // without its end a line is one with the next
			require.ErrorIs(t, err, chain.ErrCorrupt, "byte %d", n)
		}
	}
	for n := len(older.Header()); n < len(begin); n++ {
		_, err := parseFileList(begin[:n])
		require.ErrorIs(t, err, chain.ErrCorrupt, "%d bytes, without a complete line", n)
	}
}

// Arbitrary bytes as FILES cause no panic and take memory in proportion, and an
// accepted FILES, written and read again, gives the same state.
func FuzzFiles(f *testing.F) {
	header := "sajou files 1 00112233445566778899aabbccddeeff\n"
	f.Add([]byte(header))
	f.Add([]byte(header + "00000000\n"))
	f.Add([]byte(header + "00000000 marker 3 MANIFEST-000016 manifest MANIFEST-000016 161 6b0d93ce log 000017.log 2386 00c1a2b3 table 000019.sst\n"))
	f.Add(filesExample())
	f.Add([]byte("sajou files 2 x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		once, err := rewriteFiles(b)
		if err != nil {
			if !errors.Is(err, chain.ErrCorrupt) && !errors.Is(err, chain.ErrVersion) {
				t.Errorf("error of no class: %v", err)
			}
			return
		}
		twice, err := rewriteFiles(once)
		if err != nil || string(twice) != string(once) {
			t.Errorf("%q\nonce %q\ntwice %q, %v", b, once, twice, err)
		}
	})
}

// KindOf accepts any file name without a panic.
func FuzzFileKind(f *testing.F) {
	for _, name := range []string{"000001.log", "temporary.000001.dbtmp", "000001-002.log", "MANIFEST-1", "OPTIONS-", "marker.", "LOCK", ""} {
		f.Add(name)
	}
	f.Fuzz(func(_ *testing.T, name string) { KindOf(name) })
}

// Arbitrary bytes as a file of noted heads cause no panic, and every single flipped
// bit of a genuine file is detected or changes no note.
func FuzzDecodeHeads(f *testing.F) {
	head := chain.Head{Seq: 7, Hash: chain.Genesis("a")}
	whole := encodeHeads([]string{"a", strings.Repeat("b", 255)}, []chain.Head{head, head})
	f.Add(whole)
	f.Add(whole[:300])
	f.Add([]byte("sajou.heads\n\x02"))
	f.Fuzz(func(t *testing.T, b []byte) {
		heads, damage, err := decodeHeadsOf(b)
		if len(b) >= 256 && len(heads) > len(b)/256 || err != nil && !errors.Is(err, chain.ErrVersion) {
			t.Errorf("%d notes in %d bytes, %q, %v", len(heads), len(b), damage, err)
		}
	})
}

// Every single flipped bit of the noted heads is detected or changes no note.
func TestEveryBitOfTheNotedHeads(t *testing.T) {
	head := chain.Head{Seq: 7, Hash: chain.Genesis("a")}
	whole := encodeHeads([]string{"a", strings.Repeat("b", 255)}, []chain.Head{head, head})
	for bit := range len(whole) * 8 {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		heads, damage, err := decodeHeadsOf(b)
		if damage == "" && !errors.Is(err, chain.ErrVersion) {
			t.Errorf("bit %d of byte %d: not noticed", bit%8, bit/8)
		}
		for number, got := range heads {
			if number < 1 || number > 2 || got != head {
				t.Errorf("bit %d of byte %d: reads a note that was not written, %d: %v", bit%8, bit/8, number, got)
			}
		}
	}
	for n := range len(whole) {
		if _, damage, err := decodeHeadsOf(whole[:n]); err == nil && damage == "" && n != 256 && n != 512 {
			t.Errorf("%d of %d bytes: not noticed", n, len(whole))
		}
	}
}
