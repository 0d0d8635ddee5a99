package authored

import (
	"fmt"
	"slices"
)

// Remark is one finding of a reader, with its location.
type Remark struct {
	Severity Severity
	Location *Location
	Message  string
}

// Remarks collects the remarks of a reader. The zero Remarks is empty and ready
// for use.
type Remarks struct {
	list   []Remark
	errors int
	full   bool
}

// Add adds a remark. Beyond [MaxDiagnostics] it is only counted, except that the
// first error replaces the last warning.
func (f *Remarks) Add(s Severity, p *Location, message string) {
	if len(f.list) >= MaxDiagnostics {
		f.full = true
		if s != SeverityError || f.errors > 0 {
			f.count(s)
			return
		}
		f.list = f.list[:MaxDiagnostics-1]
	}
	f.count(s)
	f.list = append(f.list, Remark{s, p, message})
}

func (f *Remarks) count(s Severity) {
	if s == SeverityError {
		f.errors++
	}
}

// Errorf adds an error about a location.
func (f *Remarks) Errorf(p *Location, format string, args ...any) {
	f.Add(SeverityError, p, fmt.Sprintf(format, args...))
}

// Warnf adds a warning about a location.
func (f *Remarks) Warnf(p *Location, format string, args ...any) {
	f.Add(SeverityWarning, p, fmt.Sprintf(format, args...))
}

// Errors returns the number of errors, listed or not.
func (f *Remarks) Errors() int { return f.errors }

// Refused reports whether there is an error.
func (f *Remarks) Refused() bool { return f.errors > 0 }

// List returns the remarks that are listed, in the order in which they were added.
// The caller must not change it.
func (f *Remarks) List() []Remark { return f.list }

// Full reports whether some remarks are not listed.
func (f *Remarks) Full() bool { return f.full }

// Omit notes that a remark is not listed.
func (f *Remarks) Omit() { f.full = true }

// Diagnostics returns the remarks with their lines and columns in the text, sorted by
// these.
func (f *Remarks) Diagnostics(file string, text []byte) Diagnostics {
	if len(f.list) == 0 {
		return nil
	}
	places := make([]*Location, len(f.list))
	for i := range f.list {
		places[i] = f.list[i].Location
	}
	offsets := Locate(text, places)
	order := make([]int, len(f.list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return offsets[a] - offsets[b] })
	ds := make(Diagnostics, 0, len(f.list)+1)
	for _, i := range order {
		line, column := LineColumn(text, offsets[i])
		ds = append(ds, Diagnostic{file, line, column, f.list[i].Location.Pointer(), f.list[i].Severity, f.list[i].Message})
	}
	if f.full {
		last := ds[len(ds)-1]
		last.Pointer, last.Severity, last.Message = "", SeverityWarning, "there is more, which is not listed"
		if f.errors > 0 {
			last.Severity = SeverityError
		}
		ds = append(ds, last)
	}
	return ds
}
