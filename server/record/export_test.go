package record

import (
	"context"

	sajou "github.com/sajou-dev/sajou-go"
)

// Message reads one message of the acknowledged WebSocket into a session. Unreadable is the
// end of the connection, refused the answer to the message.
func Message(ctx context.Context, ses *sajou.Session, text []byte) (number uint64, refused, unreadable error) {
	in := intake{ses: ses}
	m, err := in.message("fuzz", text)
	if err == nil && m.err == nil {
		_, m.err = ses.Record(ctx, m.addition)
	}
	return m.number, m.err, err
}
