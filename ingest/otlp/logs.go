package otlp

// logSink takes log records.
type logSink interface{}

func (p *protoReader) log(from, to int, pointer string) error { return nil }
