// Package lint finds what choreographies and scenes say and cannot mean: steps
// that nothing ever reaches, conditions that nothing fulfils, guards that shut
// each other out, names that lead nowhere.
//
// # Rules
//
// A [Finding] is made by a [Rule], whose name stays the same. The first two,
// invalid and no-effect, are what [choreography.Parse] and [scene.Parse] say
// about one file. The others look at all files together, as they would be in
// force together: a sequence of one is used by another, a scene says which
// entities there are. They are asked only about files without errors.
//
// An error is sure. What depends on the signals that will come, on the stage,
// or on patterns that would have to be solved, passes. A warning is about what a
// stage would do something with, but hardly what was meant.
//
// docs/lint.md has a bad and a good example for each.
package lint

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/jsonplace"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Rule is one thing that is looked for.
type Rule struct {
	Name     string
	Severity choreography.Severity // what its findings have at worst
	Says     string                // what it finds, in a few words
}

// The rules that the code calls by name.
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
)

var rules = []Rule{
	{ruleInvalid, choreography.Error, "what cannot be meant and would be refused"},
	{ruleNoEffect, choreography.Warning, "what has no effect, or another than it seems to have"},
	{ruleNever, choreography.Error, "a condition that contradicts itself"},
	{rulePayload, choreography.Error, "a condition that no payload of its signal type fulfils"},
	{ruleOuter, choreography.Error, "a condition that contradicts the one around it"},
	{ruleDead, choreography.Error, "steps after one that never ends"},
	{ruleHandler, choreography.Warning, "onInterrupt where nothing interrupts"},
	{ruleDestroyed, choreography.Warning, "a step on an entity that was just destroyed"},
	{ruleStopped, choreography.Error, "a choreography that another stops at the instant it is made"},
	{ruleSkipped, choreography.Error, "a choreography that another always keeps out"},
	{ruleEachOther, choreography.Warning, "two choreographies that preempt one name, and one signal can begin both"},
	{ruleMayStarve, choreography.Warning, "a choreography that another may keep out again and again"},
	{ruleStarved, choreography.Warning, "a choreography that waits for what is never let go"},
	{ruleUnused, choreography.Warning, "a sequence or an easing that nothing uses"},
	{ruleSameID, choreography.Warning, "a declaration that takes another's place"},
	{ruleRepeated, choreography.Warning, "a choreography that is written twice and runs twice"},
	{ruleEntity, choreography.Warning, "an entity that the scene does not have and nothing spawns"},
	{rulePlace, choreography.Warning, "a place or a route that the scene does not have"},
	{ruleProperty, choreography.Warning, "a property that nothing on the stage has"},
}

// Rules returns all rules, in the order of docs/lint.md.
func Rules() []Rule { return slices.Clone(rules) }

// Finding is what a rule says about one place.
type Finding struct {
	choreography.Diagnostic
	Rule string
}

// String returns "file:line:column: severity: rule: message (pointer)".
func (f Finding) String() string {
	at := fmt.Sprintf("%s:%d:%d: %s: %s: %s", f.File, f.Line, f.Column, f.Severity, f.Rule, f.Message)
	if f.Pointer != "" {
		at += " (" + f.Pointer + ")"
	}
	return at
}

// maxFindings bounds what is said about one file.
const maxFindings = 200

// File is a text to be looked at. The name only stands in findings.
type File struct {
	Name string
	Text []byte
}

// Check asks all rules about files that are to be in force together, in the
// order in which they would come into force. The findings are in the order of
// the files, and in each by place.
func Check(files ...File) []Finding {
	l := linter{}
	catalog := new(choreography.Catalog)
	for i := range files {
		src := &source{File: &files[i]}
		l.sources = append(l.sources, src)
		declared, next, diagnostics := Read(catalog, files[i].Name, files[i].Text)
		for _, d := range diagnostics {
			rule := ruleNoEffect
			if d.Severity == choreography.Error {
				rule = ruleInvalid
			}
			src.judge(d.Severity)
			src.findings = append(src.findings, Finding{d, rule})
		}
		catalog = next
		for i := range declared {
			l.add(src, &declared[i], catalog)
		}
	}
	l.check()
	var all []Finding
	for _, src := range l.sources {
		all = append(all, src.finish()...)
	}
	return all
}

// linter holds what is declared in all files.
type linter struct {
	sources     []*source
	definitions []*definition
	scripts     []*script // all lists of steps, those of definitions too
	named       []named   // bindings too
	scenes      []*scene.Scene
}

// source is one file and what was found in it.
type source struct {
	*File
	findings []Finding
	spots    []pending
	worst    choreography.Severity // of all findings, kept or not; 0 for none
	more     bool                  // there were more than are kept
}

// pending is a finding whose line and column are not known yet.
type pending struct {
	rule     string
	severity choreography.Severity
	at       *spot
	message  string
}

// place is where something stands.
type place struct {
	src *source
	at  *spot
}

// named is a declaration that is no choreography.
type named struct {
	place
	word, name string
	value      signal.Value
}

func severityOf(rule string) choreography.Severity {
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

// lighter is report for what does less harm than the rule's findings do at
// worst.
func (p place) lighter(rule, format string, args ...any) {
	p.src.add(pending{rule, choreography.Warning, p.at, fmt.Sprintf(format, args...)})
}

func (s *source) add(f pending) {
	s.judge(f.severity)
	if len(s.spots) == maxFindings {
		s.more = true
		return
	}
	s.spots = append(s.spots, f)
}

func (s *source) judge(severity choreography.Severity) {
	if s.worst == 0 || severity < s.worst {
		s.worst = severity
	}
}

// finish places the findings in the text and orders them.
func (s *source) finish() []Finding {
	marks := make([]*jsonplace.Mark, len(s.spots))
	for i := range s.spots {
		marks[i] = s.spots[i].at.mark()
	}
	if len(marks) > 0 {
		jsonplace.Locate(s.Text, marks)
	}
	for i, f := range s.spots {
		line, column := jsonplace.LineColumn(s.Text, marks[i].Offset)
		s.findings = append(s.findings, Finding{choreography.Diagnostic{
			File: s.Name, Line: line, Column: column, Pointer: f.at.pointer(), Severity: f.severity, Message: f.message,
		}, f.rule})
	}
	order := map[string]int{} // of the files of an archive, as they were read
	for _, f := range s.findings {
		if _, known := order[f.File]; !known {
			order[f.File] = len(order)
		}
	}
	slices.SortStableFunc(s.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if s.more {
		last := s.findings[len(s.findings)-1]
		s.findings = append(s.findings, Finding{choreography.Diagnostic{
			File: s.Name, Line: last.Line, Column: last.Column, Severity: s.worst, Message: "there is more, which is not listed",
		}, last.Rule})
	}
	return s.findings
}

// check asks the rules that look at all files together.
func (l *linter) check() {
	l.handlers()
	l.pairs()
	l.names()
	l.stage()
}
