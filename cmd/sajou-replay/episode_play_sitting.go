package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// sitting is a user at an episode. It holds nothing that the log does not: what
// is shown is read from there, once it is durable, and a sitting that was left
// at any point is taken up by another one.
//
// Its methods are called one at a time.
type sitting struct {
	session  *sajou.Session
	director *sajou.Director
	actor    actor
	// judge returns who judges a response; it is nil, or returns nil, if nobody
	// does.
	judge  func(response string) sajou.Judge
	beyond bool // a turn budget that is used up ends nothing

	episode   *director.Episode
	next      eventlog.Seq // the first entry that was not read
	messages  []sajou.Said // the last maxMessages, without responses that were dropped
	said      map[director.Digest]bool
	chosen    string // the input of the turn in hand if it was chosen: POINT/OPTION
	suggested []suggestion
}

// suggestion is an episode that could be played next.
type suggestion struct {
	Episode string `json:"episode"`
	Cause   string `json:"cause"`
}

// maxMessages is how many messages a character is reminded of.
const maxMessages = 40

// standing is where a played episode stands.
type standing struct {
	state   *director.State
	phase   string
	turn    int
	attempt int
	pending *director.Offer   // it replaces the user's input; nil if none does
	cards   []*director.Offer // legacy choices, beside which the user types
	over    bool              // the turn budget is used up, and nothing is open
}

// look finds out where the episode stands.
func (s *sitting) look(ctx context.Context) (standing, error) {
	fold, err := s.session.State(ctx)
	if err != nil {
		return standing{}, err
	}
	state := sajou.DirectorOf(fold)
	s.episode = state.Episode()
	if s.episode == nil {
		return standing{}, fail(exitNo, "no episode is played in %q", s.session.Name())
	}
	view := viewOf(state)
	at := standing{state: state, turn: state.Turn(), pending: state.Pending()}
	at.phase, _ = view["phase"].(string)
	attempt, _ := view["attempt"].(int64)
	at.attempt = int(attempt)
	for _, o := range state.Open() {
		if o.Mode == director.ModeFloating {
			at.cards = append(at.cards, o)
		}
	}
	budget := s.episode.Budget
	at.over = budget > 0 && at.turn >= budget && !s.beyond && at.phase == "evaluated" && at.pending == nil && state.Answer() == nil
	return at, nil
}

func viewOf(state *director.State) map[string]any {
	view, _ := state.View().(map[string]any)
	return view
}

// free reports whether the user may type although a choice is pending.
func (s *sitting) free() bool { return s.episode.Policy.Free }

// advance does the next thing that can be done without the user, and reports
// whether there was one. It also takes up what another sitting has left: a turn
// without a response, a response without its verdicts, a choice that is to be
// said.
func (s *sitting) advance(ctx context.Context) (bool, error) {
	at, err := s.look(ctx)
	if err != nil {
		return false, err
	}
	switch answer := at.state.Answer(); {
	case at.phase == "opened":
		return true, s.respond(ctx, at)
	case at.phase == "responded":
		text, ok := s.response(at.turn)
		if !ok {
			return false, nil // nobody knows what to judge: the next turn gives it up
		}
		return true, s.hear(ctx, director.Response{Turn: at.turn, Attempt: at.attempt, Text: text, Before: s.before(at.turn)})
	case answer != nil:
		_, err := s.director.Guide(ctx, director.Input{Turn: at.turn + 1, Text: answer.Content})
		return true, err
	}
	return false, nil
}

// respond lets the character speak.
func (s *sitting) respond(ctx context.Context, at standing) error {
	guidance, err := s.director.Guide(ctx, director.Input{Turn: at.turn})
	if err != nil {
		return err
	}
	flags, _ := viewOf(at.state)["flags"].(map[string]any)
	text, err := s.actor.say(ctx, prompt{
		episode: s.episode, guidance: guidance, chosen: s.chosen, messages: s.messages,
		said: func(words string) bool { return s.said[director.DigestOf(words)] },
		flag: func(name string) bool { return flags[name] != nil },
	})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fail(exitCannotRun, "the character does not answer: %w", err)
	}
	return s.hear(ctx, director.Response{Turn: at.turn, Text: text, Before: s.before(at.turn)})
}

// hear has a response recorded and judged.
func (s *sitting) hear(ctx context.Context, r director.Response) error {
	d := s.director
	if s.judge != nil {
		d = d.With(s.judge(r.Text))
	}
	_, err := d.Respond(ctx, r)
	return err
}

// response returns what the character has said in a turn.
func (s *sitting) response(turn int) (string, bool) {
	for _, m := range slices.Backward(s.messages) {
		if m.Turn == turn && m.Role == "character" {
			return m.Text, true
		}
	}
	return "", false
}

// before returns the messages before the response of a turn.
func (s *sitting) before(turn int) (list []director.Message) {
	for _, m := range s.messages {
		if m.Turn != turn || m.Role == "user" {
			list = append(list, director.Message{Role: m.Role, Text: m.Text})
		}
	}
	return list
}

