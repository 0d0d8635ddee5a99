package director

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/internal/wording"
)

// Errors of decisions. When one is returned nothing is recorded.
var (
	// ErrTurn says that a call does not fit the turn in hand.
	ErrTurn = errors.New("director: not the turn for it")
	// ErrAwaiting says that verdicts are awaited. The caller waits for them, or
	// gives them up with [State.Expire].
	ErrAwaiting = errors.New("director: verdicts are awaited")
	// ErrChoicePending says that the user must choose before anything else.
	ErrChoicePending = errors.New("director: a choice is pending")
	// ErrNotFound says that nothing has that name.
	ErrNotFound = errors.New("director: not found")
	// ErrNotOpen says that the choice is not open, or not any more.
	ErrNotOpen = errors.New("director: the choice is not open")
	// ErrConflict says that another option was chosen before.
	ErrConflict = errors.New("director: another option was chosen")
)

// The causes of suggestions and objectives that are no condition of an author's.
const causeBudget = "turn_budget"

// decision plays events through on a copy of a state, so that each is decided
// on what came of those before it.
type decision struct {
	s       State
	records []Record
	out     Outcome
}

func (d *decision) emit(word string, event any) error {
	r, err := recordOf(word, event)
	if err != nil {
		return err
	}
	if err := d.s.Apply(word, r.Value); err != nil {
		return err
	}
	d.records = append(d.records, r)
	return nil
}

// Opening is what an episode begins with beside itself.
type Opening struct {
	// Flags were set by episodes before. Those of an episode that was played in
	// the same session are carried over in any case.
	Flags []string
	// Energy is one of Energies, from the character's boundaries. Empty, or none
	// of them, means that of the episode.
	Energy string
}

// Start begins an episode. It is declared first, if it is not yet: the first
// record is then the declaration, and both belong into one batch.
func (s *State) Start(e *Episode, o Opening) ([]Record, error) {
	if s.episode != nil && s.core.phase == phaseResponded {
		return nil, ErrAwaiting
	}
	flags := slices.Compact(slices.Sorted(slices.Values(o.Flags)))
	if flags == nil {
		flags = []string{}
	}
	if !slices.Contains(Energies, o.Energy) {
		o.Energy = e.Energy
	}
	d := decision{s: *s}
	d.declare(e)
	err := d.emit(EpisodeStarted, episodeStarted{e.ID, e.digest.String(), e.Doctrine.digest.String(), o.Energy, flags})
	return d.records, err
}

// Input is what the user contributes to a turn.
type Input struct {
	Turn int
	// Text is what the user typed. It stays empty if the answer to a choice is
	// the input, or nothing is. Only its digest is recorded here.
	Text string
}

// Guidance returns what the director would say before turn n, if nothing more
// happened until then. It records nothing.
func (s *State) Guidance(n int) (Guidance, error) {
	if s.episode == nil || n < 1 || n < s.core.turn {
		return Guidance{}, ErrTurn
	}
	if n == s.core.turn && s.core.phase > phaseOpened {
		if s.kept == nil {
			return Guidance{}, ErrTurn
		}
		return s.guidance(s.kept, n), nil
	}
	return s.guidance(&s.core, n), nil
}

