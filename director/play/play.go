// Package play lets a user play an episode: the user says lines or chooses, an [Actor]
// answers for the character, a judge judges the answers, and the director of a session
// records everything. A [Sitting] reads lines and shows lines ([Sitting.PlayLines]), or
// runs on a terminal ([Sitting.PlayTerminal]).
//
// # Invariants
//
//   - A [Sitting] holds nothing that the log does not hold. It shows durable entries
//     only, and another sitting can continue one that ended at any point.
//   - Texts of users, characters and episodes are shown with the runes escaped that
//     control a terminal.
//
// The package imports the root package, which never imports it. It opens no store and
// reads no file.
package play

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Sitting is one user's play of an episode. Its methods must not be called concurrently.
type Sitting struct {
	session  *sajou.Session
	director *live.Director
	actor    Actor
	judge    JudgeOf // nil for none
	beyond   bool    // the play continues when the turn budget is used up

	episode   *episode.Episode
	next      eventlog.Seq        // the first entry that was not read
	messages  []session.Utterance // the latest, at most 2*maxMessages, without responses that were dropped
	said      map[episode.ContentDigest]bool
	chosen    string // the input of the open turn if it was a choice: POINT/OPTION
	suggested []suggestion
}

// Errors of a sitting.
var (
	// ErrNoEpisode reports that no episode is played in a session, and that the caller
	// gave none to start.
	ErrNoEpisode = errors.New("play: no episode is played in the session")

	// ErrOtherEpisode reports that another episode, or another version of it, is
	// played in a session.
	ErrOtherEpisode = errors.New("play: another episode, or another version of it, is played in the session")

	// ErrLeft reports that the user has left the play.
	ErrLeft = errors.New("play: the user has left")

	// ErrLongLine reports a line of the user that is longer than [MaxLine].
	ErrLongLine = fmt.Errorf("play: a line is longer than %d KiB", MaxLine>>10)
)

// MaxLine bounds a line of the user, in bytes.
const MaxLine = 64 << 10

// ActorError reports that the character could not answer. The turn still waits for an
// answer.
type ActorError struct{ Err error }

func (e *ActorError) Error() string {
	return fmt.Sprintf("play: the character does not answer: %v", e.Err)
}

// Unwrap returns the cause.
func (e *ActorError) Unwrap() error { return e.Err }

// Begin returns a sitting of the episode that is played in a session. If none is played,
// Begin starts e; a nil e means the episode that is played.
func Begin(ctx context.Context, ses *sajou.Session, e *episode.Episode) (*Sitting, error) {
	fold, err := ses.State(ctx)
	if err != nil {
		return nil, err
	}
	s := &Sitting{session: ses, director: ses.Director(), actor: StandIn{}, said: map[episode.ContentDigest]bool{}}
	switch under := session.DirectorOf(fold).Episode(); {
	case under == nil && e == nil:
		return nil, ErrNoEpisode
	case under == nil:
		if err := s.director.Start(ctx, e, director.Opening{}); err != nil {
			return nil, err
		}
	case e != nil && e.Digest() != under.Digest():
		return nil, ErrOtherEpisode
	}
	_, err = s.look(ctx)
	return s, err
}

// Over reports whether the turn budget is used up and no turn or choice is open.
func (s *Sitting) Over(ctx context.Context) (bool, error) {
	at, err := s.look(ctx)
	return at.over, err
}

// Cast sets the actor of the character and the judge of its responses. Without a judge
// every question is recorded as unclear.
func (s *Sitting) Cast(a Actor, judge JudgeOf) { s.actor, s.judge = a, judge }

// GoBeyond lets the play continue when the turn budget is used up.
func (s *Sitting) GoBeyond() { s.beyond = true }

// Episode returns the episode that is played.
func (s *Sitting) Episode() *episode.Episode { return s.episode }

// Session returns the session of the play.
func (s *Sitting) Session() *sajou.Session { return s.session }

// suggestion is an episode to play next.
type suggestion struct {
	Episode string `json:"episode"`
	Cause   string `json:"cause"`
}

// position is the progress of a played episode and the input that it waits for.
type position struct {
	state   *director.State
	phase   string
	turn    int
	attempt int
	pending *director.Offer   // it replaces the user's input; nil if none does
	cards   []*director.Offer // legacy choices, beside which the user types
	over    bool              // the turn budget is used up, and nothing is open
}

