package provenance

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// directorCauses remembers the director's events that later ones may depend on.
type directorCauses struct {
	state  *director.State
	play   play
	before play // the response of the turn, to which another attempt returns
	cues   []awaitedCue
}

// awaitedCue is a signal that the director's reactions make of an event, and record after it.
type awaitedCue struct {
	seq eventlog.Seq // of the event
	director.Cue
}

// play holds the newest events of an episode. The maps are by kind and name, as in
// "beat:salary".
type play struct {
	declared, started              eventlog.Seq
	turn, guided, responded        eventlog.Seq
	user, character                eventlog.Seq // messages
	settled                        map[string]eventlog.Seq
	asked, verdict, held, directed map[string]eventlog.Seq
	offered                        map[string]eventlog.Seq
}

func newPlay() play {
	return play{
		settled: map[string]eventlog.Seq{}, asked: map[string]eventlog.Seq{}, verdict: map[string]eventlog.Seq{},
		held: map[string]eventlog.Seq{}, directed: map[string]eventlog.Seq{}, offered: map[string]eventlog.Seq{},
	}
}

func (p *play) clone() play {
	c := *p
	for _, m := range [...]*map[string]eventlog.Seq{&c.settled, &c.asked, &c.verdict, &c.held, &c.directed, &c.offered} {
		*m = maps.Clone(*m)
	}
	return c
}

// directorEntry notes what an entry of the director depends on, and of a signal of the
// director its event.
func (d *decisions) directorEntry(e *eventlog.Entry) {
	switch e.Kind {
	case eventlog.KindSignal:
		if len(d.plays.cues) > 0 {
			d.cue(e)
		}
	case eventlog.KindBeat, eventlog.KindDefine:
		d.beat(e)
	default:
	}
}

// cue notes the event that a signal was made of.
func (d *decisions) cue(e *eventlog.Entry) {
	sig, err := session.SignalOf(e)
	if err != nil || sig.Source != session.CueSource || sig.ID != session.CueID(e.Seq) {
		return
	}
	i := slices.IndexFunc(d.plays.cues, func(c awaitedCue) bool {
		return c.Type == sig.Type && bytes.Equal(c.Payload, sig.Payload)
	})
	if i >= 0 {
		d.link(entryKey(e.Seq), entryKey(d.plays.cues[i].seq), "was made of", true)
		d.plays.cues = slices.Delete(d.plays.cues, i, i+1)
	}
}

func (d *decisions) beat(e *eventlog.Entry) {
	p := &d.plays.play
	if r, err := session.BeatOf(e); err == nil && r.Word == session.WordMessage {
		if r.Value.TextOf("role") == "user" {
			p.user = e.Seq
		} else {
			p.character = e.Seq
			d.link(entryKey(e.Seq), entryKey(p.guided), "may follow", false)
		}
		return
	}
	r, ok := session.DirectorRecordOf(e)
	if !ok || d.plays.state.Apply(r.Word, r.Value) != nil {
		return // it changes nothing
	}
	d.event(e.Seq, r.Word, r.Value)
	for _, cue := range d.plays.state.Signals(r) {
		d.plays.cues = append(d.plays.cues, awaitedCue{e.Seq, cue})
	}
	if over := len(d.plays.cues) - maxCues; over > 0 {
		d.plays.cues = slices.Delete(d.plays.cues, 0, over)
	}
}

// event notes what an event depends on.
func (d *decisions) event(seq eventlog.Seq, word string, v signal.Value) {
	p := &d.plays.play
	link := func(to eventlog.Seq, reason string) { d.link(entryKey(seq), entryKey(to), reason, true) }
	may := func(to eventlog.Seq, reason string) { d.link(entryKey(seq), entryKey(to), reason, false) }
	beat, subject := "beat:"+v.TextOf("beat"), subjectOf(v)
	choice := "choice:" + v.TextOf("choice_point")
	switch word {
	case episode.Word:
		p.declared = seq
	case episode.EpisodeStarted:
		declared, flags := p.declared, p.settled
		*p = newPlay()
		p.declared, p.started = declared, seq
		for name, flag := range flags {
			if strings.HasPrefix(name, "flag:") {
				p.settled[name] = flag // they are carried over
			}
		}
		link(declared, "plays")
	case episode.EpisodeRevised:
		link(p.declared, "goes on with")
		link(p.started, "revises")
	case episode.TurnOpened:
		switch v.TextOf("input") {
		case "choice":
			link(p.settled[choice], "takes the choice of")
		case "text":
			link(p.user, "has the input of")
		}
		link(p.started, "is a turn of")
		p.turn, p.guided, p.responded = seq, 0, 0
	case episode.GuidanceIssued:
		link(p.turn, "guides")
		p.guided = seq
		if id := v.Member("directive").TextOf("beat"); id != "" {
			p.directed["beat:"+id] = seq
			d.required(seq, id)
		}
	case episode.ResponseRecorded:
		d.plays.before = p.clone()
		link(p.character, "has the text of")
		link(p.turn, "answers")
		may(p.guided, "may follow")
		p.responded = seq
	case episode.AttemptDropped:
		link(p.responded, "drops")
		d.drop()
	case episode.JudgementAsked:
		link(p.responded, "is about")
		p.asked[subject] = seq
	case episode.VerdictRecorded:
		if v.TextOf("method") == episode.Semantic.String() {
			link(p.asked[subject], "answers")
		}
		link(p.responded, "is about")
		if v.TextOf("verdict") == "yes" {
			p.verdict[subject] = seq
		}
	case episode.BeatHeld, episode.BeatLanded, episode.BeatForced, episode.BeatMissed, episode.DeadlineMissed:
		d.beatEvent(seq, word, v)
	case episode.ChoiceOffered:
		link(p.settled[beat], "opens with")
		link(p.turn, "is an event of")
		p.offered[choice] = seq
	case episode.ChoiceSelected, episode.ChoiceDeclined:
		link(p.offered[choice], "answers")
		p.settled[choice] = seq
	case episode.TurnEvaluated:
		link(p.responded, "evaluates")
	default:
		d.caused(seq, v)
		for _, kind := range [...]string{"flag", "objective", "prop"} {
			if name := v.TextOf(kind); name != "" {
				p.settled[kind+":"+name] = seq
			}
		}
	}
}

