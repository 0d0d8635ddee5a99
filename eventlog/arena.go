package eventlog

// arena copies bodies into memory that is written once, so that entries can
// point into it and stay valid. Bodies share blocks: one allocation an entry
// would be most of the cost of reading it. The first block is small, for callers that
// read one entry and stop.
type arena struct {
	block []byte
}

const (
	firstArenaBlock = 2 << 10
	maxArenaBlock   = 64 << 10
)

func (a *arena) copy(b []byte) []byte {
	c := append(a.room(len(b)), b...)
	a.take(c)
	return c[:len(c):len(c)]
}

// room returns an empty slice to which n bytes can be appended. The caller passes the
// part to be kept to take, before it calls room again.
func (a *arena) room(n int) []byte {
	if free := cap(a.block) - len(a.block); free < n {
		size := min(max(2*cap(a.block), firstArenaBlock), maxArenaBlock)
		if n >= size/4 {
			return make([]byte, 0, n)
		}
		a.block = make([]byte, 0, size)
	}
	start := len(a.block)
	return a.block[start : start : start+n]
}

// take keeps the bytes that were appended to the last room.
func (a *arena) take(b []byte) {
	start := len(a.block)
	if end := start + len(b); end <= cap(a.block) && len(b) > 0 && &a.block[start:end][0] == &b[0] {
		a.block = a.block[:end]
	}
}