// Guide opens a turn and says what the character is told. Turns are numbered
// from 1 without going back; numbers may be left out, if a turn was lost. A
// turn that had no response yet, or whose response is to be generated anew, is
// guided again with the same guidance, and nothing is recorded unless the user
// said something else, or what is due has changed since.
//
// With verdicts awaited the error is [ErrAwaiting]. With a choice pending it is
// [ErrChoicePending], unless the episode lets the user type instead: a text is
// then the answer, and the choice is declined.
func (s *State) Guide(in Input) (Guidance, []Record, error) {
	if s.episode == nil || in.Turn < 1 || in.Turn < s.core.turn || in.Turn > maxTurn {
		return Guidance{}, nil, ErrTurn
	}
	if in.Turn == s.core.turn && s.core.phase > phaseOpened {
		g, err := s.Guidance(in.Turn)
		return g, nil, err
	}
	if s.core.phase == phaseResponded {
		return Guidance{}, nil, ErrAwaiting
	}
	d := decision{s: *s}
	if b := s.core.pendingChoice(); b >= 0 {
		point := &s.episode.Choices[s.episode.Beats[b].Choice]
		if !s.episode.Policy.Free || strings.TrimSpace(in.Text) == "" {
			return Guidance{}, nil, fmt.Errorf("%w: %s", ErrChoicePending, point.ID)
		}
		if err := d.emit(ChoiceDeclined, choiceMade{Turn: s.core.turn, Choice: point.ID, Beat: s.episode.Beats[b].ID}); err != nil {
			return Guidance{}, nil, err
		}
	}
	opened := turnOpened{Turn: in.Turn, Input: "none"}
	switch answer := s.core.answer; {
	case answer.ChoicePoint != "" && in.Text != "" && in.Text != answer.Content:
		return Guidance{}, nil, fmt.Errorf("%w: the answer to %s is the input of this turn", ErrTurn, answer.ChoicePoint)
	case answer.ChoicePoint != "":
		opened.Input, opened.Choice, opened.Option = "choice", answer.ChoicePoint, answer.Choice
	case in.Text != "":
		opened.Input, opened.Digest = "text", DigestOf(in.Text).String()
	}
	again := in.Turn == s.core.turn
	if again && (in.Text == "" || opened.Digest == s.core.said || s.core.input == inputChoice) {
		// A flag that was set since can have changed what is due.
		if i, _ := s.directed(&s.core, in.Turn); i == s.core.directive {
			return s.guidance(&s.core, in.Turn), nil, nil
		}
	} else if err := d.emit(TurnOpened, opened); err != nil {
		return Guidance{}, nil, err
	}
	g := d.s.guidance(&d.s.core, in.Turn)
	err := d.emit(GuidanceIssued, g.record())
	return g, d.records, err
}

// Response is what the character said.
type Response struct {
	Turn int
	// Attempt counts the responses generated for the turn, from 1. One more than
	// the last drops what came of it. 0 means the next one, or the last one if the
	// text is the same: the caller did not see the answer.
	Attempt int
	Text    string
	// Before are messages before the response, for judges; the last few are used.
	Before []Message
}

// Outcome is what came of a response, or of a verdict about it.
type Outcome struct {
	Turn, Attempt int
	// Questions are for a judge, who is to be asked before the next turn.
	Questions []Question
	// Evaluated reports whether all is known about the turn. What follows is
	// empty before.
	Evaluated  bool
	Landed     []Landing
	Choice     *Offer
	Insertions []Insertion
	Missed     []string // beats that were given up
	Completed  []string // objectives
	Failed     []string // objectives
	Revealed   []string // props
	Visual     bool
	Suggested  []string // episodes
}

// Landing is a beat that has landed.
type Landing struct {
	Beat      string
	Method    string // "semantic", "keyword", "automatic" or "forced"
	Assurance string // "verified", "assumed" or "forced"
	Heard     int    // the turn in whose response it was found
}

// Insertion is an authored line that becomes part of the scene, said by the
// character after its response.
type Insertion struct{ Beat, Line string }

// Offer is a choice that is put before the user.
type Offer struct {
	ID      string
	Prompt  string
	Options []Option
	// Mode is "message_replacement" for a choice that is the user's next
	// message, "floating" for a legacy one, beside which the user still types.
	Mode string
	// Said is the end of what the character said, up to 200 code points.
	Said string
	Beat string // "" for a legacy choice
}

// Modes of an [Offer].
const (
	ModeReplacement = "message_replacement"
	ModeFloating    = "floating"
)

func (s *State) offer(i int) *Offer {
	point, at := &s.episode.Choices[i], s.core.choices.at(i)
	o := &Offer{ID: point.ID, Prompt: point.Prompt, Options: point.Options, Mode: ModeFloating, Said: at.said}
	if point.Beat >= 0 {
		o.Mode, o.Beat = ModeReplacement, s.episode.Beats[point.Beat].ID
	}
	return o
}

// Pending returns the choice that replaces the user's input, nil if none is
// pending.
func (s *State) Pending() *Offer {
	if s.episode == nil {
		return nil
	}
	if b := s.core.pendingChoice(); b >= 0 {
		return s.offer(s.episode.Beats[b].Choice)
	}
	return nil
}

