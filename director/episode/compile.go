package episode

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// primary is the id of the objective that the members of the episode itself describe.
const primary = "primary"

// defaultBudget is the number of turns of an episode without turn_budget.
const defaultBudget = 10

// defaultWindow is the number of turns between the target and the deadline of a beat
// without deadline_turn.
const defaultWindow = 2

var (
	episodeMembers = []string{
		"sajou", "version", "id", "title", "situation", "opening_line", "dramatic_question", "scene_objective", "scene_obstacle",
		"scene_tactic", "genre", "doctrine", "energy", "turn_budget", "user_objective", "user_hint", "success_condition",
		"failure_condition", "on_success", "on_failure", "objectives", "choice_points", "flag_context_rules", "beats", "props",
		"flags", "visuals", "next_episode", "policy", "signals", "flag_rules", "note",
	}
	beatMembers = []string{
		"id", "description", "character_instruction", "target_turn", "deadline_turn", "detection_type", "detection_criteria",
		"choice_point", "requires_beat", "requires_flag", "max_overdue_turns", "on_miss", "dependants", "forced_line", "note",
	}
	policyMembers = []string{
		"order", "spontaneous", "max_overdue_turns", "on_miss", "dependants", "pending_choice", "keywords", "judge_retries",
	}
)

// episode returns the episode of a value, nil if there is an error.
func (b *builder) episode(v signal.Value) *Episode {
	n := root(v)
	if v.Kind() != signal.KindObject {
		b.errorf(n, "want an episode, an object, not %s", v.Kind().WithArticle())
		return nil
	}
	// The version is read first: a later version may allow what this one refuses.
	if n.has("version") {
		if i, ok := n.at("version").Value.Int64(); !ok || i != Version {
			b.version = ok && i > Version
			b.errorf(n.at("version"), "this program reads version %d of the format", Version)
			return nil
		}
	}
	b.object(n, "an episode", episodeMembers...)
	if n.has("sajou") && b.text(n, "sajou") != Word {
		b.errorf(n.at("sajou"), "want %q", Word)
	}
	e := &Episode{
		ID: b.text(n, "id"), Title: b.text(n, "title"),
		Situation: b.text(n, "situation"), OpeningLine: b.text(n, "opening_line"), DramaticQuestion: b.text(n, "dramatic_question"),
		Objective: b.text(n, "scene_objective"), Obstacle: b.text(n, "scene_obstacle"), Tactic: b.text(n, "scene_tactic"),
		Budget:   b.turn(n, "turn_budget", 0, defaultBudget),
		UserHint: b.text(n, "user_hint"), NextEpisode: b.text(n, "next_episode"),
		Flags: b.texts(n, "flags"),
		value: v, digest: digestOfValue(v),
		beats: map[string]int{}, choice: map[string]int{},
	}
	b.manner(n, e)
	defaults := b.policy(n.at("policy"), n.has("policy"), e)
	beats := b.list(n, "beats")
	b.beats(beats, e, defaults)
	if !n.at("policy").has("keywords") {
		b.wholeWords(beats, e)
	}
	b.objectives(n, e)
	b.legacy(b.list(n, "choice_points"), e)
	b.props(b.list(n, "props"), e)
	for _, r := range b.list(n, "flag_context_rules").elements {
		if b.object(r, "a rule", "if_flag", "inject") {
			e.Contexts = append(e.Contexts, ContextRule{b.needed(r, "if_flag"), b.needed(r, "inject")})
		}
	}
	b.signals(b.list(n, "signals"), e)
	b.flagRules(b.list(n, "flag_rules"), e)
	if !b.Refused() {
		b.reach(n, e)
	}
	if b.Refused() {
		return nil
	}
	e.prepare()
	return e
}

