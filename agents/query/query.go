// Package query answers questions about recorded agents: which view an agent had at
// some time, when it first knew a fact, whether a secret was ever sent to it, why one
// of its requests ended as it did, and what another policy would have shown it.
//
// A watch accompanies an [agents.Core] that folds a log. [Fold] folds one entry and
// returns a [FoldedEntry], and each watch applies every folded entry, in log order:
//
//   - [DeliveredView] holds the view that an agent had received by some time.
//   - [PathWatch] reports when a value of a view changed for an agent.
//   - [LeakWatch] searches all that was sent to an agent.
//   - [RequestWatch] follows one request from its submission to its end.
//   - [PolicyWatch] compares the recorded policy with another one.
//
// The package is pure, and a watch only reads the core. A watch keeps what its question
// needs and no more, so the length of a log does not bound the questions about it.
//
// docs/glossary.md has the nouns of all packages.
package query
