// Package lint finds mistakes in choreographies and scenes: steps that are never
// reached, conditions that no signal fulfils, guards that exclude each other, names
// that refer to nothing.
//
// # Rules
//
// An [Issue] is found by a [RuleInfo], whose name does not change. The first two,
// invalid and no-effect, are the diagnostics of [language.Parse] and [scene.Parse]
// for one file. The others check all files together, as they would be in force
// together: a sequence of one is used by another, a scene declares the entities. They
// apply only to files without errors.
//
// An error is certain. Anything that depends on future signals, on the stage, or on
// patterns that would have to be solved passes. A warning is about something that has
// an effect, but probably not the intended one.
//
// docs/lint.md has a bad and a good example for each.
package lint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// RuleInfo describes a rule.
type RuleInfo struct {
	Name     string
	Severity authored.Severity // the highest severity of its issues
	Says     string            // what it finds
}

// The names of the rules.
const (
	ruleInvalid   = "invalid"
	ruleNoEffect  = "no-effect"
	ruleNever     = "when-never"
	rulePayload   = "when-payload"
	ruleOuter     = "when-outer"
	ruleDead      = "dead-step"
	ruleHandler   = "dead-handler"
	ruleDestroyed = "destroyed"
	ruleStopped   = "stopped-at-once"
	ruleSkipped   = "always-skipped"
	ruleEachOther = "stops-each-other"
	ruleMayStarve = "may-starve"
	ruleStarved   = "starved"
	ruleUnused    = "unused"
	ruleSameID    = "same-id"
	ruleRepeated  = "repeated"
	ruleEntity    = "unknown-entity"
	rulePlace     = "unknown-place"
	ruleProperty  = "unknown-property"
	ruleAction    = "unknown-action"
	ruleMember    = "unknown-member"
)

var rules = []RuleInfo{
	{ruleInvalid, authored.SeverityError, "what cannot be meant and would be refused"},
	{ruleNoEffect, authored.SeverityWarning, "what has no effect, or another than it seems to have"},
	{ruleNever, authored.SeverityError, "a condition that contradicts itself"},
	{rulePayload, authored.SeverityError, "a condition that no payload of its signal type fulfils"},
	{ruleOuter, authored.SeverityError, "a condition that contradicts the one around it"},
	{ruleDead, authored.SeverityError, "steps after one that never ends"},
	{ruleHandler, authored.SeverityWarning, "onInterrupt where nothing interrupts"},
	{ruleDestroyed, authored.SeverityWarning, "a step on an entity that was just destroyed"},
	{ruleStopped, authored.SeverityError, "a choreography that another stops at the instant it is made"},
	{ruleSkipped, authored.SeverityError, "a choreography that another always keeps out"},
	{ruleEachOther, authored.SeverityWarning, "two choreographies that preempt one name, and one signal can begin both"},
	{ruleMayStarve, authored.SeverityWarning, "a choreography that another may keep out again and again"},
	{ruleStarved, authored.SeverityWarning, "a choreography that waits for what is never let go"},
	{ruleUnused, authored.SeverityWarning, "a sequence or an easing that nothing uses"},
	{ruleSameID, authored.SeverityWarning, "a declaration that takes another's place"},
	{ruleRepeated, authored.SeverityWarning, "a choreography that is written twice and runs twice"},
	{ruleEntity, authored.SeverityWarning, "an entity that the scene does not have and nothing spawns"},
	{rulePlace, authored.SeverityWarning, "a place or a route that the scene does not have"},
	{ruleProperty, authored.SeverityWarning, "a property that nothing on the stage has"},
	{ruleAction, authored.SeverityWarning, "an action that the stage does not have and no renderer declares"},
	{ruleMember, authored.SeverityWarning, "a member of a step that its action does not read"},
}

// Rules returns all rules, in the order of docs/lint.md.
func Rules() []RuleInfo { return slices.Clone(rules) }

// Issue is a diagnostic of a rule.
type Issue struct {
	authored.Diagnostic
	Rule string
}

// String returns "file:line:column: severity: rule: message (pointer)".
func (f Issue) String() string {
	at := fmt.Sprintf("%s:%d:%d: %s: %s: %s", f.File, f.Line, f.Column, f.Severity, f.Rule, f.Message)
	if f.Pointer != "" {
		at += " (" + f.Pointer + ")"
	}
	return at
}

// maxIssues bounds the issues of one file.
const maxIssues = 200