// manner reads the genre, the energy and the pictures.
func (b *builder) manner(n node, e *Episode) {
	e.Genre = genreKey(b.text(n, "genre"))
	switch {
	case n.has("doctrine"):
		e.Doctrine = b.genre(n.at("doctrine"))
	default:
		e.Doctrine = GenreByName(e.Genre)
		if e.Genre == "" {
			e.Genre = fallbackGenre
		} else if e.Doctrine == nil {
			b.warnf(n.at("genre"), "unknown genre %s; %s is used instead", wording.Quoted(e.Genre), fallbackGenre)
		}
		if e.Doctrine == nil {
			e.Doctrine = GenreByName(fallbackGenre)
		}
	}
	e.Energy = b.text(n, "energy")
	if !slices.Contains(energies, e.Energy) {
		if e.Energy != "" {
			b.warnf(n.at("energy"), "unknown energy %s; playful is used instead", wording.Quoted(e.Energy))
		}
		e.Energy = "playful"
	}
	e.Visuals = Visuals{Mode: "none"}
	if m := n.at("visuals"); n.has("visuals") && b.object(m, "visuals", "mode", "budget") {
		modes := []string{"none", "cinematic", "minimal"}
		e.Visuals = Visuals{modes[b.oneOf(m, "mode", 0, modes...)], b.turn(m, "budget", 1, 3)}
		if e.Visuals.Mode != "none" && e.Budget == 0 {
			b.warnf(m, "an episode without a turn budget triggers no picture in this mode")
		}
	}
}

// missRules are the rules about overdue beats, of an episode or of one beat.
type missRules struct {
	overdue    int
	onMiss     OnMiss
	dependants Dependants
}

func (b *builder) missRules(n node, absent missRules) missRules {
	return missRules{
		overdue:    b.turn(n, "max_overdue_turns", 1, absent.overdue),
		onMiss:     OnMiss(b.oneOf(n, "on_miss", int(absent.onMiss), onMisses...)),
		dependants: Dependants(b.oneOf(n, "dependants", int(absent.dependants), dependants...)),
	}
}

func (b *builder) policy(n node, written bool, e *Episode) missRules {
	if !written || !b.object(n, "a policy", policyMembers...) {
		return missRules{}
	}
	e.Policy = DirectingPolicy{
		Urgent:       b.oneOf(n, "order", 0, "authored", "urgent") == 1,
		Spontaneous:  b.bool(n, "spontaneous"),
		Free:         b.oneOf(n, "pending_choice", 0, "strict", "free") == 1,
		Contains:     b.oneOf(n, "keywords", 0, "word", "contains") == 1,
		JudgeRetries: b.turn(n, "judge_retries", 0, 0),
	}
	if e.Policy.JudgeRetries > 10 {
		b.errorf(n.at("judge_retries"), "more than 10 retries")
	}
	return b.missRules(n, missRules{})
}

func (b *builder) beats(list node, e *Episode, defaults missRules) {
	for i, n := range list.elements {
		// A beat that is refused keeps its index, so that the checks of the others do
		// not depend on it.
		beat := b.beat(n, e, i, defaults)
		if beat.ID != "" {
			if _, twice := e.beats[beat.ID]; twice {
				b.errorf(n.at("id"), "a beat %s exists already", wording.Quoted(beat.ID))
			} else {
				e.beats[beat.ID] = i
			}
		}
		e.Beats = append(e.Beats, beat)
	}
	for i, n := range list.elements {
		beat := &e.Beats[i]
		name, _ := n.at("requires_beat").Value.Text()
		if name == "" {
			continue
		}
		j, ok := e.beats[name]
		if !ok {
			b.errorf(n.at("requires_beat"), "unknown beat %s", wording.Quoted(name))
			continue
		}
		beat.RequiresBeat = j
		if e.Beats[j].Target > beat.Deadline {
			b.warnf(n.at("requires_beat"), "%s is not due before turn %d, after the deadline of this beat", wording.Quoted(name), e.Beats[j].Target)
		}
	}
	b.cycles(list, e)
}

