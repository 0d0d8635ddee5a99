package history_test

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// The log says how far an episode had come at any entry.
func ExampleProgressAt() {
	if err := progress(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// turn 0
	//   offer pending
	//   leave pending
	// turn 1
	//   offer completed
	//   leave pending
}

func progress(ctx context.Context) error {
	tea, diagnostics := episode.Parse("tea.json", []byte(`{"id": "tea", "beats": [
		{"id": "offer", "character_instruction": "Offer tea.", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "tea"},
		{"id": "leave", "character_instruction": "Show them out.", "target_turn": 3, "detection_type": "automatic"}]}`))
	if err := diagnostics.Err(episode.ErrEpisode); err != nil {
		return err
	}
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Session(ctx, "a")
	if err != nil {
		return err
	}
	d := ses.Director()
	if err := d.Start(ctx, tea, director.Opening{}); err != nil {
		return err
	}
	begun := ses.Head().Seq
	if _, err := d.Guide(ctx, director.TurnInput{Turn: 1, Text: "It is cold."}); err != nil {
		return err
	}
	if _, err := d.Respond(ctx, director.Response{Turn: 1, Text: "Some tea, then."}); err != nil {
		return err
	}
	past, err := eng.Replay("a")
	if err != nil {
		return err
	}
	for _, seq := range []eventlog.Seq{begun, ses.Head().Seq} {
		p, err := history.ProgressAt(ctx, past, seq)
		if err != nil {
			return err
		}
		fmt.Printf("turn %d\n", p.Turn)
		for _, beat := range p.Beats {
			fmt.Printf("  %s %s\n", beat.Beat.ID, beat.Status)
		}
	}
	return nil
}
