package director

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Errors of decisions. When one is returned nothing is recorded.
var (
	// ErrTurn says that a call does not fit the state of the current turn.
	ErrTurn = errors.New("director: not the turn for it")
	// ErrAwaiting says that verdicts are awaited. The caller waits for them, or
	// gives them up with [State.Expire].
	ErrAwaiting = errors.New("director: verdicts are awaited")
	// ErrChoicePending says that the user must choose first.
	ErrChoicePending = errors.New("director: a choice is pending")
	// ErrNotFound says that the episode has no choice, beat or objective of that id.
	ErrNotFound = errors.New("director: not found")
	// ErrNotOpen says that the choice was not offered yet, or is over.
	ErrNotOpen = errors.New("director: the choice is not open")
	// ErrConflict says that another option of the choice was selected before.
	ErrConflict = errors.New("director: another option was chosen")
)

// decision applies each event that it decides to a copy of the state at once, so
// that the next event is decided on the state that this one led to.
type decision struct {
	s       State
	records []signal.Record
	out     ResponseResult
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

// Opening holds the conditions under which an episode begins.
type Opening struct {
	// Flags were set by earlier episodes. The flags of an episode that was played
	// earlier in the same session are carried over in any case.
	Flags []string
	// Energy is one of [episode.Energies], by the character's boundaries. Any other
	// text selects that of the episode.
	Energy string
}

// Start begins an episode. An episode that was not declared yet is declared first:
// the first record is then the declaration, and both belong into one batch.
func (s *State) Start(e *episode.Episode, o Opening) ([]signal.Record, error) {
	if s.episode != nil && s.core.phase == phaseResponded {
		return nil, ErrAwaiting
	}
	d, err := s.opening(e, o)
	return d.records, err
}

// Begun reports whether [State.Start] with these arguments would lead to the state that
// there is: the episode has begun so, and nothing has happened in it.
func (s *State) Begun(e *episode.Episode, o Opening) (bool, error) {
	if s.episode == nil || s.core.turn > 0 || s.episode.Digest() != e.Digest() {
		return false, nil
	}
	d, err := s.opening(e, o)
	return err == nil && bytes.Equal(d.s.AppendState(nil), s.AppendState(nil)), err
}

// opening decides the beginning of an episode.
func (s *State) opening(e *episode.Episode, o Opening) (decision, error) {
	flags := slices.Compact(slices.Sorted(slices.Values(o.Flags)))
	if flags == nil {
		flags = []string{}
	}
	if episode.EnergyLevel(o.Energy) < 0 {
		o.Energy = e.Energy
	}
	d := decision{s: *s}
	d.declare(e)
	err := d.emit(episode.EpisodeStarted, episodeStarted{e.ID, e.Digest().String(), e.Doctrine.Digest().String(), o.Energy, flags})
	return d, err
}

// TurnInput is the user's contribution to a turn.
type TurnInput struct {
	Turn int
	// Text is the text that the user typed. It is empty or the option's label if a choice
	// is the input, and empty if there is none. The director records only its digest.
	Text string
}

// Guidance returns the guidance of turn n, as of the present state. It records
// nothing.
func (s *State) Guidance(n int) (Guidance, error) {
	if s.episode == nil || n < 1 || n < s.core.turn {
		return Guidance{}, ErrTurn
	}
	if n == s.core.turn && s.core.phase > phaseOpened {
		if s.rollback == nil {
			return Guidance{}, ErrTurn
		}
		return s.guidance(s.rollback, n), nil
	}
	return s.guidance(&s.core, n), nil
}

// Guide opens a turn and returns the guidance for the character. Turn numbers begin
// at 1 and never decrease; numbers may be left out, if a turn was lost.
//
// Guiding a turn again, before its response or before another attempt of it,
// returns the same guidance and records nothing. Only another text of the user, or
// a flag that changed the due beat, is recorded as a second opening.
//
// While verdicts are awaited the error is [ErrAwaiting]. While a choice is pending it
// is [ErrChoicePending], unless the policy of the episode lets the user type instead:
// a text then declines the choice.
func (s *State) Guide(in TurnInput) (Guidance, []signal.Record, error) {
	if s.episode == nil || in.Turn < 1 || in.Turn < s.core.turn || in.Turn > episode.MaxTurn {
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
		if err := d.emit(episode.ChoiceDeclined, choiceMade{Turn: s.core.turn, Choice: point.ID, Beat: s.episode.Beats[b].ID}); err != nil {
			return Guidance{}, nil, err
		}
	}
	opened := turnOpened{Turn: in.Turn, Input: inputNameNone}
	switch answer := s.core.answer; {
	case answer.ChoicePoint != "" && in.Text != "" && in.Text != answer.Content:
		return Guidance{}, nil, fmt.Errorf("%w: the answer to %s is the input of this turn", ErrTurn, answer.ChoicePoint)
	case answer.ChoicePoint != "":
		opened.Input, opened.Choice, opened.Option = inputNameChoice, answer.ChoicePoint, answer.Choice
	case in.Text != "":
		opened.Input, opened.Digest = inputNameText, episode.DigestOf(in.Text).String()
	}
	again := in.Turn == s.core.turn
	if again && (in.Text == "" || opened.Digest == s.core.inputDigest || s.core.input == inputChoice) {
		// A flag that was set since then can have changed the due beat.
		if i, _ := s.directed(&s.core, in.Turn); i == s.core.directive {
			return s.guidance(&s.core, in.Turn), nil, nil
		}
	} else if err := d.emit(episode.TurnOpened, opened); err != nil {
		return Guidance{}, nil, err
	}
	g := d.s.guidance(&d.s.core, in.Turn)
	err := d.emit(episode.GuidanceIssued, g.record())
	return g, d.records, err
}

// Response is a response of the character.
type Response struct {
	Turn int
	// Attempt counts the responses generated for the turn, from 1. One more than the
	// latest drops the latest and its effects. 0 means the next attempt, or the
	// latest one if the text is the same: its caller did not see the result.
	Attempt int
	Text    string
	// Before holds the lines before the response, for judges; the last few are used.
	Before []TranscriptLine
}

// ResponseResult is the result of a response, or of a verdict about it.
type ResponseResult struct {
	Turn, Attempt int
	// Questions are to be put to a judge before the next turn.
	Questions []Question
	// Evaluated reports whether no verdict of the turn is missing. The fields below
	// are empty until then.
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
	Heard     int    // the turn whose response accomplished it
}

// Insertion is an authored line that becomes part of the scene: the character says
// it after its response.
type Insertion struct{ Beat, Line string }

// Offer is a choice that is offered to the user.
type Offer struct {
	ID      string
	Prompt  string
	Options []episode.Option
	// Mode is [ModeReplacement] for a choice that becomes the user's next message,
	// [ModeFloating] for a legacy one, beside which the user still types.
	Mode string
	// Said is the end of the character's response, up to 200 code points.
	Said string
	Beat string // "" for a legacy choice
}

func (s *State) offer(i int) *Offer {
	point, at := &s.episode.Choices[i], s.core.choices.at(i)
	o := &Offer{ID: point.ID, Prompt: point.PromptAfter(at.said), Options: point.Options, Mode: ModeFloating, Said: at.said}
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

// Open returns all choices that can be made: the pending one and legacy ones.
func (s *State) Open() []*Offer {
	var open []*Offer
	for i := range s.core.choices.len() {
		if s.core.choices.at(i).status == choiceOpen {
			open = append(open, s.offer(i))
		}
	}
	return open
}

// Respond records a response and searches it for beats, objectives and props. What
// only a model can judge is returned as questions; without a question the turn is
// evaluated at once.
func (s *State) Respond(r Response) (ResponseResult, []signal.Record, error) {
	c := &s.core
	if s.episode == nil || r.Turn != c.turn || c.phase == phaseIdle {
		return ResponseResult{}, nil, ErrTurn
	}
	digest := episode.DigestOf(r.Text)
	switch {
	case r.Attempt == 0 && c.phase >= phaseResponded && digest == c.digest:
		r.Attempt = c.attempt
	case r.Attempt == 0:
		r.Attempt = c.attempt + 1
	}
	if c.phase >= phaseResponded && r.Attempt == c.attempt && digest == c.digest {
		// The call was made before, and its caller did not see the result.
		questions, err := s.Questions(r.Text, r.Before)
		return ResponseResult{Turn: c.turn, Attempt: c.attempt, Questions: questions, Evaluated: c.phase == phaseEvaluated}, nil, err
	}
	if r.Attempt != c.attempt+1 || c.phase >= phaseResponded && s.rollback == nil {
		return ResponseResult{}, nil, fmt.Errorf("%w: turn %d does not expect attempt %d", ErrTurn, r.Turn, r.Attempt)
	}
	d := decision{s: *s, out: ResponseResult{Turn: r.Turn, Attempt: r.Attempt}}
	err := d.respond(r, digest)
	return d.out, d.records, err
}

func (d *decision) respond(r Response, digest episode.ContentDigest) error {
	e := d.s.episode
	if d.s.core.phase >= phaseResponded {
		if err := d.emit(episode.AttemptDropped, attempted{r.Turn, d.s.core.attempt}); err != nil {
			return err
		}
	}
	// The beats that may land are those that are eligible before the response: one
	// that this response makes eligible could not be directed in it (beat contract,
	// "Post-Evaluation Phase").
	before := d.s.core
	err := d.emit(episode.ResponseRecorded, responseRecorded{r.Turn, r.Attempt, digest.String(), tailOf(r.Text), utf8.RuneCountInString(r.Text)})
	if err != nil {
		return err
	}
	text := e.Search(r.Text)
	if before.pendingChoice() < 0 && !before.failed {
		for i := range e.Beats {
			directed := i == before.directive
			if !directed && !e.Policy.Spontaneous || before.heldAt(i) >= 0 || !d.s.eligible(&before, i) {
				continue
			}
			if err := d.detect(i, directed, text, r); err != nil {
				return err
			}
		}
	}
	for i := range e.Objectives {
		if err := d.detectObjective(i, text, r); err != nil {
			return err
		}
	}
	if err := d.props(text, r.Turn); err != nil {
		return err
	}
	if len(d.s.core.awaiting) > 0 {
		return nil
	}
	return d.evaluate()
}

// detect records the verdict about a beat, or the question about it.
func (d *decision) detect(i int, directed bool, text *episode.SearchText, r Response) error {
	beat := &d.s.episode.Beats[i]
	v := verdictRecorded{Turn: r.Turn, Attempt: r.Attempt, about: about{Beat: beat.ID}, Method: beat.Detection.String(), Verdict: No.String()}
	switch beat.Detection {
	case episode.Undetected:
		return nil
	case episode.Automatic:
		if !directed {
			return nil
		}
		v.Verdict = Yes.String()
	case episode.Keyword:
		word, found := beat.FoundIn(text)
		if !found && !directed {
			return nil // the beat was not directed, so its absence is not a finding
		}
		if found {
			v.Verdict, v.Matched = Yes.String(), word
		}
	default:
		return d.ask(episode.Subject{Kind: episode.AboutBeat, ID: beat.ID}, r)
	}
	return d.emit(episode.VerdictRecorded, v)
}

func (d *decision) detectObjective(i int, text *episode.SearchText, r Response) error {
	o := &d.s.episode.Objectives[i]
	if d.s.core.objectives[i].status >= objectiveCompleted {
		return nil
	}
	switch o.Success.Kind {
	case episode.ByKeyword:
		if word, found := o.FoundIn(text); found {
			return d.emit(episode.VerdictRecorded, verdictRecorded{
				Turn: r.Turn, Attempt: r.Attempt, about: about{Objective: o.ID}, Method: episode.Keyword.String(), Verdict: Yes.String(), Matched: word,
			})
		}
		return nil
	case episode.BySemantic:
		return d.ask(episode.Subject{Kind: episode.AboutObjective, ID: o.ID}, r)
	default:
		return nil
	}
}

func aboutOf(s episode.Subject) about {
	if s.Kind == episode.AboutObjective {
		return about{Objective: s.ID}
	}
	return about{Beat: s.ID}
}

func (d *decision) ask(s episode.Subject, r Response) error {
	q := question(d.s.episode, r.Turn, r.Attempt, 1, s, r.Text, r.Before)
	d.out.Questions = append(d.out.Questions, q)
	return d.emit(episode.JudgementAsked, judgementAsked{r.Turn, r.Attempt, aboutOf(s), q.Digest.String()})
}

// Questions returns the questions that are still open, for a caller that lost them
// in a crash. The text must be the response that was recorded.
func (s *State) Questions(response string, before []TranscriptLine) ([]Question, error) {
	if s.episode == nil || len(s.core.awaiting) > 0 && episode.DigestOf(response) != s.core.digest {
		return nil, fmt.Errorf("%w: the text is not the response that was recorded", ErrTurn)
	}
	var questions []Question
	for _, w := range s.core.awaiting {
		questions = append(questions, question(s.episode, s.core.turn, s.core.attempt, w.tries+1, s.subject(w), response, before))
	}
	return questions, nil
}

// Awaiting returns the subjects of the verdicts that are awaited.
func (s *State) Awaiting() []episode.Subject {
	var subjects []episode.Subject
	for _, w := range s.core.awaiting {
		subjects = append(subjects, s.subject(w))
	}
	return subjects
}

func (s *State) subject(w awaited) episode.Subject {
	if w.kind == episode.AboutObjective {
		return episode.Subject{Kind: w.kind, ID: s.episode.Objectives[w.index].ID}
	}
	return episode.Subject{Kind: w.kind, ID: s.episode.Beats[w.index].ID}
}

// Judge records a verdict. The last verdict that was awaited evaluates the turn. A
// verdict about a response that was dropped, about a question that was given up, or
// about a try that was answered, is recorded and changes nothing. After an unclear
// verdict that the episode's policy has asked again, [State.Awaiting] is as before.
func (s *State) Judge(v Verdict) (ResponseResult, []signal.Record, error) {
	if s.episode == nil || v.Turn < 1 || v.Turn > s.core.turn || v.Attempt < 0 || v.Attempt > episode.MaxTurn {
		return ResponseResult{}, nil, ErrTurn
	}
	if !s.episode.Has(v.Subject) {
		return ResponseResult{}, nil, fmt.Errorf("%w: no beat or objective %s to judge", ErrNotFound, wording.Quoted(v.Subject.ID))
	}
	d := decision{s: *s, out: ResponseResult{Turn: s.core.turn, Attempt: s.core.attempt}}
	r := verdictRecorded{
		Turn: v.Turn, Attempt: v.Attempt, about: aboutOf(v.Subject), Method: episode.Semantic.String(),
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
		err := d.emit(episode.VerdictRecorded, r)
		return d.out, d.records, err
	}
	r.Again = finding == Unclear && s.core.awaiting[at].tries < s.episode.Policy.JudgeRetries
	err := d.emit(episode.VerdictRecorded, r)
	if err == nil && len(d.s.core.awaiting) == 0 {
		err = d.evaluate()
	}
	return d.out, d.records, err
}

// maxRaw bounds the recorded part of a model's answer, in bytes. The question asks
// for one word.
const maxRaw = 4096

// clip shortens the text of a model to maxRaw.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxRaw)], "") }

// Expire gives up the verdicts that are awaited: each is recorded as unclear,
// for the reason given, and the turn is evaluated.
func (s *State) Expire(reason string) (ResponseResult, []signal.Record, error) {
	if s.episode == nil || s.core.phase != phaseResponded {
		return ResponseResult{}, nil, ErrTurn
	}
	d := decision{s: *s, out: ResponseResult{Turn: s.core.turn, Attempt: s.core.attempt}}
	for _, subject := range s.Awaiting() {
		err := d.emit(episode.VerdictRecorded, verdictRecorded{
			Turn: s.core.turn, Attempt: s.core.attempt, about: aboutOf(subject), Method: episode.Semantic.String(),
			Verdict: Unclear.String(), Failure: cmp.Or(clip(reason), failureExpired),
		})
		if err != nil {
			return ResponseResult{}, nil, err
		}
	}
	err := d.evaluate()
	return d.out, d.records, err
}

// ChoiceLine returns the line that is the input of the next turn, nil if no choice
// was made.
func (s *State) ChoiceLine() *ChoiceLine {
	if s.core.answer.ChoicePoint == "" {
		return nil
	}
	answer := s.core.answer
	return &answer
}

// ChoiceResult is the result of [State.Choose].
type ChoiceResult struct {
	ChoicePoint, Choice string
	// Flag is the flag that the option sets, "" if none.
	Flag string
	// Message is the user's next line; nil for a legacy choice.
	Message *ChoiceLine
	// Again reports whether the option was selected before; nothing was recorded.
	Again bool
}

// Choose makes a choice. Choosing the same option again returns the first
// result and records nothing; choosing another one is an [ErrConflict]. The error is
// [ErrNotFound] for a choice that the episode does not have, and [ErrNotOpen] for one
// that is not open.
func (s *State) Choose(choicePoint, choice string) (ChoiceResult, []signal.Record, error) {
	if s.episode == nil {
		return ChoiceResult{}, nil, fmt.Errorf("%w: choice point %s: no episode is played; start one first", ErrNotFound, wording.Quoted(choicePoint))
	}
	i, ok := s.episode.ChoiceIndex(choicePoint)
	if !ok {
		return ChoiceResult{}, nil, fmt.Errorf("%w: choice point %s", ErrNotFound, wording.Quoted(choicePoint))
	}
	point := &s.episode.Choices[i]
	o := point.OptionIndex(choice)
	if o < 0 {
		return ChoiceResult{}, nil, fmt.Errorf("%w: choice %s of %s", ErrNotFound, wording.Quoted(choice), point.ID)
	}
	option := &point.Options[o]
	result := ChoiceResult{ChoicePoint: point.ID, Choice: option.ID, Flag: option.SetsFlag}
	if point.Beat >= 0 {
		result.Message = &ChoiceLine{option.Label, point.ID, option.ID}
	}
	switch at := s.core.choices.at(i); {
	case at.status == choiceSelected && at.option == option.ID:
		result.Again = true
		return result, nil, nil
	case at.status == choiceSelected:
		return ChoiceResult{}, nil, fmt.Errorf("%w: %s of %s", ErrConflict, at.option, point.ID)
	case at.status != choiceOpen:
		return ChoiceResult{}, nil, fmt.Errorf("%w: %s is %s", ErrNotOpen, point.ID, choiceStatuses[at.status])
	case s.core.phase == phaseResponded:
		return ChoiceResult{}, nil, ErrAwaiting
	}
	d := decision{s: *s}
	made := choiceMade{Turn: s.core.turn, Choice: point.ID, Option: option.ID, Label: option.Label}
	if point.Beat >= 0 {
		made.Beat = s.episode.Beats[point.Beat].ID
	}
	if err := d.emit(episode.ChoiceSelected, made); err != nil {
		return ChoiceResult{}, nil, err
	}
	cause := causeChoice + point.ID + "/" + option.ID
	err := d.setFlag(option.SetsFlag, cause)
	if err == nil && option.ClearsFlag != "" && d.s.core.hasFlag(option.ClearsFlag) {
		err = d.emit(episode.FlagCleared, flagged{Turn: s.core.turn, Flag: option.ClearsFlag, Cause: cause})
	}
	return result, d.records, err
}

// setFlag sets a flag that is not set yet.
func (d *decision) setFlag(name, cause string) error {
	if name == "" || d.s.core.hasFlag(name) {
		return nil
	}
	return d.emit(episode.FlagSet, flagged{Turn: d.s.core.turn, Flag: name, Cause: cause})
}