func (b *builder) beat(n node, e *Episode, i int, defaults missRules) Beat {
	beat := Beat{RequiresBeat: -1, Choice: -1}
	if !b.object(n, "a beat", beatMembers...) {
		return beat
	}
	beat.ID = b.id(n)
	beat.Description = b.text(n, "description")
	beat.Instruction = b.needed(n, "character_instruction")
	if !n.has("target_turn") {
		b.errorf(n, "target_turn is missing")
	}
	beat.Target = b.turn(n, "target_turn", 0, 1)
	beat.Deadline = b.turn(n, "deadline_turn", 0, beat.Target+defaultWindow)
	switch {
	case beat.Deadline < beat.Target:
		b.errorf(n.at("deadline_turn"), "the deadline, turn %d, is before the target, turn %d", beat.Deadline, beat.Target)
	case e.Budget > 0 && beat.Target > e.Budget:
		b.warnf(n.at("target_turn"), "the target, turn %d, is beyond the budget of %d turns", beat.Target, e.Budget)
	case e.Budget > 0 && beat.Deadline > e.Budget:
		at := n
		if n.has("deadline_turn") {
			at = n.at("deadline_turn")
		}
		b.warnf(at, "the deadline, turn %d, is beyond the budget of %d turns", beat.Deadline, e.Budget)
	}
	switch kind := b.text(n, "detection_type"); {
	case kind == "":
	case slices.Contains(detections[:Undetected], kind):
		beat.Detection = Detection(slices.Index(detections, kind))
	default:
		beat.Detection = Undetected
		b.warnf(n.at("detection_type"), "%s is not one of %s; the beat never lands", wording.Quoted(kind), strings.Join(detections[:Undetected], ", "))
	}
	beat.Criteria = b.text(n, "detection_criteria")
	switch beat.Detection {
	case Keyword:
		beat.Keywords = splitKeywords(beat.Criteria)
		if len(beat.Keywords) == 0 {
			at := n
			if n.has("detection_criteria") {
				at = n.at("detection_criteria")
			}
			b.errorf(at, "no keyword is left; the beat could never land")
		}
	case Semantic:
		if strings.TrimSpace(beat.Criteria) == "" {
			beat.Criteria = beat.Description
		}
		if strings.TrimSpace(beat.Criteria) == "" {
			b.errorf(n, "a judge needs detection_criteria or a description")
		}
	case Automatic:
		if strings.TrimSpace(beat.Criteria) != "" {
			b.warnf(n.at("detection_criteria"), "detection_criteria has no effect: detection is automatic")
		}
	case Undetected:
	}
	beat.RequiresFlag = b.text(n, "requires_flag")
	b.text(n, "requires_beat")
	rules := b.missRules(n, defaults)
	beat.MaxOverdue, beat.OnMiss, beat.Dependants = rules.overdue, rules.onMiss, rules.dependants
	beat.ForcedLine = b.text(n, "forced_line")
	switch {
	case beat.OnMiss == Force && strings.TrimSpace(beat.ForcedLine) == "":
		b.errorf(n, "on_miss is force, so forced_line is required")
	case beat.OnMiss != Keep && beat.MaxOverdue == 0:
		at := n
		if n.has("on_miss") {
			at = n.at("on_miss")
		}
		b.warnf(at, "on_miss has no effect without max_overdue_turns")
	}
	if n.has("choice_point") {
		beat.Choice = b.choice(n.at("choice_point"), e, i)
	}
	return beat
}

// cycles refuses beats that wait for each other.
func (b *builder) cycles(list node, e *Episode) {
	// Each beat requires at most one other, so one mark for each beat is enough: the
	// number of the walk that visited it.
	seen := make([]int, len(e.Beats))
	for i := range list.elements {
		j := i
		for j >= 0 && seen[j] == 0 {
			seen[j] = i + 1
			j = e.Beats[j].RequiresBeat
		}
		if j < 0 || seen[j] != i+1 {
			continue
		}
		var names []string
		for k := j; ; k = e.Beats[k].RequiresBeat {
			names = append(names, e.Beats[k].ID)
			if len(names) > 1 && k == j || len(names) > 8 {
				break
			}
		}
		at := node{authored.Located{Location: list.Location.Element(j).At("requires_beat")}}
		b.errorf(at, "beats require each other: %s", strings.Join(names, " → "))
	}
}

