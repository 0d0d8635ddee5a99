package simulate

// Hurry bounds a scenario so that any play of it is short.
func Hurry(s *Scenario) {
	s.limits.steps = min(s.limits.steps, 500)
	s.limits.effects = min(s.limits.effects, 100)
}

// Codes are those that an expectation may name in a suggestion.
func Codes() []string { return codes }

// PolicyNames and ConfigNames are what may be meant by others.
func PolicyNames() []string { return policyNames }

// ConfigNames are the members of a configuration.
func ConfigNames() []string { return configNames }
