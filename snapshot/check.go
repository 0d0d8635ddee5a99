package snapshot

import (
	"bytes"
	"context"
	"fmt"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// Build folds a session from its first entry and takes an image at every interval,
// thinned to their part of the log's size in bytes. It returns how many it took.
// Progress, unless nil, is called before each with the number of entries folded, and saw,
// unless nil, with the fold after each entry; it may complete the entry's instant.
func (s *Store) Build(ctx context.Context, log *eventlog.SessionReader, set projection.Set, size uint64, progress func(folded, entries eventlog.Seq), saw func(*projection.Fold)) (taken int, err error) {
	fold, end, last := projection.NewFold(set, log.Genesis()), log.Head().Seq, eventlog.Seq(0)
	for entry, err := range log.Entries(ctx, 1) {
		if err == nil {
			err = fold.Apply(&entry)
		}
		if err != nil {
			return taken, fmt.Errorf("snapshot: build images of %q: %w", log.Name(), err)
		}
		if s.Due(last, entry.Seq) {
			if progress != nil {
				progress(entry.Seq, end)
			}
			if err := s.take(log.Name(), fold, set, size); err != nil {
				return taken, err
			}
			last = entry.Seq
			taken++
		}
		if saw != nil {
			saw(fold)
		}
	}
	return taken, nil
}

// take stores the images of a fold and thins those of its session.
func (s *Store) take(session string, fold *projection.Fold, set projection.Set, size uint64) error {
	name, img := session, fold.Image()
	for i, img := range img.Split(set) {
		if i > 0 {
			name = ApartName(session, img.Parts[0].Name, img.Parts[0].Version)
		}
		if err := s.Put(name, img); err != nil {
			return err
		}
		// Thinned after each, so that the file never holds them all.
		if _, err := s.Thin(name, size); err != nil {
			return err
		}
	}
	return nil
}

// ImageFault is an image that differs from the state folded from the log, or that is
// damaged.
type ImageFault struct {
	Seq    eventlog.Seq // the entry it was taken at
	Detail string       // for people
}

// Verify folds a session from its first entry, without images, and compares each of
// its images with the state there. It returns those that differ or are damaged, and
// how many there are. Images of other projections, or of other versions of them, are
// never used and are not faults. Those of projections apart are compared too.
//
// Only this call compares an image with the log. The checksum of an image detects
// accidents, and an image with another Head is ignored, but a program that can write
// the file can save any state in it.
func (s *Store) Verify(ctx context.Context, log *eventlog.SessionReader, set projection.Set) (bad []ImageFault, checked int, err error) {
	bad, checked, err = s.verify(ctx, log, log.Name(), set.Core())
	for _, p := range set.Apart() {
		if err != nil {
			return nil, 0, err
		}
		var more []ImageFault
		var n int
		more, n, err = s.verify(ctx, log, ApartName(log.Name(), p.Name, p.Version), projection.Set{p})
		bad, checked = append(bad, more...), checked+n
	}
	return bad, checked, err
}

// verify is Verify for the images under one name.
func (s *Store) verify(ctx context.Context, log *eventlog.SessionReader, name string, set projection.Set) (bad []ImageFault, checked int, err error) {
	list, err := s.List(name)
	if err != nil {
		return nil, 0, err
	}
	fold := projection.NewFold(set, log.Genesis())
	found := func(seq eventlog.Seq, format string, args ...any) {
		bad = append(bad, ImageFault{seq, fmt.Sprintf(format, args...)})
	}
	compare := func(seq eventlog.Seq) {
		checked++
		img, err := s.Get(name, seq)
		switch {
		case err != nil:
			found(seq, "it cannot be read: %v", err)
		case !img.Of(set):
		case img.Head != fold.Head():
			found(seq, "it is of %v, and the log has %v there", img.Head, fold.Head())
		case img.At != fold.At():
			found(seq, "it is of the session time %v, and the entry of %v", img.At, fold.At())
		default:
			for i, p := range fold.Image().Parts {
				if !bytes.Equal(p.Data, img.Parts[i].Data) {
					found(seq, "its projection %q is not what the log gives", p.Name)
					break
				}
			}
		}
	}
	for ; len(list) > 0 && list[0].Seq == 0; list = list[1:] {
		compare(0)
	}
	for entry, err := range log.Entries(ctx, 1) {
		if len(list) == 0 {
			break
		}
		if err == nil {
			err = fold.Apply(&entry)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("snapshot: verify images of %q: %w", log.Name(), err)
		}
		if list[0].Seq == entry.Seq {
			compare(entry.Seq)
			list = list[1:]
		}
	}
	for _, info := range list {
		checked++
		found(info.Seq, "the log ends before it, with entry %d", fold.Head().Seq)
	}
	return bad, checked, nil
}