// choice reads a choice point and returns its index, -1 if it is refused.
func (b *builder) choice(n node, e *Episode, beat int) int {
	members := []string{"id", "prompt", "choices", "note"}
	if beat < 0 {
		members = append(members, "trigger")
	}
	if !b.object(n, "a choice point", members...) {
		return -1
	}
	c := ChoicePoint{ID: b.id(n), Prompt: b.text(n, "prompt"), Beat: beat, Trigger: Trigger{Objective: -1}}
	names := map[string]bool{}
	for _, o := range b.list(n, "choices").elements {
		if !b.object(o, "a choice", "id", "label", "sets_flag", "clears_flag", "note") {
			continue
		}
		option := Option{b.id(o), b.needed(o, "label"), b.text(o, "sets_flag"), b.text(o, "clears_flag")}
		if names[option.ID] {
			b.errorf(o.at("id"), "a choice %s exists already", wording.Quoted(option.ID))
		}
		names[option.ID] = true
		if option.SetsFlag != "" && option.SetsFlag == option.ClearsFlag {
			b.warnf(o.at("clears_flag"), "the same flag is set and cleared; it ends cleared")
		}
		c.Options = append(c.Options, option)
	}
	if len(c.Options) == 0 {
		b.errorf(n, "a choice point without choices")
	}
	if len(c.Options) > 100 {
		b.errorf(n.at("choices"), "more than 100 choices")
	}
	if _, twice := e.choice[c.ID]; twice && c.ID != "" {
		b.errorf(n.at("id"), "a choice point %s exists already", wording.Quoted(c.ID))
		return -1
	}
	e.choice[c.ID] = len(e.Choices)
	e.Choices = append(e.Choices, c)
	return len(e.Choices) - 1
}

// wholeWords warns, once, of a keyword that the default of the policy finds as a whole word
// only: "pay", of the example of the beat contract, is not in "paying".
func (b *builder) wholeWords(list node, e *Episode) {
	for i, n := range list.elements {
		if beat := &e.Beats[i]; beat.Detection == Keyword && len(beat.Keywords) > 0 {
			b.warnf(n.at("detection_criteria"), `%s is found as a whole word, not inside a longer one ("pay" is not in "paying"); write "keywords": "contains" in the policy to find it there, or "word" to keep this`,
				wording.Quoted(beat.Keywords[0]))
			return
		}
	}
}

func (b *builder) legacy(list node, e *Episode) {
	if list.Value.Len() > 0 {
		b.warnf(list, "choice_points of an episode are deprecated (ADR-009, phase 3): make each a beat with a choice_point, as episode migrate does")
	}
	for _, n := range list.elements {
		i := b.choice(n, e, -1)
		trigger := b.needed(n, "trigger")
		if i < 0 || trigger == "" {
			continue
		}
		c := &e.Choices[i]
		if name, ok := strings.CutPrefix(trigger, "after_objective:"); ok {
			c.Trigger.Objective = slices.IndexFunc(e.Objectives, func(o Objective) bool { return o.ID == name })
			if c.Trigger.Objective < 0 {
				b.errorf(n.at("trigger"), "unknown objective %s", wording.Quoted(name))
			}
			continue
		}
		turn, ok := turnOf(trigger)
		switch {
		case !ok:
			b.errorf(n.at("trigger"), "%s is neither turn:N nor after_objective:ID", wording.Quoted(trigger))
		case e.Budget > 0 && turn > e.Budget:
			b.warnf(n.at("trigger"), "turn %d is beyond the budget of %d turns", turn, e.Budget)
		}
		c.Trigger.Turn = turn
	}
}

// turnOf reads "turn:N".
func turnOf(s string) (int, bool) {
	digits, ok := strings.CutPrefix(s, "turn:")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 30)
	return int(n), err == nil && n > 0
}

func (b *builder) objectives(n node, e *Episode) {
	if n.has("user_objective") || n.has("success_condition") {
		e.Objectives = append(e.Objectives, b.objective(n, primary, b.text(n, "user_objective"), e))
	} else {
		for _, name := range []string{"failure_condition", "on_success", "on_failure"} {
			if n.has(name) {
				b.warnf(n.at(name), "it has no effect without user_objective")
			}
		}
	}
	for _, o := range b.list(n, "objectives").elements {
		if !b.object(o, "an objective", "id", "description", "success_condition", "failure_condition", "on_success", "on_failure", "note") {
			continue
		}
		id := b.id(o)
		if slices.ContainsFunc(e.Objectives, func(other Objective) bool { return other.ID == id }) {
			b.errorf(o.at("id"), "an objective %s exists already", wording.Quoted(id))
		}
		e.Objectives = append(e.Objectives, b.objective(o, id, b.text(o, "description"), e))
	}
}

