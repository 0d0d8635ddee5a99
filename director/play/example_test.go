package play_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/director/play"
	"github.com/sajou-dev/sajou-go/director/script"
)

// lines is a display that prints the lines of a sitting.
type lines struct{}

func (lines) JSON() bool           { return false }
func (lines) WriteEvent(any) error { return errors.ErrUnsupported } // only if JSON
func (lines) WriteLine(line string) error {
	_, err := fmt.Println(strings.TrimRight(line, " "))
	return err
}
func (lines) Flush() error { return nil }

// A user plays a bundled episode with lines of text. The script speaks for the character,
// and the log says how far the episode has come.
func ExampleSitting() {
	if err := interview(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// The Interview
	// A glass room on the ninth floor, late afternoon. Morgan has your papers on the table and has not looked at them.
	// What you want: Leave the room with an offer that you can live with.
	// Morgan decides today.
	//
	// Morgan: Thank you for coming up. Water?
	//
	// You: Good morning.
	//   · turn 1 of 10, establish
	// Morgan: (pours two glasses, and takes the chair beside yours) Nine floors, and you are not out of breath. Lift, or ambition?
	// ask_salary pending
	// name_range pending
	// the_offer pending
}

func interview(ctx context.Context) error {
	authored, written, _ := script.Bundled("interview")
	e, diagnostics := episode.Parse("interview.json", authored)
	if err := diagnostics.Err(episode.ErrEpisode); err != nil {
		return err
	}
	lineOf, err := script.Parse(written)
	if err != nil {
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
	sitting, err := play.Begin(ctx, ses, e)
	if err != nil {
		return err
	}
	actor := play.ScriptedActor{Script: lineOf}
	sitting.Cast(actor, actor.JudgeOf)
	if err := sitting.PlayLines(ctx, strings.NewReader("Good morning.\n"), &play.Page{Out: lines{}}); err != nil {
		return err
	}
	past, err := eng.Replay("a")
	if err != nil {
		return err
	}
	progress, err := history.ProgressAt(ctx, past, ses.Head().Seq)
	if err != nil {
		return err
	}
	for _, beat := range progress.Beats {
		fmt.Println(beat.Beat.ID, beat.Status)
	}
	return nil
}
