package eventlog

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// The first byte of every key in the store; see the package comment.
const (
	tagBatch   = 'e'
	tagKey     = 'k'
	tagSession = 's'
)

var keyFormat = []byte{'f'}

func sessionKey(name string) []byte {
	return append([]byte{tagSession}, name...)
}

// batchKey appends the key of the batch that begins at seq.
func batchKey(dst []byte, number uint32, seq Seq) []byte {
	dst = append(dst, tagBatch)
	dst = binary.BigEndian.AppendUint32(dst, number)
	return binary.BigEndian.AppendUint64(dst, uint64(seq))
}

const batchKeySize = 1 + 4 + 8

// keySeq reads the Seq of a batch's key.
func keySeq(key []byte) (Seq, bool) {
	if len(key) != batchKeySize || key[0] != tagBatch {
		return 0, false
	}
	return Seq(binary.BigEndian.Uint64(key[5:])), true
}

func idempotencyKey(dst []byte, number uint32, key string) []byte {
	dst = append(dst, tagKey)
	dst = binary.BigEndian.AppendUint32(dst, number)
	return append(dst, key...)
}

func sortByNumber(infos []SessionInfo) {
	slices.SortFunc(infos, func(a, b SessionInfo) int { return cmp.Compare(a.number, b.number) })
}
