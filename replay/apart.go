package replay

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// apartSnapshots is what the [Snapshots] of a store offer for projections whose images
// are kept apart.
type apartSnapshots interface {
	// apart returns the images of one projection.
	apart(p projection.Projection) apartImages
}

// apartImages are the images of one projection of a session.
type apartImages interface {
	Snapshots
	due(last, seq eventlog.Seq) bool
	keep(img projection.Image)
	supersede(seq eventlog.Seq)
}

func (s stored) apart(p projection.Projection) apartImages {
	return stored{s.store, s.session, snapshot.ApartName(s.session, p.Name, p.Version), projection.Set{p}}
}

func (s stored) due(last, seq eventlog.Seq) bool { return s.store.Due(last, seq) }

// keep stores an image that was made on the way. It only saves time, so an error, that
// of a store that is read-only among them, changes nothing.
func (s stored) keep(img projection.Image) {
	for _, one := range img.Split(s.set)[1:] {
		_ = s.store.Put(s.name, one)
	}
}

func (s stored) supersede(seq eventlog.Seq) {
	_ = s.store.Supersede(s.session, s.set[0].Name, s.set[0].Version, seq)
}

// withApart returns the fold of the whole set where the fold of its core stands, which
// is an entry of the log. It restores each projection apart from an image of the same
// entry. Where there is none, it folds the projection alone up to there, and keeps
// images on the way: a new projection, or another version, is so built beside the
// images of the old one, which are dropped when it has reached their end.
func (r *Replay) withApart(ctx context.Context, core *projection.Fold) (*projection.Fold, error) {
	all := r.set.Apart()
	if len(all) == 0 {
		return core, nil
	}
	folds := []*projection.Fold{core}
	for _, p := range all {
		f, err := r.apart(ctx, p, core)
		if err != nil {
			return nil, err
		}
		folds = append(folds, f)
	}
	return projection.Merge(r.set, folds...), nil
}

func (r *Replay) apart(ctx context.Context, p projection.Projection, core *projection.Fold) (*projection.Fold, error) {
	head := core.Head()
	images, ok := r.snaps.(apartSnapshots)
	if !ok {
		start := projection.NewFold(projection.Set{p}, r.src.Genesis())
		return start, r.foldOn(ctx, start, head.Seq, nil)
	}
	kept, seq := r.built.nearest(p.Name, head.Seq)
	own := images.apart(p)
	for limit := head.Seq; ; {
		img, ok, err := own.Nearest(ctx, limit)
		if err != nil || !ok || img.Head.Seq > limit || img.Head.Seq <= seq {
			break
		}
		// The image of the core was compared with the entry of its Head. An earlier image
		// is compared with its own.
		fits := img.Head == head && img.At == core.At()
		if img.Head.Seq < head.Seq && img.Head.Seq > 0 {
			e, found, err := entryAt(ctx, r.src, img.Head.Seq)
			if err != nil {
				return nil, err
			}
			fits = found && e.Head() == img.Head && e.At == img.At
		}
		if fits {
			if f, err := projection.RestoreFold(projection.Set{p}, img); err == nil {
				return f, r.build(ctx, f, head.Seq, own)
			}
		}
		if img.Head.Seq == 0 {
			break
		}
		limit = img.Head.Seq - 1
	}
	if kept != nil {
		// The image was made of this log.
		if f, err := projection.RestoreFold(projection.Set{p}, *kept); err == nil {
			return f, r.build(ctx, f, head.Seq, own)
		}
	}
	f := projection.NewFold(projection.Set{p}, r.src.Genesis())
	return f, r.build(ctx, f, head.Seq, own)
}

// build folds one projection on to an entry and keeps its images on the way.
func (r *Replay) build(ctx context.Context, f *projection.Fold, to eventlog.Seq, images apartImages) error {
	last := f.Head().Seq
	err := r.foldOn(ctx, f, to, func(f *projection.Fold) {
		if seq := f.Head().Seq; images.due(last, seq) || seq == to {
			images.keep(f.Image())
			last = seq
		}
		r.built.saw(f, to)
	})
	if err == nil {
		images.supersede(to)
	}
	return err
}

// apartCache keeps images of projections apart in memory, for those whose images no
// store keeps: a read-only one, or none of a projection that is folded only when a
// program asks for it. A search that jumps back then folds a part of the session again
// and not all of it.
type apartCache struct {
	mu     sync.Mutex
	images map[string][]projection.Image // by projection, in the order of their entries
}

// The bounds of the images of one projection in an [apartCache].
const (
	apartImagesKept = 16
	apartBytesKept  = 64 << 20
)

// nearest returns the latest image at or before an entry, or nil.
func (c *apartCache) nearest(name string, seq eventlog.Seq) (*projection.Image, eventlog.Seq) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, img := range slices.Backward(c.images[name]) {
		if img.Head.Seq <= seq {
			return &img, img.Head.Seq
		}
	}
	return nil, 0
}

// saw keeps an image of a fold of one projection that is on its way to an entry, about
// [apartImagesKept] on the way from the first entry.
func (c *apartCache) saw(f *projection.Fold, to eventlog.Seq) {
	seq := f.Head().Seq
	if seq%max(reach, (to/apartImagesKept+reach-1)/reach*reach) != 0 {
		return
	}
	name := f.Set()[0].Name
	c.mu.Lock()
	defer c.mu.Unlock()
	i, found := slices.BinarySearchFunc(c.images[name], seq, func(img projection.Image, seq eventlog.Seq) int {
		return cmp.Compare(img.Head.Seq, seq)
	})
	if found {
		return
	}
	if c.images == nil {
		c.images = map[string][]projection.Image{}
	}
	list := slices.Insert(c.images[name], i, f.Image())
	for n := len(list); n > 1 && (n > apartImagesKept || imageBytes(list) > apartBytesKept); n = len(list) {
		// The image goes whose neighbours stand closest.
		drop := 0
		for k := 1; k < n-1; k++ {
			if drop == 0 || list[k+1].Head.Seq-list[k-1].Head.Seq < list[drop+1].Head.Seq-list[drop-1].Head.Seq {
				drop = k
			}
		}
		list = slices.Delete(list, drop, drop+1)
	}
	c.images[name] = list
}

func imageBytes(images []projection.Image) int {
	n := 0
	for i := range images {
		for _, part := range images[i].Parts {
			n += len(part.Data)
		}
	}
	return n
}
