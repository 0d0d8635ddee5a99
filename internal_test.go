package sajou

// SetForkWrite sets the number of bytes that one write of a fork has, and returns the
// function that sets it back.
func SetForkWrite(bytes int) func() {
	before := forkWrite
	forkWrite = bytes
	return func() { forkWrite = before }
}