// reply is what comes of a line of the user's beside what the log tells.
type reply struct {
	remark     string // why nothing was done, or what was asked for
	directions bool   // directions are to be shown, or not any more
	end        bool   // the user has had enough
}

// take takes a line of the user's: an answer to a choice, a word after a slash,
// or what the user says. What cannot be taken changes nothing, and the reply
// says why.
func (s *sitting) take(ctx context.Context, line string) (reply, error) {
	at, err := s.look(ctx)
	if err != nil {
		return reply{}, err
	}
	line = strings.TrimSpace(strings.ToValidUTF8(line, "\uFFFD"))
	if word, ok := strings.CutPrefix(line, "/"); ok {
		return s.obey(ctx, at, strings.TrimSpace(word))
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
	_, err = s.director.Guide(ctx, director.Input{Turn: at.turn + 1, Text: line})
	if errors.Is(err, director.ErrChoicePending) {
		// The verdicts that were given up for it have opened one.
		return reply{remark: "a choice has come up first"}, nil
	}
	return reply{}, err
}

// howToChoose says what answers a choice.
func (s *sitting) howToChoose(p *director.Offer) string {
	numbers := "1"
	if n := len(p.Options); n > 1 {
		numbers = fmt.Sprintf("a number from 1 to %d", n)
	}
	if s.free() {
		return "choose by " + numbers + ", or answer in your own words"
	}
	return "choose by " + numbers + " or by its id: nothing else is an answer here"
}

// optionOf returns the option that a line means, by number, id or label; -1 if
// it means none.
func optionOf(options []director.Option, line string) int {
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) {
		return n - 1
	}
	return slices.IndexFunc(options, func(o director.Option) bool { return line == o.ID || strings.EqualFold(line, o.Label) })
}

const playHelp = `what you type, you say; a choice is answered by its number or id
/1 /2 …       choose from the cards beside the input
/directions   show what the director tells the character, or hide it
/end          leave, with a summary; the session can be continued
/help         this`

// obey does what a word after a slash says.
func (s *sitting) obey(ctx context.Context, at standing, word string) (reply, error) {
	switch word {
	case "help":
		return reply{remark: playHelp}, nil
	case "directions":
		return reply{directions: true}, nil
	case "end":
		return reply{end: true}, nil
	}
	if n, err := strconv.Atoi(word); err == nil {
		return s.draw(ctx, at.cards, n)
	}
	return reply{remark: "there is no /" + clip(word, 40) + "; /help lists what there is"}, nil
}

// draw chooses the option of that number, counted through all cards.
func (s *sitting) draw(ctx context.Context, cards []*director.Offer, n int) (reply, error) {
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

// maxRecap is how many tellings of what was played before are kept.
const maxRecap = 400

// news reads what the log has that was not read yet, and tells it. Of an episode
// that was played before in the same session it tells nothing.
func (s *sitting) news(ctx context.Context) ([]telling, error) {
	var list []telling
	for e, err := range s.session.Entries(ctx, s.next) {
		if err != nil {
			return nil, err
		}
		s.next = e.Seq + 1
		if e.Kind != eventlog.KindBeat {
			continue
		}
		r, err := sajou.BeatOf(&e)
		if err != nil {
			return nil, err
		}
		if r.Word == director.EpisodeStarted {
			s.messages, s.said, s.chosen, s.suggested, list = nil, map[director.Digest]bool{}, "", nil, nil
		}
		s.note(r)
		list = append(list, s.tell(e.Seq, r)...)
		if n := len(list) - maxRecap; n > maxRecap {
			list = slices.Clone(list[n:])
		}
	}
	return list, nil
}

// note keeps what a sitting has to know of an event.
func (s *sitting) note(r director.Record) {
	if m, ok := sajou.SaidBy(r); ok {
		m.Role, m.Text = strings.Clone(m.Role), strings.Clone(m.Text) // they belong to the entry
		if m.Role == "character" {
			s.said[director.DigestOf(m.Text)] = true
		}
		if s.messages = append(s.messages, m); len(s.messages) > 2*maxMessages {
			s.messages = slices.Clone(s.messages[maxMessages:])
		}
		return
	}
	switch r.Word {
	case director.TurnOpened:
		s.chosen = ""
		if point := textIn(r.Value, "choice_point"); point != "" {
			s.chosen = point + "/" + textIn(r.Value, "choice")
		}
	case director.AttemptDropped:
		s.messages = slices.DeleteFunc(s.messages, func(m sajou.Said) bool {
			return m.Role == "character" && m.Turn == numberIn(r.Value, "turn") && m.Attempt == numberIn(r.Value, "attempt")
		})
	case director.SuggestionMade:
		s.suggested = append(s.suggested, suggestion{strings.Clone(textIn(r.Value, "episode")), strings.Clone(textIn(r.Value, "cause"))})
	}
}

func textIn(v signal.Value, name string) string {
	m, _ := v.Get(name)
	s, _ := m.Text()
	return s
}

func numberIn(v signal.Value, name string) int {
	m, _ := v.Get(name)
	i, _ := m.Int64()
	return int(i)
}