func (b *builder) objective(n node, id, description string, e *Episode) Objective {
	o := Objective{ID: id, Description: description, OnSuccess: b.effect(n, "on_success"), OnFailure: b.effect(n, "on_failure")}
	if n.has("success_condition") {
		o.Success = b.condition(n, "success_condition", false)
	} else {
		b.warnf(n, "objective %s has no success_condition: it is never completed", wording.Quoted(id))
	}
	o.Failure = ObjectiveCondition{Kind: ByBudget}
	if n.has("failure_condition") {
		o.Failure = b.condition(n, "failure_condition", true)
	}
	if o.Success.Kind == ByTurn && e.Budget > 0 && o.Success.Turn > e.Budget {
		b.warnf(n.at("success_condition"), "turn %d is beyond the budget of %d turns", o.Success.Turn, e.Budget)
	}
	return o
}

func (b *builder) effect(n node, name string) ObjectiveEffect {
	if !n.has(name) || !b.object(n.at(name), "an effect", "set_flag", "suggest_episode") {
		return ObjectiveEffect{}
	}
	return ObjectiveEffect{b.text(n.at(name), "set_flag"), b.text(n.at(name), "suggest_episode")}
}

func (b *builder) condition(n node, name string, failure bool) ObjectiveCondition {
	text := b.needed(n, name)
	at := n.at(name)
	kind, rest, _ := strings.Cut(text, ":")
	rest = strings.TrimSpace(rest)
	switch {
	case text == "turn_budget_exceeded" && failure:
		return ObjectiveCondition{Kind: ByBudget}
	case kind == "turn":
		if turn, ok := turnOf(text); ok {
			return ObjectiveCondition{Kind: ByTurn, Turn: turn}
		}
	case kind == "flag" && rest != "":
		return ObjectiveCondition{Kind: ByFlag, Flag: rest}
	case kind == "semantic" && rest != "" && !failure:
		return ObjectiveCondition{Kind: BySemantic, Criteria: rest}
	case kind == "keyword" && !failure:
		keywords := splitKeywords(rest)
		if len(keywords) == 0 {
			b.errorf(at, "no keyword is left; the condition could never hold")
		}
		return ObjectiveCondition{Kind: ByKeyword, Criteria: rest, Keywords: keywords}
	}
	if failure {
		b.errorf(at, "want turn_budget_exceeded, turn:N or flag:NAME, not %s", wording.Quoted(text))
	} else {
		b.errorf(at, "want semantic:CRITERIA, keyword:A,B, turn:N or flag:NAME, not %s", wording.Quoted(text))
	}
	return ObjectiveCondition{}
}

func (b *builder) props(list node, e *Episode) {
	index := map[string]int{}
	for i, n := range list.elements {
		p := Prop{Requires: -1}
		if b.object(n, "a prop", "id", "name", "slug", "content", "reveal", "reveal_turn_hint", "requires_prop", "note") {
			p.ID, p.Name, p.Slug = b.id(n), b.needed(n, "name"), b.text(n, "slug")
			p.Content = b.text(n, "content")
			ways := []string{"character_initiated", "player_requested", "automatic", "gated"}
			way := b.oneOf(n, "reveal", 0, ways...)
			p.Automatic = ways[way] == "automatic"
			if ways[way] == "gated" {
				b.warnf(n.at("reveal"), "gated is deprecated; use requires_prop")
			}
			p.Turn = b.turn(n, "reveal_turn_hint", 0, 0)
			if p.Automatic && !n.has("reveal_turn_hint") {
				b.errorf(n, "a prop that is revealed automatically needs reveal_turn_hint")
			}
			if name := b.text(n, "requires_prop"); name != "" {
				j, ok := index[name]
				if !ok {
					b.errorf(n.at("requires_prop"), "no earlier prop has the id %s", wording.Quoted(name))
				}
				p.Requires = j
			}
		}
		if _, twice := index[p.ID]; twice {
			b.errorf(n.at("id"), "a prop %s exists already", wording.Quoted(p.ID))
		}
		index[p.ID] = i
		e.Props = append(e.Props, p)
	}
}
