package projection

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// Image is a stored [Fold]: its position and the canonical bytes of its states. The
// bytes are immutable.
type Image struct {
	Head  eventlog.Head
	At    time.Duration // session time, not negative
	Parts []Part        // in the set's order
}

// Part is the state of one projection in an [Image].
type Part struct {
	Name    string
	Version uint32
	Data    []byte // the state's canonical bytes
}

// Of reports whether img is of exactly the projections of set: the same names
// and versions in the same order.
func (img *Image) Of(set Set) bool {
	if len(img.Parts) != len(set) {
		return false
	}
	for i, p := range set {
		if img.Parts[i].Name != p.Name || img.Parts[i].Version != p.Version {
			return false
		}
	}
	return true
}

const (
	imageVersion = 1
	imageHeader  = 1 + 8 + eventlog.HashSize + 8 + 1
	partHeader   = 1 + 4 + 4 // without the name, which is one byte at least
)

// AppendImage appends img in the layout of the package comment. It refuses an image
// that does not fit the layout: a bad name, more than [MaxProjections] parts, a part
// of 4 GiB, a negative time.
func AppendImage(dst []byte, img Image) ([]byte, error) {
	if len(img.Parts) > MaxProjections {
		return nil, fmt.Errorf("projection: an image of %d parts, more than %d", len(img.Parts), MaxProjections)
	}
	if img.At < 0 {
		return nil, fmt.Errorf("projection: an image at negative time %v", img.At)
	}
	dst = append(dst, imageVersion)
	dst = binary.BigEndian.AppendUint64(dst, uint64(img.Head.Seq))
	dst = append(dst, img.Head.Hash[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(img.At))
	dst = append(dst, byte(len(img.Parts)))
	for i, p := range img.Parts {
		if err := checkName(p.Name); err != nil {
			return nil, err
		}
		if hasPart(img.Parts[:i], p.Name) {
			return nil, fmt.Errorf("projection: an image with two parts named %q", p.Name)
		}
		if uint64(len(p.Data)) > math.MaxUint32 {
			return nil, fmt.Errorf("projection: part %q of an image has %d bytes", p.Name, len(p.Data))
		}
		dst = append(dst, byte(len(p.Name)))
		dst = append(dst, p.Name...)
		dst = binary.BigEndian.AppendUint32(dst, p.Version)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(p.Data)))
		dst = append(dst, p.Data...)
	}
	return dst, nil
}

// DecodeImage reads what [AppendImage] has written. The parts alias data. The
// error is [ErrVersion] or [ErrCorrupt].
func DecodeImage(data []byte) (Image, error) {
	if len(data) > 0 && data[0] != imageVersion {
		return Image{}, fmt.Errorf("projection: decode image: %w: %d", ErrVersion, data[0])
	}
	if len(data) < imageHeader {
		return Image{}, corrupt("%d bytes are less than its header", len(data))
	}
	var img Image
	img.Head.Seq = eventlog.Seq(binary.BigEndian.Uint64(data[1:]))
	img.Head.Hash = eventlog.Hash(data[9 : 9+eventlog.HashSize])
	at := binary.BigEndian.Uint64(data[9+eventlog.HashSize:])
	if at > math.MaxInt64 {
		return Image{}, corrupt("negative time")
	}
	img.At = time.Duration(at)
	n := int(data[imageHeader-1])
	data = data[imageHeader:]
	if n*(partHeader+1) > len(data) {
		return Image{}, corrupt("%d bytes cannot hold %d parts", len(data), n)
	}
	img.Parts = make([]Part, n)
	for i := range img.Parts {
		p, rest, err := decodePart(data)
		if err != nil {
			return Image{}, err
		}
		if hasPart(img.Parts[:i], p.Name) {
			return Image{}, corrupt("two parts named %q", p.Name)
		}
		img.Parts[i], data = p, rest
	}
	if len(data) > 0 {
		return Image{}, corrupt("%d bytes after the last part", len(data))
	}
	return img, nil
}

func decodePart(data []byte) (p Part, rest []byte, err error) {
	if len(data) < partHeader {
		return Part{}, nil, corrupt("cut inside a part")
	}
	n := int(data[0])
	if len(data) < partHeader+n {
		return Part{}, nil, corrupt("cut inside a part")
	}
	p.Name = string(data[1 : 1+n])
	if err := checkName(p.Name); err != nil {
		return Part{}, nil, corrupt("bad part name %q", p.Name)
	}
	data = data[1+n:]
	p.Version = binary.BigEndian.Uint32(data)
	size := uint64(binary.BigEndian.Uint32(data[4:]))
	data = data[8:]
	if size > uint64(len(data)) {
		return Part{}, nil, corrupt("part %q claims %d of %d bytes", p.Name, size, len(data))
	}
	p.Data = data[:size:size]
	return p, data[size:], nil
}

func hasPart(parts []Part, name string) bool {
	for i := range parts {
		if parts[i].Name == name {
			return true
		}
	}
	return false
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("projection: decode image: %w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
