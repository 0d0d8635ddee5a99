package eventlog

import "crypto/sha256"

// genesisPrefix separates genesis hashes from every other use of SHA-256 and
// carries the version of the chain.
const genesisPrefix = "sajou.session/1\n"

// Genesis returns hash(0) of the session of that name, which binds the whole
// chain to it.
func Genesis(name string) Hash {
	return sha256.Sum256(append([]byte(genesisPrefix), name...))
}

// Link returns hash(n) of the chain, from hash(n-1) and the stored bytes of
// entry n: its length as a uvarint and its body.
func Link(prev Hash, stored []byte) Hash {
	// One run of bytes through Sum256 is faster than two writes to a digest,
	// as long as the copy is short and needs no allocation.
	var buf [1024]byte
	if len(stored) <= len(buf)-HashSize {
		n := copy(buf[:], prev[:])
		n += copy(buf[n:], stored)
		return sha256.Sum256(buf[:n])
	}
	d := sha256.New()
	d.Write(prev[:])
	d.Write(stored)
	return Hash(d.Sum(nil))
}

// linkInPlace is [Link] over bytes that stand in a batch right behind the
// hash before them, so that nothing is copied.
func linkInPlace(prevAndStored []byte) Hash {
	return sha256.Sum256(prevAndStored)
}