// drop forgets the events of a response that was dropped, as the state does: flags that an
// external event set stay.
func (d *decisions) drop() {
	p, before := &d.plays.play, &d.plays.before
	if before.turn != p.turn {
		return
	}
	view, _ := d.plays.state.View().(map[string]any)
	flags, _ := view["flags"].(map[string]any)
	settled := p.settled
	*p = before.clone()
	for name := range flags {
		if seq, ok := settled["flag:"+name]; ok {
			p.settled["flag:"+name] = seq
		}
	}
}

// beatEvent notes what an event about a beat depends on.
func (d *decisions) beatEvent(seq eventlog.Seq, word string, v signal.Value) {
	p := &d.plays.play
	link := func(to eventlog.Seq, reason string, exact bool) { d.link(entryKey(seq), entryKey(to), reason, exact) }
	id := v.TextOf("beat")
	beat := "beat:" + id
	switch word {
	case episode.BeatMissed, episode.DeadlineMissed:
		d.caused(seq, v)
	case episode.BeatForced:
		link(p.turn, "is an event of", true)
		p.held[beat] = seq
	default:
		found := p.verdict[beat]
		if held, ok := p.held[beat]; ok {
			link(held, "was held or forced by", true)
		} else {
			link(found, "was found by", true)
		}
		if found == 0 {
			link(p.responded, "was assumed of", true)
		}
	}
	link(p.directed[beat], "was directed by", word == episode.BeatLanded && v.TextOf("method") == episode.Automatic.String())
	d.required(seq, id)
	switch word {
	case episode.BeatHeld:
		p.held[beat] = seq
	case episode.BeatLanded, episode.BeatMissed:
		p.settled[beat] = seq
		delete(p.held, beat)
	}
}

// required notes the beat and the flag that must come before a beat.
func (d *decisions) required(seq eventlog.Seq, beat string) {
	e, p := d.plays.state.Episode(), &d.plays.play
	i, ok := e.BeatIndex(beat)
	if !ok {
		return
	}
	b := &e.Beats[i]
	if b.RequiresBeat >= 0 {
		d.link(entryKey(seq), entryKey(p.settled["beat:"+e.Beats[b.RequiresBeat].ID]), "requires", true)
	}
	if b.RequiresFlag != "" {
		d.link(entryKey(seq), entryKey(p.settled["flag:"+b.RequiresFlag]), "requires", true)
	}
}

// caused notes the event that the cause of another one names, else its turn.
func (d *decisions) caused(seq eventlog.Seq, v signal.Value) {
	p := &d.plays.play
	cause := v.TextOf("cause")
	kind, name, _ := strings.Cut(cause, ":")
	to := eventlog.Seq(0)
	switch kind {
	case "signal", "effect":
		if n, err := strconv.ParseUint(name, 10, 64); err == nil && eventlog.Seq(n) < seq {
			to = eventlog.Seq(n)
		}
	case "choice":
		point, _, _ := strings.Cut(name, "/")
		to = p.settled["choice:"+point]
	case "objective", "beat", "flag":
		to = p.settled[cause]
	case "mention":
		to = p.responded
	case "semantic", "keyword":
		to = p.verdict[subjectOf(v)]
	case "start":
		to = p.started
	}
	if to == 0 {
		d.link(entryKey(seq), entryKey(p.turn), "is an event of", true)
		return
	}
	d.link(entryKey(seq), entryKey(to), "was caused by", true)
}

// subjectOf returns the beat or the objective that an event is about.
func subjectOf(v signal.Value) string {
	if id := v.TextOf("beat"); id != "" {
		return "beat:" + id
	}
	return "objective:" + v.TextOf("objective")
}
