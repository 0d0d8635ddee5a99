package rehearsal

import "bytes"

// TranscriptFile is one file of a transcript.
type TranscriptFile struct {
	Name string
	Text []byte
}

// Transcript returns the files of a transcript in the txtar format: text, and then each
// file behind a line "-- NAME --".
func Transcript(text []byte) (files []TranscriptFile) {
	for line := range bytes.Lines(text) {
		trimmed := bytes.TrimRight(line, "\r\n")
		if name, ok := bytes.CutPrefix(trimmed, []byte("-- ")); ok {
			if name, ok := bytes.CutSuffix(name, []byte(" --")); ok && len(bytes.TrimSpace(name)) > 0 {
				files = append(files, TranscriptFile{Name: string(bytes.TrimSpace(name))})
				continue
			}
		}
		if len(files) > 0 {
			last := &files[len(files)-1]
			last.Text = append(last.Text, line...)
		}
	}
	return files
}
