package dial

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// isEvents reports whether a media type is that of server-sent events.
func isEvents(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "text/event-stream"
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}

// errLongLine reports a line that is longer than a message may be.
var errLongLine = errors.New("dial: a line is too long")

// lineReader reads lines of limited length that end with LF, CR or both.
type lineReader struct {
	r     *bufio.Reader
	line  []byte
	begun bool // a byte order mark can no longer come
}

// next returns a line, valid until the next call. [errLongLine] is about one that was
// passed; the line after it can be read.
func (l *lineReader) next() ([]byte, error) {
	l.line = l.line[:0]
	long := false
	for {
		part, err := l.r.ReadSlice('\n')
		if !l.begun && len(part) > 0 {
			l.begun = true
			part = bytes.TrimPrefix(part, []byte("\xef\xbb\xbf"))
		}
		if len(l.line)+len(part) > MaxMessage {
			long = true
			l.line = l.line[:0]
		}
		if !long {
			l.line = append(l.line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (len(l.line) == 0 || !errors.Is(err, io.EOF)):
			return nil, err
		case long:
			return nil, errLongLine
		}
		return bytes.TrimRight(l.line, "\r\n"), nil
	}
}

// lines reads lines of JSON. It returns io.EOF at their end. A line of a stream of events
// whose media type is wrong counts too.
func (s *SignalSource) lines(r io.Reader, yield func(*signal.Signal) error) error {
	in := &lineReader{r: bufio.NewReaderSize(r, 64<<10)}
	for {
		line, err := in.next()
		switch {
		case errors.Is(err, errLongLine):
			err = s.message(nil, true, yield)
		case err != nil:
			return err
		case len(line) > 0 && line[0] == ':':
		default:
			err = s.message(bytes.TrimPrefix(line, []byte("data:")), false, yield)
		}
		if err != nil {
			return err
		}
	}
}

// events reads server-sent events. It returns io.EOF at their end; an event that was
// not complete is left out.
func (s *SignalSource) events(r io.Reader, yield func(*signal.Signal) error) error {
	in := &lineReader{r: bufio.NewReaderSize(r, 64<<10)}
	var data []byte
	id, long := s.lastID, false
	for {
		line, err := in.next()
		if errors.Is(err, errLongLine) {
			long = true
			continue
		}
		if err != nil {
			return err
		}
		if len(line) == 0 {
			if data != nil || long {
				if err := s.message(bytes.TrimSuffix(data, []byte("\n")), long, yield); err != nil {
					return err
				}
			}
			s.lastID = id
			data, long = nil, false
			continue
		}
		name, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			if len(data)+len(value) > MaxMessage {
				long = true
			}
			if !long {
				data = append(append(data, value...), '\n')
			}
		case "id":
			const most = 256
			if !strings.ContainsAny(value, "\x00\r\n") && len(value) <= most {
				id = value
			}
		case "retry":
			if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
				s.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}
