// Package flow limits and delays what passes between agents and their generators:
// a [Breaker] keeps calls from a service that fails, a [Queue] releases items at
// their time and applies [Backpressure] when it is full, and [Latency] models how
// long a delivery takes.
//
// Nothing here reads a clock or a source of chance: times are arguments, and the
// spread of a latency is derived from a seed. No type has a lock; the caller
// serializes its calls.
package flow
