package sajou_test

import (
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

const joined = `{
	"id": "door",
	"beats": [
		{"id": "knock", "character_instruction": "Have somebody knock.", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "knock"},
		{"id": "open", "character_instruction": "Open.", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "opens", "requires_flag": "unlocked"},
		{"id": "alarm", "character_instruction": "Run.", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "runs", "requires_flag": "alarmed"}
	],
	"signals": [
		{"on": "beatLanded", "beat": "knock", "type": "play.knock", "payload": {"loud": true}},
		{"on": "flagSet", "flag": "unlocked", "type": "play.unlocked"}
	],
	"flag_rules": [
		{"on_effect": "Interact", "when": {"signal.target_id": {"equals": "lock"}}, "set": "unlocked"},
		{"on_signal": "error", "set": "alarmed"}
	]
}`

// A landing beat begins a performance, an effect of an agent sets a flag that
// becomes a signal, and a signal from outside sets one; all of it stands in the
// log in its order, and is folded alike by a replay.
func TestDirectorIsJoined(t *testing.T) {
	ctx := t.Context()
	ses := beginWorld(t, sajou.TimeManual)
	if _, err := ses.Define(ctx, definitions(t, `{"on":"play.knock","steps":[{"action":"move","entity":"door","to":{"x":1,"y":2},"duration":500}]}`)...); err != nil {
		t.Fatal(err)
	}
	d, world := ses.Director(), ses.Agents()
	if err := world.Begin(ctx, value(t, `{"entities":{"ada":{},"lock":{}}}`)); err != nil {
		t.Fatal(err)
	}
	ada, err := world.Register(ctx, "ada", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(ctx, episode(t, joined), director.Opening{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Guide(ctx, director.Input{Turn: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Respond(ctx, director.Response{Turn: 1, Text: "There is a knock."}); err != nil {
		t.Fatal(err)
	}
	begun, err := ses.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if performances := begun.View()["performances"].(map[string]any); len(performances) != 1 {
		t.Errorf("the landing beat began %v", performances)
	}
	if _, err := ada.Submit(ctx, interact("lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := ses.Record(ctx, sajou.Record{Signals: step{typ: "error"}.record(t, 1, 10).Signals}); err != nil {
		t.Fatal(err)
	}

	var story []string
	for e, err := range ses.Entries(ctx, 1) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case eventlog.KindSignal:
			sig, err := sajou.SignalOf(&e)
			if err != nil {
				t.Fatal(err)
			}
			story = append(story, "signal "+sig.Type)
		case eventlog.KindEffect:
			if r, err := sajou.WorldRecordOf(&e); err == nil && r.Word == "effect" {
				story = append(story, "effect")
			}
		case eventlog.KindBeat:
			r, err := sajou.BeatOf(&e)
			if err != nil {
				t.Fatal(err)
			}
			if r.Word == director.BeatLanded || r.Word == director.FlagSet {
				cause, _ := r.Value.Get("cause")
				text, _ := cause.Text()
				kind, _, _ := strings.Cut(text, ":")
				story = append(story, strings.TrimSpace(r.Word+" "+kind))
			}
		default:
		}
	}
	const want = "beatLanded, signal play.knock, effect, flagSet effect, signal play.unlocked, signal error, flagSet signal"
	if got := strings.Join(story, ", "); got != want {
		t.Errorf("told:\n%s\nwant:\n%s", got, want)
	}
	f, err := ses.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := replay.Open(logSource{ses}, sajou.Projections(), nil).At(ctx, replay.Moment{Seq: f.Head().Seq})
	if err != nil || digests(replayed) != digests(f) {
		t.Errorf("replayed %s, live %s, %v", digests(replayed), digests(f), err)
	}
}