// File is a text to check. The name is only used in issues.
type File struct {
	Name string
	Text []byte
}

// Check applies all rules to files that are to be in force together, in the order in
// which they would come into force. The issues are sorted by file, in that order, and
// by place.
func Check(files ...File) []Issue { return CheckWith(nil, files...) }

// CheckWith is [Check] for sessions in which a program or a renderer adds actions to
// those of the stage. Custom has the parameters that each of them reads, by its name;
// nil stands for any parameters.
func CheckWith(custom map[string][]string, files ...File) []Issue {
	l := linter{actions: stage.BuiltInActions()}
	maps.Copy(l.actions, custom)
	catalog := new(language.Catalog)
	for i := range files {
		src := &source{File: &files[i], text: textOf(files[i].Name, files[i].Text)}
		l.sources = append(l.sources, src)
		declared, next, diagnostics := read(catalog, files[i].Text, src.text)
		for _, d := range diagnostics {
			rule := ruleNoEffect
			if d.Severity == authored.SeverityError {
				rule = ruleInvalid
			}
			src.judge(d.Severity)
			src.findings = append(src.findings, Issue{d, rule})
		}
		catalog = next
		for i := range declared {
			l.add(src, &declared[i], catalog)
		}
	}
	l.check()
	var all []Issue
	for _, src := range l.sources {
		all = append(all, src.finish()...)
	}
	return all
}

// linter holds the declarations of all files.
type linter struct {
	actions     map[string][]string // the parameters of each action, nil: any
	sources     []*source
	definitions []*choreographyUse
	scripts     []*script // all lists of steps, those of definitions too
	named       []named   // bindings too
	scenes      []*scene.Scene
}

// source is one file with its issues.
type source struct {
	*File
	text     *authored.Text
	findings []Issue
	spots    []pending
	worst    authored.Severity // of all issues, kept or not; 0 for none
	more     bool              // there were more issues than are kept
}

// pending is an issue whose line and column are not known yet.
type pending struct {
	rule     string
	severity authored.Severity
	at       *authored.Location
	message  string
}

// place is a place in a file.
type place struct {
	src *source
	at  *authored.Location
}

// named is a declaration other than a choreography.
type named struct {
	place
	word, name string
	value      signal.Value
}

func severityOf(rule string) authored.Severity {
	for _, r := range rules {
		if r.Name == rule {
			return r.Severity
		}
	}
	panic("lint: no rule " + rule)
}

func (p place) report(rule, format string, args ...any) {
	p.src.add(pending{rule, severityOf(rule), p.at, fmt.Sprintf(format, args...)})
}

// lighter is report with severity warning, whatever that of the rule is.
func (p place) lighter(rule, format string, args ...any) {
	p.src.add(pending{rule, authored.SeverityWarning, p.at, fmt.Sprintf(format, args...)})
}

func (s *source) add(f pending) {
	s.judge(f.severity)
	if len(s.spots) == maxIssues {
		s.more = true
		return
	}
	s.spots = append(s.spots, f)
}

func (s *source) judge(severity authored.Severity) {
	if s.worst == 0 || severity < s.worst {
		s.worst = severity
	}
}

// finish finds the line and column of each issue and sorts them.
func (s *source) finish() []Issue {
	places := make([]*authored.Location, len(s.spots))
	for i := range s.spots {
		places[i] = s.spots[i].at
	}
	offsets := authored.Locate(s.text.JSON, places)
	for i, f := range s.spots {
		line, column := s.text.Place(offsets[i])
		s.findings = append(s.findings, Issue{authored.Diagnostic{
			File: s.Name, Line: line, Column: column, Pointer: f.at.Pointer(), Severity: f.severity, Message: f.message,
		}, f.rule})
	}
	order := map[string]int{} // of the files of an archive, as they were read
	for _, f := range s.findings {
		if _, known := order[f.File]; !known {
			order[f.File] = len(order)
		}
	}
	slices.SortStableFunc(s.findings, func(a, b Issue) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if s.more {
		last := s.findings[len(s.findings)-1]
		s.findings = append(s.findings, Issue{authored.Diagnostic{
			File: s.Name, Line: last.Line, Column: last.Column, Severity: s.worst, Message: "there is more, which is not listed",
		}, last.Rule})
	}
	return s.findings
}

// check applies the rules that concern all files together.
func (l *linter) check() {
	l.handlers()
	l.pairs()
	l.names()
	l.steps()
	l.stage()
}
