package workspace

import (
	"path"
	"strings"
)

// cleanPath returns a recorded path in one spelling: with slashes, without . and ..
// where that is possible. A path of Windows keeps its drive.
func cleanPath(p string) string {
	p = strings.TrimPrefix(p, "file://")
	if strings.Contains(p, `\`) && !strings.Contains(p, "/") || hasDrive(p) {
		p = strings.ReplaceAll(p, `\`, "/")
	}
	if p == "" {
		return ""
	}
	return path.Clean(p)
}

func hasDrive(p string) bool {
	if len(p) < 3 || p[1] != ':' || p[2] != '/' && p[2] != '\\' {
		return false
	}
	c := p[0] | 0x20
	return 'a' <= c && c <= 'z'
}

func isAbsolute(p string) bool { return strings.HasPrefix(p, "/") || hasDrive(p) }

// resolvePath returns the one spelling of a path that is relative to dir, if dir is
// known. It returns "" for a text that is no path: an empty one, or one with a line end
// or a zero byte.
func resolvePath(dir, p string) string {
	if p == "" || len(p) > maxPath || strings.ContainsAny(p, "\n\x00") {
		return ""
	}
	p = cleanPath(p)
	if isAbsolute(p) || strings.HasPrefix(p, "~") || dir == "" {
		return p
	}
	return path.Join(cleanPath(dir), p)
}

// maxPath bounds a path, in bytes.
const maxPath = 4096

// Inside reports whether a path is that of dir or of something below it. Both are
// absolute; a relative path is inside.
func Inside(dir, p string) bool {
	if !isAbsolute(p) {
		return !strings.HasPrefix(p, "~") && p != ".." && !strings.HasPrefix(p, "../")
	}
	return p == dir || dir == "/" || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// endsIn reports whether p is the path end, or ends in it after a slash.
func endsIn(p, end string) bool {
	rest, ok := strings.CutSuffix(p, end)
	return ok && (rest == "" || strings.HasSuffix(rest, "/"))
}
