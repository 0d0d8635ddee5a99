package message

import (
	"errors"
	"testing"

	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Whatever a payload says, it is refused, or read the same before and after it was
// made a message; one that is private has somebody it is for.
func FuzzPayload(f *testing.F) {
	f.Add([]byte(`{"text":"hello","channel":"private","target_id":"bob"}`), "", "")
	f.Add([]byte(`{"message":"hello","channel":null}`), "team", "")
	f.Add([]byte(`{"channel":["private"],"target_id":7}`), "", "ann")
	r := &Room{kinds: []string{world.KindSpeak}}
	f.Fuzz(func(t *testing.T, json []byte, channel, to string) {
		v, err := signal.ParseValue(json)
		if err != nil {
			return
		}
		read(v)
		m := Message{Kind: world.KindSpeak, Payload: v, Channel: channel, To: to}
		payload, err := r.payload(&m)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", json, err)
			}
			return
		}
		if _, rest, err := signal.CheckValue(payload); err != nil || len(rest) > 0 {
			t.Fatalf("%s became no value: %v", json, err)
		}
		got := read(payload)
		switch got.Channel {
		case world.ChannelPrivate:
			if got.To == "" {
				t.Errorf("%v is private and for nobody", payload)
			}
		case world.ChannelPublic, world.ChannelTeam:
		default:
			t.Errorf("%v has channel %q", payload, got.Channel)
		}
		if channel != "" && got.Channel != channel || to != "" && got.To != to {
			t.Errorf("%v: channel %q and target %q are lost", payload, channel, to)
		}
	})
}
