package stage

// Matches is how a rule's pattern is compared with an agent.
var Matches = matches
