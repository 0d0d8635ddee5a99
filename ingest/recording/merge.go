package recording

import (
	"cmp"
	"container/heap"
	"errors"
	"io"
	"iter"

	"github.com/sajou-dev/sajou-go/signal"
)

// Merged yields the records of a recording that is a main file and files beside it, such as
// one for each subagent, and begins each in the mapping as [Recorded.Lines] does. Within a file
// its order is kept. Between files the order is by time, as timeOf tells it for a
// record: the records of a file beside stand before the first record of the main file
// that is later. Of equal times the first record of a file beside comes after that of the
// main file, as its cause is there, and the others before.
//
// The main file leads. What is later than its last record is read only if the recording is
// final, and else counts as held: the main file may still get a record before it. A record
// without a time has that of the one before in its file. A single jump of more than
// [Options.MaxSkew] has no effect on the order.
func (in *Recorded) Merged(main string, beside []string, timeOf func(signal.Value) (Instant, bool)) iter.Seq2[NativeRecord, error] {
	if len(beside) == 0 {
		return in.Lines(main)
	}
	return func(yield func(NativeRecord, error) bool) {
		m := in.mapping
		var files besideHeap
		defer func() {
			for _, f := range files {
				f.close()
			}
		}()
		for i, name := range beside {
			f := &besideFile{in: in, name: name, rank: i, order: orderClock{skew: Instant(m.options.MaxSkew)}}
			switch more, err := f.advance(timeOf); {
			case err != nil:
				yield(NativeRecord{}, err)
				return
			case more:
				// A recording may have more of these files than a process may open.
				f.close()
				files = append(files, f)
			}
		}
		heap.Init(&files)
		// hand yields the records of the files beside that stand before a time.
		hand := func(before Instant, all bool) (more bool) {
			for len(files) > 0 && (all || files[0].before(before)) {
				f := files[0]
				if in.begin(f.head) && !yield(f.head.rec, nil) || m.Stopped() {
					return false
				}
				switch more, err := f.advance(timeOf); {
				case err != nil:
					yield(NativeRecord{}, err)
					return false
				case more:
					heap.Fix(&files, 0)
				default:
					heap.Pop(&files)
				}
			}
			return true
		}
		order := orderClock{skew: Instant(m.options.MaxSkew)}
		for line, err := range in.Text(main) {
			if err != nil {
				yield(NativeRecord{}, err)
				return
			}
			p := parseLine(line)
			if at, known := order.next(timeOf(p.rec.Value)); known && !hand(at, false) {
				return
			}
			read := in.begin(p)
			if m.Stopped() || read && !yield(p.rec, nil) {
				return
			}
		}
		if m.options.Final {
			hand(0, true)
			return
		}
		// A file that was being read may be longer now; what is counted here is not yielded.
		for _, f := range files {
			for {
				m.balance.Records++
				m.balance.Held++
				if more, err := f.advance(timeOf); err != nil {
					yield(NativeRecord{}, err)
					return
				} else if !more {
					break
				}
			}
		}
	}
}

// besideFile is a file beside the main one, with its next record.
type besideFile struct {
	in    *Recorded
	name  string
	rank  int
	order orderClock
	lines *lineFile // nil if it is not open
	head  parsedLine
	at    Instant
	first bool // head is the first record
	begun bool // the file was opened before
}

func (f *besideFile) close() {
	if f.lines != nil {
		f.lines.close()
		f.lines = nil
	}
}

// advance reads the next record. The file closes after its last one.
func (f *besideFile) advance(timeOf func(signal.Value) (Instant, bool)) (more bool, err error) {
	again := f.begun && f.lines == nil
	if f.lines == nil {
		if f.lines, err = f.in.openLines(f.name, 32<<10); err != nil {
			return false, err
		}
	}
	var line TextLine
	for skip := again; ; skip = false {
		line, err = f.lines.next()
		if errors.Is(err, io.EOF) {
			f.close()
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if !skip {
			break
		}
	}
	f.first, f.begun = !f.begun, true
	f.head = parseLine(line)
	f.at, _ = f.order.next(timeOf(f.head.rec.Value))
	return true, nil
}

// before reports whether the head stands before a record of the main file at a time.
func (f *besideFile) before(t Instant) bool { return f.at < t || f.at == t && !f.first }

// besideHeap has the file with the earliest record on top.
type besideHeap []*besideFile

func (h besideHeap) Len() int      { return len(h) }
func (h besideHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h besideHeap) Less(i, j int) bool {
	if h[i].at == h[j].at && h[i].first != h[j].first {
		return h[j].first
	}
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].rank, h[j].rank)) < 0
}
func (h *besideHeap) Push(f any) { *h = append(*h, f.(*besideFile)) }
func (h *besideHeap) Pop() any {
	last := len(*h) - 1
	f := (*h)[last]
	*h = (*h)[:last]
	return f
}

// orderClock is the time of the records of one file, which never decreases.
type orderClock struct {
	skew  Instant
	now   Instant
	known bool
	ahead Instant // a jump that the next record has to confirm; 0 if there is none
}

func (c *orderClock) next(t Instant, ok bool) (Instant, bool) {
	switch {
	case !ok || !t.valid():
	case !c.known:
		c.now, c.known = t, true
	case t > c.now+c.skew && c.ahead == 0:
		c.ahead = t
	default:
		c.now, c.ahead = max(c.now, t), 0
	}
	return c.now, c.known
}
