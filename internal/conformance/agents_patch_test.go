package conformance

import (
	"fmt"
	"slices"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/signal"
)

func judgeDelta(s *agentScenario) error {
	before, after := s.input.get("old_view", "old").all(), s.input.get("new_view", "new").all()
	limit := s.input.get("max_patch_ops")
	if limit == nil {
		limit = s.input.get("policy", "config").get("max_patch_ops")
	}
	s.input.get("agent_id").all()
	patch := view.Diff(before, after, int(limit.integer()))
	// What the agent gets is JSON, so that is what is applied.
	sent, err := jsondoc.ParsePatch(jsondoc.PatchValue(patch))
	if err != nil {
		return err
	}
	got, err := jsondoc.ApplyPatch(before, sent)
	if err != nil {
		return err
	}
	s.sameTruth("strict_rfc6902", true, s.expected.get("strict_rfc6902"))
	if want := s.expected.get("apply_gives", "result"); want.given() {
		s.compare("/apply_gives", equalValues(got, want.all()), got, want)
	}
	for want := range s.expected.get("required_ops").elements() {
		s.compare("/required_ops", slices.ContainsFunc(patch, operation(want)), jsondoc.PatchValue(patch), want)
	}
	for unwanted := range s.expected.get("forbidden_ops").elements() {
		s.compare("/forbidden_ops", !slices.ContainsFunc(patch, operation(unwanted)), jsondoc.PatchValue(patch), unwanted)
	}
	s.sameTruth("empty_patch", len(patch) == 0, s.expected.get("empty_patch", "patch_empty", "no_ops"))
	if want := s.expected.get("max_ops"); want.given() {
		s.compare("/max_ops", int64(len(patch)) <= want.integer(), len(patch), want)
	}
	s.sameCount("op_count", int64(len(patch)), s.expected.get("op_count", "ops_count", "patch_length"))
	return nil
}

// operation returns what tells an operation that a scenario asks for: the name
// of it alone, or an object of which each member counts.
func operation(want *node) func(jsondoc.Operation) bool {
	if want.kind() == signal.KindString {
		return func(op jsondoc.Operation) bool { return op.Op == want.text() }
	}
	v := want.all()
	return func(op jsondoc.Operation) bool { return includes(op.Object(), v) }
}

func judgePatch(s *agentScenario) error {
	doc := s.input.get("document").all()
	before := canonical(doc)
	var got signal.Value
	patch, err := jsondoc.ParsePatch(s.input.get("patch").all())
	if err == nil {
		got, err = jsondoc.ApplyPatch(doc, patch)
	}
	want := s.expected.get("error")
	result := s.expected.get("result", "document", "apply_gives")
	switch {
	case want.kind() == signal.KindString || want.kind() == signal.KindObject: // its words are the engine's own
		want.all()
		s.compare("/error", err != nil, err, want)
	case want.given():
		s.compare("/error", (err != nil) == want.truth(), err, want)
	case err != nil:
		s.compare("/error", false, err, "none")
	}
	s.sameTruth("document_unchanged", true, s.expected.get("document_unchanged", "unchanged"))
	if after := s.expected.get("document_after"); after.given() {
		s.compare("/document_after", equalValues(doc, after.all()), doc, after)
	}
	if canonical(doc) != before {
		return fmt.Errorf("the document became %v", doc)
	}
	if result == nil {
		return nil
	}
	if err != nil {
		got = doc // the patch was refused, and the document stands
	}
	s.compare("/result", equalValues(got, result.all()), got, result)
	return nil
}
