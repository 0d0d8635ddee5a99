package cli

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// BeatText describes an event of the director in a word and one line. An event of
// an unknown word is shown as JSON.
func BeatText(r signal.Record) (word, detail string) {
	v := r.Value
	if said, ok := session.UtteranceOf(r); ok {
		return r.Word, fmt.Sprintf("turn %d, %s: %s", said.Turn, said.Role, termtext.Quote(said.Text))
	}
	beat, turn := v.TextOf("beat"), v.IntOf("turn")
	about := beat
	if o := v.TextOf("objective"); o != "" {
		about = "objective " + o
	}
	switch r.Word {
	case episode.EpisodeStarted:
		// The episode itself may stand in it.
		name := v.TextOf("episode")
		if name == "" {
			e, _ := v.Get("episode")
			name = e.TextOf("id")
		}
		return r.Word, name
	case episode.TurnOpened:
		detail = fmt.Sprintf("turn %d", turn)
		switch v.TextOf("input") {
		case "choice":
			detail += fmt.Sprintf(", the user chose %s of %s", v.TextOf("choice"), v.TextOf("choice_point"))
		case "text":
			detail += ", the user typed"
		}
		return r.Word, detail
	case episode.GuidanceIssued:
		detail = fmt.Sprintf("turn %d: %s, %s", turn, v.TextOf("pacing"), v.TextOf("energy"))
		if d, ok := v.Get("directive"); ok {
			detail = fmt.Sprintf("turn %d: %s is %s", turn, d.TextOf("beat"), d.TextOf("urgency"))
		}
		return r.Word, detail
	case episode.ResponseRecorded:
		return r.Word, fmt.Sprintf("turn %d, attempt %d: …%s", turn, v.IntOf("attempt"), termtext.Quote(v.TextOf("tail")))
	case episode.AttemptDropped, episode.TurnEvaluated:
		return r.Word, fmt.Sprintf("turn %d, attempt %d", turn, v.IntOf("attempt"))
	case episode.JudgementAsked:
		return r.Word, fmt.Sprintf("turn %d, attempt %d: %s, prompt %.16s", turn, v.IntOf("attempt"), about, v.TextOf("prompt"))
	case episode.VerdictRecorded:
		return r.Word, verdictText(v, about)
	case episode.BeatLanded, episode.BeatHeld:
		detail = beat + ", " + v.TextOf("assurance")
		if method := v.TextOf("method"); method != v.TextOf("assurance") {
			detail += " by " + method
		}
		if heard := v.IntOf("heard_at_turn"); heard != turn {
			detail += fmt.Sprintf(", heard in turn %d", heard)
		}
		return r.Word, detail
	case episode.BeatForced:
		return r.Word, beat + ": " + termtext.Quote(v.TextOf("line"))
	case episode.BeatMissed:
		return r.Word, fmt.Sprintf("%s, by %s; dependants %s", beat, v.TextOf("cause"), v.TextOf("dependants"))
	case episode.DeadlineMissed:
		return r.Word, fmt.Sprintf("%s, due in turn %d", beat, v.IntOf("deadline"))
	case episode.ChoiceOffered, episode.ChoiceDeclined:
		return r.Word, v.TextOf("choice_point")
	case episode.ChoiceSelected:
		return r.Word, fmt.Sprintf("%s: %s, %s", v.TextOf("choice_point"), v.TextOf("choice"), termtext.Quote(v.TextOf("label")))
	case episode.FlagSet, episode.FlagCleared:
		return r.Word, fmt.Sprintf("%s, by %s", v.TextOf("flag"), v.TextOf("cause"))
	case episode.ObjectiveCompleted, episode.ObjectiveFailed:
		return r.Word, fmt.Sprintf("%s, by %s", v.TextOf("objective"), v.TextOf("cause"))
	case episode.EpisodeFailed:
		return r.Word, "by " + v.TextOf("cause")
	case episode.PropRevealed:
		return r.Word, fmt.Sprintf("%s, by %s", v.TextOf("prop"), v.TextOf("cause"))
	case episode.VisualTriggered:
		return r.Word, fmt.Sprintf("picture %d of %d", v.IntOf("index"), v.IntOf("of"))
	case episode.SuggestionMade:
		return r.Word, fmt.Sprintf("%s, by %s", v.TextOf("episode"), v.TextOf("cause"))
	default:
		return r.Word, string(v.AppendJSON(nil))
	}
}

func verdictText(v signal.Value, about string) string {
	text := fmt.Sprintf("attempt %d, %s: %s, %s", v.IntOf("attempt"), about, v.TextOf("verdict"), v.TextOf("method"))
	if model := v.TextOf("model"); model != "" {
		text += " by " + model
	}
	if raw := v.TextOf("raw"); raw != "" {
		text += ", " + termtext.Quote(raw)
	}
	if matched := v.TextOf("matched"); matched != "" {
		text += ", " + termtext.Quote(matched)
	}
	if failure := v.TextOf("failure"); failure != "" {
		text += ", failed: " + termtext.Quote(failure)
	}
	for _, mark := range []struct{ name, says string }{{"again", "asked again"}, {"inactive", "too late"}} {
		if v.BoolOf(mark.name) {
			text += ", " + mark.says
		}
	}
	return text
}