// look returns the position of the newest durable state.
func (s *Sitting) look(ctx context.Context) (position, error) {
	fold, err := s.session.State(ctx)
	if err != nil {
		return position{}, err
	}
	state := session.DirectorOf(fold)
	s.episode = state.Episode()
	if s.episode == nil {
		return position{}, ErrNoEpisode
	}
	view := viewOf(state)
	at := position{state: state, turn: state.Turn(), pending: state.Pending()}
	at.phase, _ = view["phase"].(string)
	attempt, _ := view["attempt"].(int64)
	at.attempt = int(attempt)
	for _, o := range state.Open() {
		if o.Mode == director.ModeFloating {
			at.cards = append(at.cards, o)
		}
	}
	budget := s.episode.Budget
	at.over = budget > 0 && at.turn >= budget && !s.beyond && at.phase == "evaluated" && at.pending == nil && state.ChoiceLine() == nil
	return at, nil
}

func viewOf(state *director.State) map[string]any {
	view, _ := state.View().(map[string]any)
	return view
}

// free reports whether the user may type instead of choosing, while a choice is pending.
func (s *Sitting) free() bool { return s.episode.Policy.Free }

// advance takes the next step that needs no user, and reports whether there was one. It
// also continues where an earlier sitting ended: at a turn without a response, a response
// without its verdicts, or a choice that has not become input yet.
func (s *Sitting) advance(ctx context.Context) (bool, error) {
	at, err := s.look(ctx)
	if err != nil {
		return false, err
	}
	switch answer := at.state.ChoiceLine(); {
	case at.phase == "opened":
		return true, s.respond(ctx, at)
	case at.phase == "responded":
		text, ok := s.response(at.turn)
		if !ok {
			return false, nil // its text is unknown: the next turn gives it up
		}
		return true, s.record(ctx, director.Response{Turn: at.turn, Attempt: at.attempt, Text: text, Before: s.before(at.turn)})
	case answer != nil:
		_, err := s.director.Guide(ctx, director.TurnInput{Turn: at.turn + 1, Text: answer.Content})
		return true, err
	}
	return false, nil
}

// respond records the character's response to the open turn.
func (s *Sitting) respond(ctx context.Context, at position) error {
	guidance, err := s.director.Guide(ctx, director.TurnInput{Turn: at.turn})
	if err != nil {
		return err
	}
	flags, _ := viewOf(at.state)["flags"].(map[string]any)
	text, err := s.actor.Say(ctx, ActorTurn{
		Episode: s.episode, Guidance: guidance, Chosen: s.chosen, Messages: s.messages,
		Said: func(words string) bool { return s.said[episode.DigestOf(words)] },
		Flag: func(name string) bool { return flags[name] != nil },
	})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &ActorError{err}
	}
	return s.record(ctx, director.Response{Turn: at.turn, Text: text, Before: s.before(at.turn)})
}

// record records a response and has it judged.
func (s *Sitting) record(ctx context.Context, r director.Response) error {
	d := s.director
	if s.judge != nil {
		d = d.With(s.judge(r.Text))
	}
	_, err := d.Respond(ctx, r)
	return err
}

// response returns the response of the character in a turn.
func (s *Sitting) response(turn int) (string, bool) {
	for _, m := range slices.Backward(s.messages) {
		if m.Turn == turn && m.Role == "character" {
			return m.Text, true
		}
	}
	return "", false
}

// before returns the messages before the response of a turn.
func (s *Sitting) before(turn int) (list []director.TranscriptLine) {
	for _, m := range s.messages {
		if m.Turn != turn || m.Role == "user" {
			list = append(list, director.TranscriptLine{Role: m.Role, Text: m.Text})
		}
	}
	return list
}

// reply is the effect of a line of the user that is not recorded.
type reply struct {
	remark     string // why the line was not taken, or the help that it asked for
	directions bool   // directions are to be shown, or hidden again
	left       bool   // the user leaves
}

// take handles a line of the user: an answer to a choice, a command after a slash, or
// speech. A line that is none of these changes nothing, and the reply holds the reason.
func (s *Sitting) take(ctx context.Context, line string) (reply, error) {
	at, err := s.look(ctx)
	if err != nil {
		return reply{}, err
	}
	line = strings.TrimSpace(strings.ToValidUTF8(line, "\uFFFD"))
	if word, ok := strings.CutPrefix(line, "/"); ok {
		return s.command(ctx, at, strings.TrimSpace(word))
	}
	if p := at.pending; p != nil {
		if o := optionOf(p.Options, line); o >= 0 {
			_, err := s.director.Choose(ctx, p.ID, p.Options[o].ID)
			return reply{}, err
		}
		if _, number := strconv.Atoi(line); line == "" || number == nil || !s.free() {
			return reply{remark: s.howToChoose(p)}, nil
		}
	}
	if line == "" {
		return reply{remark: "say something; /help tells what else can be done"}, nil
	}
	_, err = s.director.Guide(ctx, director.TurnInput{Turn: at.turn + 1, Text: line})
	if errors.Is(err, director.ErrChoicePending) {
		// Guide gave up the verdicts of the turn before, and a choice was offered.
		return reply{remark: "a choice has come up first"}, nil
	}
	return reply{}, err
}