// Open lists all choices that can be made: the pending one and legacy ones.
func (s *State) Open() []*Offer {
	var open []*Offer
	for i := range s.core.choices.len() {
		if s.core.choices.at(i).status == choiceOpen {
			open = append(open, s.offer(i))
		}
	}
	return open
}

// Respond records a response and looks for beats in it. What needs a model is
// returned as questions; without any the turn is evaluated at once.
func (s *State) Respond(r Response) (Outcome, []Record, error) {
	c := &s.core
	if s.episode == nil || r.Turn != c.turn || c.phase == phaseIdle {
		return Outcome{}, nil, ErrTurn
	}
	digest := DigestOf(r.Text)
	switch {
	case r.Attempt == 0 && c.phase >= phaseResponded && digest == c.digest:
		r.Attempt = c.attempt
	case r.Attempt == 0:
		r.Attempt = c.attempt + 1
	}
	if c.phase >= phaseResponded && r.Attempt == c.attempt && digest == c.digest {
		// The caller has asked before and did not see the answer.
		questions, err := s.Questions(r.Text, r.Before)
		return Outcome{Turn: c.turn, Attempt: c.attempt, Questions: questions, Evaluated: c.phase == phaseEvaluated}, nil, err
	}
	if r.Attempt != c.attempt+1 || c.phase >= phaseResponded && s.kept == nil {
		return Outcome{}, nil, fmt.Errorf("%w: turn %d waits for no attempt %d", ErrTurn, r.Turn, r.Attempt)
	}
	d := decision{s: *s, out: Outcome{Turn: r.Turn, Attempt: r.Attempt}}
	err := d.respond(r, digest)
	return d.out, d.records, err
}

func (d *decision) respond(r Response, digest Digest) error {
	e := d.s.episode
	if d.s.core.phase >= phaseResponded {
		if err := d.emit(AttemptDropped, attempted{r.Turn, d.s.core.attempt}); err != nil {
			return err
		}
	}
	before := d.s.core // what was eligible is decided before anything lands
	err := d.emit(ResponseRecorded, responseRecorded{r.Turn, r.Attempt, digest.String(), tailOf(r.Text), utf8.RuneCountInString(r.Text)})
	if err != nil {
		return err
	}
	text := search(r.Text, e.Policy.Contains)
	if before.pendingChoice() < 0 && !before.failed {
		for i := range e.Beats {
			directed := i == before.directive
			if !directed && !e.Policy.Spontaneous || before.heldAt(i) >= 0 || !d.s.eligible(&before, i) {
				continue
			}
			if err := d.look(i, directed, text, r); err != nil {
				return err
			}
		}
	}
	for i := range e.Objectives {
		if err := d.lookForObjective(i, text, r); err != nil {
			return err
		}
	}
	if err := d.props(text, r.Turn); err != nil {
		return err
	}
	if len(d.s.core.awaiting) > 0 {
		return nil
	}
	return d.settle()
}

// look finds out whether a beat landed, or asks.
func (d *decision) look(i int, directed bool, text *searched, r Response) error {
	beat := &d.s.episode.Beats[i]
	v := verdictRecorded{Turn: r.Turn, Attempt: r.Attempt, about: about{Beat: beat.ID}, Method: beat.Detection.String(), Verdict: No.String()}
	switch beat.Detection {
	case Undetected:
		return nil
	case Automatic:
		if !directed {
			return nil
		}
		v.Verdict = Yes.String()
	case Keyword:
		word, found := text.find(beat.keywords)
		if !found && !directed {
			return nil // nobody expected it
		}
		if found {
			v.Verdict, v.Matched = Yes.String(), word
		}
	default:
		return d.ask(Subject{AboutBeat, beat.ID}, r)
	}
	return d.emit(VerdictRecorded, v)
}

