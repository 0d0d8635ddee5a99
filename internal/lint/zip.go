package lint

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Bounds of an archive, which can be a thousand times as large as it looks.
const (
	maxZipFiles = 1000     // of any kind
	maxZipJSON  = 64 << 20 // bytes of all that is read
)

// isZip reports whether a file is an archive, or is called like one.
func isZip(file string, text []byte) bool {
	return beginsZip(text) || strings.EqualFold(path.Ext(file), ".zip")
}

// beginsZip reports whether a text begins with a file of an archive, or with
// the end of one that has no files.
func beginsZip(text []byte) bool {
	return bytes.HasPrefix(text, []byte("PK\x03\x04")) || bytes.HasPrefix(text, []byte("PK\x05\x06"))
}

// readZip reads what a scene-builder exports: an archive with the parts of a
// scene as JSON files, and pictures, which are left alone.
func readZip(file string, data []byte) ([]Declared, choreography.Diagnostics) {
	refuse := func(format string, args ...any) ([]Declared, choreography.Diagnostics) {
		return nil, choreography.Diagnostics{{File: file, Line: 1, Column: 1, Severity: choreography.Error, Message: fmt.Sprintf(format, args...)}}
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	switch {
	case len(data) == 0:
		return refuse("this is no ZIP archive: it is empty")
	case err != nil && beginsZip(data):
		return refuse("this is no whole ZIP archive; it may have been cut off: %v", err)
	case err != nil:
		return refuse("this is no ZIP archive, whatever its name says; if it is JSON, call it .json")
	}
	if len(archive.File) > maxZipFiles {
		return refuse("the archive has %d files, more than %d", len(archive.File), maxZipFiles)
	}
	var files []scene.File
	left := int64(maxZipJSON)
	for _, f := range archive.File {
		if !strings.EqualFold(path.Ext(f.Name), ".json") {
			continue
		}
		text, err := unzip(f, left)
		if err != nil {
			return refuse("%s in the archive: %v", f.Name, err)
		}
		left -= int64(len(text))
		files = append(files, scene.File{Name: file + "/" + f.Name, JSON: text})
	}
	if len(files) == 0 {
		return refuse("there is no JSON file in the archive")
	}
	return bundled(file)(scene.ParseFiles(files...))
}

// unzip reads one file of an archive, whatever size it claims to have.
func unzip(f *zip.File, limit int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if closing := r.Close(); err == nil {
		err = closing
	}
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("there are more than %d MiB of JSON", maxZipJSON>>20)
	}
	return text, err
}