// howToChoose describes the lines that answer a choice.
func (s *Sitting) howToChoose(p *director.Offer) string {
	numbers := "1"
	if n := len(p.Options); n > 1 {
		numbers = fmt.Sprintf("a number from 1 to %d", n)
	}
	if s.free() {
		return "choose by " + numbers + ", or answer in your own words"
	}
	return "choose by " + numbers + " or by its id: nothing else is an answer here"
}

// optionOf returns the index of the option that a line names by number, id or label, -1
// for none.
func optionOf(options []episode.Option, line string) int {
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) {
		return n - 1
	}
	return slices.IndexFunc(options, func(o episode.Option) bool { return line == o.ID || strings.EqualFold(line, o.Label) })
}

const playHelp = `your input is your line; answer a choice by its number or id
/1 /2 …       choose from the cards beside the input
/directions   show or hide the director's guidance
/end          leave, with a summary; the session can be continued
/help         this`

// command executes a command after a slash.
func (s *Sitting) command(ctx context.Context, at position, word string) (reply, error) {
	switch word {
	case "help":
		return reply{remark: playHelp}, nil
	case "directions":
		return reply{directions: true}, nil
	case "end":
		return reply{left: true}, nil
	}
	if n, err := strconv.Atoi(word); err == nil {
		return s.chooseCard(ctx, at.cards, n)
	}
	return reply{remark: "there is no /" + termtext.Clip(word, 40) + "; /help lists what there is"}, nil
}

// chooseCard selects the option of that number; the options of all cards are numbered
// consecutively.
func (s *Sitting) chooseCard(ctx context.Context, cards []*director.Offer, n int) (reply, error) {
	if len(cards) == 0 {
		return reply{remark: "there are no cards to choose from just now"}, nil
	}
	for _, card := range cards {
		if n >= 1 && n <= len(card.Options) {
			_, err := s.director.Choose(ctx, card.ID, card.Options[n-1].ID)
			return reply{}, err
		}
		n -= len(card.Options)
	}
	return reply{remark: "no card has that number"}, nil
}

// maxRecap bounds the notices of earlier turns that are shown again.
const maxRecap = 400

// unread returns the notices of the entries that were not read yet, without those of an
// episode that was played earlier in the same session.
func (s *Sitting) unread(ctx context.Context) ([]notice, error) {
	var list []notice
	for e, err := range s.session.Entries(ctx, s.next) {
		if err != nil {
			return nil, err
		}
		s.next = e.Seq + 1
		if e.Kind != eventlog.KindBeat {
			continue
		}
		r, err := session.BeatOf(&e)
		if err != nil {
			return nil, err
		}
		if r.Word == episode.EpisodeStarted {
			s.messages, s.said, s.chosen, s.suggested, list = nil, map[episode.ContentDigest]bool{}, "", nil, nil
		}
		s.track(r)
		list = append(list, s.notices(e.Seq, r)...)
		if n := len(list) - maxRecap; n > maxRecap {
			list = slices.Clone(list[n:])
		}
	}
	return list, nil
}

// track updates the sitting by an event.
func (s *Sitting) track(r signal.Record) {
	if m, ok := session.UtteranceOf(r); ok {
		m.Role, m.Text = strings.Clone(m.Role), strings.Clone(m.Text) // views of the entry
		if m.Role == "character" {
			s.said[episode.DigestOf(m.Text)] = true
		}
		if s.messages = append(s.messages, m); len(s.messages) > 2*maxMessages {
			s.messages = slices.Clone(s.messages[maxMessages:])
		}
		return
	}
	switch r.Word {
	case episode.TurnOpened:
		s.chosen = ""
		if point := r.Value.TextOf("choice_point"); point != "" {
			s.chosen = point + "/" + r.Value.TextOf("choice")
		}
	case episode.AttemptDropped:
		s.messages = slices.DeleteFunc(s.messages, func(m session.Utterance) bool {
			return m.Role == "character" && m.Turn == int(r.Value.IntOf("turn")) && m.Attempt == int(r.Value.IntOf("attempt"))
		})
	case episode.SuggestionMade:
		s.suggested = append(s.suggested, suggestion{strings.Clone(r.Value.TextOf("episode")), strings.Clone(r.Value.TextOf("cause"))})
	}
}
