package live_test

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
)

// host stands for the language model that judges responses. It is asked about beats that
// no keyword can find.
type host struct{}

func (host) Judge(_ context.Context, q director.Question) (model, answer string, err error) {
	return "host-1", map[bool]string{true: "YES", false: "NO"}[q.Subject.ID == "warm"], nil
}

const evening = `{
	"id": "evening",
	"beats": [
		{"id": "warm", "character_instruction": "Make them feel at home.", "target_turn": 1,
		 "detection_type": "semantic", "detection_criteria": "the guest is put at ease"},
		{"id": "offer", "character_instruction": "Offer tea.", "target_turn": 2, "requires_beat": "warm",
		 "detection_type": "keyword", "detection_criteria": "tea",
		 "choice_point": {"id": "drink", "prompt": "Well?", "choices": [
			{"id": "yes", "label": "Yes, please.", "sets_flag": "warmed"}, {"id": "no", "label": "No time."}]}}
	]
}`

// A chat service asks the director for guidance before the character speaks, and reports
// what the character has said. The user then chooses.
func ExampleDirector() {
	if err := playEvening(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// turn 1: Make them feel at home.
	// landed warm, verified
	// turn 2: Offer tea.
	// landed offer, verified
	// Well? Yes, please.
}

func playEvening(ctx context.Context) error {
	authored, diagnostics := episode.Parse("evening.json", []byte(evening))
	if err := diagnostics.Err(episode.ErrEpisode); err != nil {
		return err
	}
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Judge: host{}})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Session(ctx, "a")
	if err != nil {
		return err
	}
	d := ses.Director()
	if err := d.Start(ctx, authored, director.Opening{}); err != nil {
		return err
	}
	for i, turn := range []struct{ user, character string }{
		{"It is cold out there.", "Sit down by the fire."},
		{"Thank you.", "Would you like some tea?"},
	} {
		guidance, err := d.Guide(ctx, director.TurnInput{Turn: i + 1, Text: turn.user})
		if err != nil {
			return err
		}
		if guidance.Directive != nil { // nil if the character is free
			fmt.Printf("turn %d: %s\n", guidance.Turn, guidance.Directive.Instruction)
		}
		result, err := d.Respond(ctx, director.Response{Turn: i + 1, Text: turn.character})
		if err != nil {
			return err
		}
		for _, landed := range result.Landed {
			fmt.Printf("landed %s, %s\n", landed.Beat, landed.Assurance)
		}
		if result.Choice != nil {
			choice, err := d.Choose(ctx, result.Choice.ID, "yes")
			if err != nil {
				return err
			}
			fmt.Println(result.Choice.Prompt, choice.Message.Content)
		}
	}
	return nil
}
