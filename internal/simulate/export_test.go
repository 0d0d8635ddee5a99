package simulate

import (
	"context"

	"github.com/sajou-dev/sajou-go"
)

// Began is the What of an attempt to generate.
const Began = whatBegan

// PlayIn plays a simulation in a session of the test.
func PlayIn(ctx context.Context, s *Simulation, ses *sajou.Session, tell func(*Event) error) error {
	return s.playIn(ctx, ses, tell, new(Recording))
}

// Hurry bounds a scenario so that any play of it is short.
func Hurry(s *Simulation) {
	s.limits.steps = min(s.limits.steps, 500)
	s.limits.effects = min(s.limits.effects, 100)
}

// Codes are those that an expectation may name in a suggestion.
func Codes() []string { return codes }

// PolicyNames are the names that an error may suggest for a policy.
func PolicyNames() []string { return policyNames }

// ConfigNames are the members of a configuration.
func ConfigNames() []string { return configNames }