func (d *decision) lookForObjective(i int, text *searched, r Response) error {
	o := &d.s.episode.Objectives[i]
	if d.s.core.objectives[i].status >= objectiveCompleted {
		return nil
	}
	switch o.Success.Kind {
	case ByKeyword:
		if word, found := text.find(o.Success.keywords); found {
			return d.emit(VerdictRecorded, verdictRecorded{
				Turn: r.Turn, Attempt: r.Attempt, about: about{Objective: o.ID}, Method: Keyword.String(), Verdict: Yes.String(), Matched: word,
			})
		}
		return nil
	case BySemantic:
		return d.ask(Subject{AboutObjective, o.ID}, r)
	default:
		return nil
	}
}

func aboutOf(s Subject) about {
	if s.Kind == AboutObjective {
		return about{Objective: s.ID}
	}
	return about{Beat: s.ID}
}

func (d *decision) ask(s Subject, r Response) error {
	q := d.s.episode.question(r.Turn, r.Attempt, 1, s, r.Text, r.Before)
	d.out.Questions = append(d.out.Questions, q)
	return d.emit(JudgementAsked, judgementAsked{r.Turn, r.Attempt, aboutOf(s), q.Digest.String()})
}

// Questions makes the questions that are still open anew, after a crash. The
// text must be the response that was recorded.
func (s *State) Questions(response string, before []Message) ([]Question, error) {
	if s.episode == nil || len(s.core.awaiting) > 0 && DigestOf(response) != s.core.digest {
		return nil, fmt.Errorf("%w: it is not the response that was recorded", ErrTurn)
	}
	var questions []Question
	for _, w := range s.core.awaiting {
		questions = append(questions, s.episode.question(s.core.turn, s.core.attempt, w.tries+1, s.subject(w), response, before))
	}
	return questions, nil
}

// Awaiting lists what verdicts are awaited about.
func (s *State) Awaiting() []Subject {
	var subjects []Subject
	for _, w := range s.core.awaiting {
		subjects = append(subjects, s.subject(w))
	}
	return subjects
}

func (s *State) subject(w awaited) Subject {
	if w.kind == AboutObjective {
		return Subject{w.kind, s.episode.Objectives[w.index].ID}
	}
	return Subject{w.kind, s.episode.Beats[w.index].ID}
}

// Judge records a verdict. The last one that was awaited evaluates the turn. A
// verdict that came for a response that was dropped, or after it was given up,
// or for a try that was answered, is recorded and changes nothing. An unclear one that is to be asked for again
// leaves [State.Awaiting] as it was.
func (s *State) Judge(v Verdict) (Outcome, []Record, error) {
	if s.episode == nil || v.Turn < 1 || v.Turn > s.core.turn || v.Attempt < 0 || v.Attempt > maxTurn {
		return Outcome{}, nil, ErrTurn
	}
	if !s.episode.has(v.Subject) {
		return Outcome{}, nil, fmt.Errorf("%w: no beat or objective %s to judge", ErrNotFound, wording.Quoted(v.Subject.ID))
	}
	d := decision{s: *s, out: Outcome{Turn: s.core.turn, Attempt: s.core.attempt}}
	r := verdictRecorded{
		Turn: v.Turn, Attempt: v.Attempt, about: aboutOf(v.Subject), Method: Semantic.String(),
		Model: clip(v.Model), Raw: clip(v.Raw), Failure: clip(v.Failure), Latency: max(v.Latency, 0),
	}
	finding := Unclear
	if v.Failure == "" {
		finding = ParseVerdict(v.Raw)
	}
	r.Verdict = finding.String()
	at := slices.IndexFunc(s.core.awaiting, func(w awaited) bool { return s.subject(w) == v.Subject })
	if at < 0 || v.Turn != s.core.turn || v.Attempt != s.core.attempt || v.Try != 0 && v.Try != s.core.awaiting[at].tries+1 {
		r.Inactive = true
		err := d.emit(VerdictRecorded, r)
		return d.out, d.records, err
	}
	r.Again = finding == Unclear && s.core.awaiting[at].tries < s.episode.Policy.JudgeRetries
	err := d.emit(VerdictRecorded, r)
	if err == nil && len(d.s.core.awaiting) == 0 {
		err = d.settle()
	}
	return d.out, d.records, err
}

// maxRaw is how much of an answer is kept, in bytes. A word was asked for.
const maxRaw = 4096

// clip shortens what a model said.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxRaw)], "") }

