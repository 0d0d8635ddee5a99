package variant

import (
	"context"
	"fmt"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// renameEpisodes makes the events that begin or revise an episode name the replacing one
// where it is another. They name it by its digest, and the director's fold ignores those
// that do not name the declared episode.
func (b *builder) renameEpisodes(ctx context.Context, list []recorded) error {
	renamed := map[string]string{} // the digests
	for _, r := range list {
		was, ok := r.was.(*episode.Episode)
		if now, same := r.now.(*episode.Episode); ok && same && now != was {
			renamed[was.Digest().String()] = now.Digest().String()
		}
	}
	if len(renamed) == 0 {
		return nil
	}
	for e, err := range b.parent.Entries(ctx, list[0].seq) {
		if err != nil {
			return fmt.Errorf("variant: read the events of the episodes: %w", err)
		}
		if e.Seq > b.last {
			break
		}
		if p := b.points[e.Seq]; e.Kind != eventlog.KindBeat || p != nil && (p.drop || p.set != nil) {
			continue
		}
		r, err := session.BeatOf(&e)
		if err != nil || r.Word != episode.EpisodeStarted && r.Word != episode.EpisodeRevised {
			continue
		}
		changed, v := false, signal.ObjectOf(r.Value)
		for _, name := range []string{"digest", "from", "to"} {
			if now, ok := renamed[r.Value.TextOf(name)]; ok {
				v.Set(name, signal.Text(now))
				changed = true
			}
		}
		if changed {
			b.point(e.Seq).set = &eventlog.Draft{Kind: e.Kind, At: e.At, Data: session.AppendWord(nil, r.Word, v.Value())}
		}
	}
	return ctx.Err()
}
