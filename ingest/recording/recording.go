// Package recording is the ground of the readers of foreign formats: how a
// recorded agent session, as the tools of others leave it behind, becomes signals.
//
// # How the parts fit
//
// A [Format] names a foreign format, recognizes it ([Format.Detect]) and turns its
// records into calls of a [Mapping]. The Mapping holds the rules that are the same for
// all formats, so that no format repeats them: ids, metadata, times, states of agents,
// pairing of calls and results, unknown and unreadable records, and the balance.
// [Format.Open] begins a [Reading] of one recording, whose [Reading.Items] are the
// signals, each with its place. A recording is a file or folder of an [fs.FS]; a
// reader opens nothing else, in particular no path that stands in a recording.
//
// # What a reading yields
//
//	first      one "import.recording": the format, the native session, the options
//	then       signals of the protocol, and "FORMAT.KIND" for kept native records
//	in between "import.remark" for whatever a user should know
//	last       one "import.end", if the recording was declared final
//
// # Invariants
//
//   - A reading is pure: the same bytes and options give the same signals.
//   - Without [Options.Final], the signals of a recording's prefix are a prefix of the
//     signals of the whole, for every format that [Format.Grows]. A signal that later
//     records could change is held back until they cannot.
//   - Timestamps never decrease. A record that is earlier than one before it takes
//     effect at the time of that one, and its signals say by how much they moved.
//   - One record whose time jumps ahead by more than [Options.MaxSkew] while a later one
//     comes back does not move the time of the others.
//   - Every native record counts once in the [Balance]: as mapped, kept, skipped by a
//     named rule, unreadable, or held back.
//   - Memory does not grow with the length of a recording that is read by lines.
//
// docs/glossary.md has the nouns, docs/import.md the formats.
package recording

import (
	"fmt"
	"io/fs"
	"iter"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// The defaults of [Options].
const (
	DefaultMaxSkew = 24 * time.Hour
	DefaultMaxBad  = 0.01
)

// Types of the signals that describe a recording.
const (
	TypeRecording = "import.recording"
	TypeRemark    = "import.remark"
	TypeEnd       = "import.end"
)

// Format is one foreign format.
type Format struct {
	// Name is the name for --format, the part of a signal's source behind "import:",
	// and the beginning of the types of kept records: lower case with hyphens.
	Name string

	Title string // for people: "Claude Code transcript"

	// Agent is the name of the main agent, where the recording names none.
	Agent string

	// Recognized says in one line how a recording of the format is recognized.
	Recognized string

	// Grows reports whether a recording grows by lines at its end, so that an import
	// of its beginning can be continued.
	Grows bool

	// Invented reports whether the records have no times. Their signals then have the
	// times of a stated clock, see [Mapping.SetLength].
	Invented bool

	// Detect returns the reason why a sample is of the format, or "".
	Detect func(*Sample) string

	// PartOf returns the main file of the recording to which a further file belongs, or ""
	// if the file is none: "a/s.jsonl" for "a/s/part.jsonl". Both are paths below one
	// folder. Nil means that a recording has no further files.
	PartOf func(path string) string

	// Map reads a recording and turns its records into signals. The errors that it
	// returns are those of reading; the content of a record is never an error. It may
	// ignore that the mapping has stopped: the sequences of [Recorded] then end.
	Map func(*Recorded, *Mapping) error
}

// Options are the choices of an import.
type Options struct {
	// Final declares that the recording is complete: the signals that its end implies
	// are yielded too, and a last one that says so.
	Final bool

	// MaxSkew is the jump of time that is taken for a wrong clock if one of the next 64
	// records comes back across it. Zero means [DefaultMaxSkew].
	MaxSkew time.Duration

	// MaxBad is the share of unreadable records beyond which the reading ends with
	// [ErrUnreadable]; three are always allowed. Zero means [DefaultMaxBad], a
	// negative number none at all.
	MaxBad float64

	// Unchecked leaves the check of the signals against the schema to their receiver:
	// none has a Problem.
	Unchecked bool

	// KeepNative keeps each native record in the metadata of its signals.
	KeepNative bool

	// Stages change each signal before it is yielded, in their order, such as the removal
	// of secrets. What they leave is then cut to fit an entry.
	Stages []func(*signal.Signal)

	// Notes are members of the payload of the first signal, for what the
	// caller does with the signals before they are recorded. It must be an object or absent.
	Notes signal.Value
}

// Item is one signal of a source.
type Item struct {
	Signal *signal.Signal
	Place  Place
	Size   int // bytes of the text that it was read from; 0 for a further signal of the same record
}

// Place is where in a source a signal is.
type Place struct {
	File    string // its name, as messages show it
	Line    int    // from 1; 0 if the source has no lines
	Offset  int64  // of the record's first byte
	Pointer string // JSON pointer of the record within the line or file; "" for the whole
}

// String returns FILE:LINE, or FILE and the pointer.
func (p Place) String() string {
	switch {
	case p.Line > 0 && p.Pointer != "":
		return fmt.Sprintf("%s:%d %s", p.File, p.Line, p.Pointer)
	case p.Line > 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	case p.Pointer != "":
		return p.File + " " + p.Pointer
	}
	return p.File
}

// PlaceError reports that the signal at a place cannot be read or recorded.
type PlaceError struct {
	Place
	Err error
}

func (e *PlaceError) Error() string { return fmt.Sprintf("%v: %v", e.Place, e.Err) }

// Unwrap returns the cause.
func (e *PlaceError) Unwrap() error { return e.Err }

// Reading is one pass over a recording.
type Reading struct {
	format  Format
	input   Recorded
	options Options
	balance Balance
	mapping *Mapping // of the pass that is under way
}

// Open begins a reading of a recording: the file name of fsys, or a folder for
// formats that are folders. It opens nothing yet.
func (f Format) Open(fsys fs.FS, name string, options Options) *Reading {
	if options.MaxSkew == 0 {
		options.MaxSkew = DefaultMaxSkew
	}
	if options.MaxBad == 0 {
		options.MaxBad = DefaultMaxBad
	}
	return &Reading{format: f, input: Recorded{FS: fsys, Name: name}, options: options}
}

// Items yields the signals of the recording. It ends at the first error, which is a
// [*PlaceError], [ErrUnreadable] or one of reading; the signals before it are whole.
func (r *Reading) Items() iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		r.balance = Balance{}
		m := newMapping(r.format, r.input.Name, r.options, &r.balance, yield)
		in := r.input
		in.mapping, r.mapping = m, m
		defer func() { r.mapping = nil }()
		err := r.format.Map(&in, m)
		if m.stopped {
			return
		}
		if m.failed != nil {
			err = m.failed
		}
		// What was read before an error is whole, but nothing is final then.
		m.finish(err == nil, err == nil && r.options.Final)
		if err == nil {
			err = m.failed
		}
		if err != nil && !m.stopped {
			yield(Item{}, err)
		}
	}
}

// Idle yields the signals that are known, although the pass goes on: a file that is followed
// while it grows calls it before it waits for more. It must be called from within a read of
// the recording's files, and does nothing else.
func (r *Reading) Idle() {
	if r.mapping != nil {
		r.mapping.idle()
	}
}

// Balance returns the counts of the records read so far. After the sequence of
// Items has ended, every record is in it once.
func (r *Reading) Balance() Balance { return r.balance.clone() }