// Expire gives up the verdicts that are awaited: each is recorded as unclear,
// for the reason given, and the turn is evaluated.
func (s *State) Expire(reason string) (Outcome, []Record, error) {
	if s.episode == nil || s.core.phase != phaseResponded {
		return Outcome{}, nil, ErrTurn
	}
	d := decision{s: *s, out: Outcome{Turn: s.core.turn, Attempt: s.core.attempt}}
	for _, subject := range s.Awaiting() {
		err := d.emit(VerdictRecorded, verdictRecorded{
			Turn: s.core.turn, Attempt: s.core.attempt, about: aboutOf(subject), Method: Semantic.String(),
			Verdict: Unclear.String(), Failure: cmp.Or(clip(reason), "expired"),
		})
		if err != nil {
			return Outcome{}, nil, err
		}
	}
	err := d.settle()
	return d.out, d.records, err
}

// Answer is the user's next line, made of a choice.
type Answer struct {
	Content     string // the label
	ChoicePoint string
	Choice      string
}

// Answer returns the answer that is the input of the next turn, nil if there is
// none.
func (s *State) Answer() *Answer {
	if s.core.answer.ChoicePoint == "" {
		return nil
	}
	answer := s.core.answer
	return &answer
}

// Choice is the result of [State.Choose].
type Choice struct {
	ChoicePoint, Choice string
	// Flag is the flag that the option sets, "" if none.
	Flag string
	// Message is the user's next line; nil for a legacy choice.
	Message *Answer
	// Again reports whether it was chosen before, and nothing was recorded.
	Again bool
}

// Choose makes a choice. Choosing the same option again returns the first
// result and records nothing; another one is an [ErrConflict]. A choice that
// does not exist is [ErrNotFound], one that is not open [ErrNotOpen].
func (s *State) Choose(choicePoint, choice string) (Choice, []Record, error) {
	if s.episode == nil {
		return Choice{}, nil, ErrNotFound
	}
	i, ok := s.episode.choice[choicePoint]
	if !ok {
		return Choice{}, nil, fmt.Errorf("%w: choice point %s", ErrNotFound, wording.Quoted(choicePoint))
	}
	point := &s.episode.Choices[i]
	o := point.option(choice)
	if o < 0 {
		return Choice{}, nil, fmt.Errorf("%w: choice %s of %s", ErrNotFound, wording.Quoted(choice), point.ID)
	}
	option := &point.Options[o]
	result := Choice{ChoicePoint: point.ID, Choice: option.ID, Flag: option.SetsFlag}
	if point.Beat >= 0 {
		result.Message = &Answer{option.Label, point.ID, option.ID}
	}
	switch at := s.core.choices.at(i); {
	case at.status == choiceSelected && at.option == option.ID:
		result.Again = true
		return result, nil, nil
	case at.status == choiceSelected:
		return Choice{}, nil, fmt.Errorf("%w: %s of %s", ErrConflict, at.option, point.ID)
	case at.status != choiceOpen:
		return Choice{}, nil, fmt.Errorf("%w: %s is %s", ErrNotOpen, point.ID, choiceStatuses[at.status])
	case s.core.phase == phaseResponded:
		return Choice{}, nil, ErrAwaiting
	}
	d := decision{s: *s}
	made := choiceMade{Turn: s.core.turn, Choice: point.ID, Option: option.ID, Label: option.Label}
	if point.Beat >= 0 {
		made.Beat = s.episode.Beats[point.Beat].ID
	}
	if err := d.emit(ChoiceSelected, made); err != nil {
		return Choice{}, nil, err
	}
	cause := "choice:" + point.ID + "/" + option.ID
	err := d.setFlag(option.SetsFlag, cause)
	if err == nil && option.ClearsFlag != "" && d.s.core.hasFlag(option.ClearsFlag) {
		err = d.emit(FlagCleared, flagged{Turn: s.core.turn, Flag: option.ClearsFlag, Cause: cause})
	}
	return result, d.records, err
}

// setFlag sets a flag that is not set yet.
func (d *decision) setFlag(name, cause string) error {
	if name == "" || d.s.core.hasFlag(name) {
		return nil
	}
	return d.emit(FlagSet, flagged{Turn: d.s.core.turn, Flag: name, Cause: cause})
}
