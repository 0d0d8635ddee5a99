package lint

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Bounds of an archive, which may decompress to a thousand times its size.
const (
	maxZipFiles = 1000     // of any kind
	maxZipJSON  = 16 << 20 // decompressed bytes, in total
)

// directoryEntry begins an entry of the directory of an archive.
var directoryEntry = []byte("PK\x01\x02")

// isZip reports whether a file is an archive, or is named like one.
func isZip(file string, text []byte) bool {
	return beginsZip(text) || strings.EqualFold(path.Ext(file), ".zip")
}

// beginsZip reports whether a text begins with a file of an archive, or with
// the end of one that has no files.
func beginsZip(text []byte) bool {
	return bytes.HasPrefix(text, []byte("PK\x03\x04")) || bytes.HasPrefix(text, []byte("PK\x05\x06"))
}

// readZip reads the export of the scene-builder: an archive with the parts of a scene
// as JSON files, and images, which are ignored.
func readZip(c *language.Catalog, file string, data []byte) ([]Declared, authored.Diagnostics) {
	refuse := func(format string, args ...any) ([]Declared, authored.Diagnostics) {
		return nil, authored.Diagnostics{{File: file, Line: 1, Column: 1, Severity: authored.SeverityError, Message: fmt.Sprintf(format, args...)}}
	}
	// zip.NewReader reads the whole directory before its length is known, so its
	// entries are counted first. Contents that look like entries are rare.
	if bytes.Count(data, directoryEntry) > 4*maxZipFiles {
		return refuse("the archive has more than %d files", maxZipFiles)
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	switch {
	case len(data) == 0:
		return refuse("not a ZIP archive: the file is empty")
	case err != nil && beginsZip(data):
		return refuse("the ZIP archive is incomplete; it may have been cut off: %v", err)
	case err != nil:
		return refuse("not a ZIP archive in spite of its name; if it is JSON, rename it to .json")
	}
	if len(archive.File) > maxZipFiles {
		return refuse("the archive has %d files, more than %d", len(archive.File), maxZipFiles)
	}
	var files []scene.BundleFile
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
		files = append(files, scene.BundleFile{Name: file + "/" + f.Name, Text: text})
	}
	if len(files) == 0 {
		return refuse("there is no JSON file in the archive")
	}
	return bundled(c, file)(scene.ParseFiles(files...))
}

// unzip reads one file of an archive up to a limit and ignores its declared size.
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
