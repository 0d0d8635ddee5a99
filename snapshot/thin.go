package snapshot

import (
	"fmt"
	"math/bits"

	bolt "go.etcd.io/bbolt"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// Thin drops images of a session, old ones first, until their total is at or below
// the configured part of logBytes, and returns how many it dropped. The package
// comment describes the rule.
func (s *Store) Thin(session string, logBytes uint64) (int, error) {
	// In the usual case there is nothing to drop, and List needs no commit.
	list, err := s.List(session)
	if err != nil {
		return 0, err
	}
	if drop := s.excess(list, logBytes); len(drop) == 0 {
		return 0, nil
	}
	var dropped int
	err = s.update(func(root *bolt.Bucket) error {
		b := root.Bucket([]byte(session))
		if b == nil {
			return nil
		}
		for _, seq := range s.excess(listBucket(b), logBytes) {
			if err := b.Delete(seqKey(seq)); err != nil {
				return err
			}
			dropped++
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("snapshot: thin %s: %w", session, err)
	}
	return dropped, nil
}

// excess returns the Seqs of the images to drop, for a list in ascending order.
func (s *Store) excess(list []ImageInfo, logBytes uint64) []eventlog.Seq {
	percent := uint64(s.cfg.Percent)
	budget := logBytes/100*percent + logBytes%100*percent/100
	if len(list) < 2 || total(list) <= budget {
		return nil
	}
	// No image is older than span intervals, so a window beyond it would drop
	// nothing but the second images of an interval.
	span := s.interval(list[len(list)-1]) - s.interval(list[0])
	window := uint64(1) << bits.Len64(span)
	if span >= 1<<63 {
		window = 1 << 63
	}
	for ; window > 0; window /= 2 {
		keep, drop := s.split(list, window)
		if keep <= budget {
			return drop
		}
	}
	var drop []eventlog.Seq
	for _, info := range list[:len(list)-1] {
		drop = append(drop, info.Seq)
	}
	return drop
}

// split applies the rule for one window: it returns the bytes of the images to keep
// and the Seqs of those to drop. An image's group is as wide as its age in windows, a
// power of two of intervals, and aligned; the image is dropped if an earlier one of
// its group is kept. Groups only become wider with age, so split never drops an image
// that a later call would keep.
func (s *Store) split(list []ImageInfo, window uint64) (keep uint64, drop []eventlog.Seq) {
	newest := list[len(list)-1]
	for i, last := 0, (*ImageInfo)(nil); i < len(list); i++ {
		info := &list[i]
		width := bits.Len64((s.interval(newest) - s.interval(*info)) / window)
		if last != nil && i < len(list)-1 && s.interval(*last)>>width == s.interval(*info)>>width {
			drop = append(drop, info.Seq)
			continue
		}
		last = info
		keep += uint64(info.Bytes)
	}
	return keep, drop
}

func (s *Store) interval(info ImageInfo) uint64 { return uint64(info.Seq) / uint64(s.cfg.Interval) }

func total(list []ImageInfo) (n uint64) {
	for _, info := range list {
		n += uint64(info.Bytes)
	}
	return n
}
