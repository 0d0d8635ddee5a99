package message_test

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents/message"
)

// Three talk, two of them of one team. What is said in private stays so, and a message
// that is emitted twice is said once.
func Example() {
	if err := talk(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// bob hears ann (public): hello all
	// bob hears ann (team): the door is open
	// bob hears street (public): a bell rings
	// cid hears ann (public): hello all
	// cid hears ann (private): not a word to bob
	// cid hears street (public): a bell rings
}

func talk(ctx context.Context) error {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Session(ctx, "room")
	if err != nil {
		return err
	}
	if err := ses.Agents().Configure(ctx, value(`{"cooldowns":"off"}`)); err != nil {
		return err
	}
	room := message.New(ses)
	for id, team := range map[string]string{"ann": "red", "bob": "red", "cid": ""} {
		if err := room.Join(ctx, message.Member{AgentID: id, Team: team}); err != nil {
			return err
		}
	}
	for _, m := range []message.Message{
		{Text: "hello all", ReqID: "1"},
		{Text: "the door is open", Channel: "team", ReqID: "2"},
		{Text: "the door is open", Channel: "team", ReqID: "2"}, // in case the first was lost
		{Text: "not a word to bob", To: "cid", ReqID: "3"},
	} {
		if _, err := room.Emit(ctx, "ann", m); err != nil {
			return err
		}
	}
	if _, err := room.Emit(ctx, "street", message.Message{Text: "a bell rings"}); err != nil {
		return err
	}
	for _, id := range []string{"bob", "cid"} {
		for m, err := range room.Resume(ctx, id, 0, message.Filter{}) {
			if err != nil {
				return err
			}
			fmt.Printf("%s hears %s (%s): %s\n", id, m.From, m.Channel, m.Text)
			if m.Text == "a bell rings" {
				break
			}
		}
	}
	return nil
}
