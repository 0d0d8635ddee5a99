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
	// and bodies are short.
	buf := make([]byte, 0, 512)
	buf = append(buf, prev[:]...)
	return sha256.Sum256(append(buf, stored...))
}

// linkInPlace is [Link] over bytes that stand in a batch right behind the
// hash before them, so that nothing is copied.
func linkInPlace(prevAndStored []byte) Hash {
	return sha256.Sum256(prevAndStored)
}
