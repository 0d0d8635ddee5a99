// Package agents decides about a shared world of agents: it turns intents into
// effects or refusals, and effects into deltas of what each agent sees. It is pure: it
// reads no clock, no source of chance and no log, and starts no goroutine. Equal
// records at equal times give equal worlds, views and bytes on every machine.
//
// The state of the world is in package world, what each agent sees of it in package
// view, JSON patches and the canonical form in package jsondoc, and queues, latencies
// and circuit breakers in package flow. Package query answers questions about a
// recorded log; package live runs a core on a running one.
//
// # The core
//
// A [Core] holds the world, the registered agents with their permissions, quotas and
// cooldowns, and the running generations. Final outcomes stay in the log; the core
// looks them up through [Core.Bind]. A program that runs a core holds one lock and
// repeats these steps:
//
//  1. If time alone has cancelled a generation, as [Core.Due] reports, append an
//     entry that holds only the time, and [Core.Advance] to it.
//  2. Decide: [Core.Submit], [Core.Decide], [Core.Issue], … Append
//     the records to the log at that time, all or none. If that fails, the core is
//     as it was, as long as nothing was applied.
//  3. [Core.Apply] each record, before the next decision.
//  4. When they are durable, hand out what Apply and Advance returned: each
//     [Delivery] into its agent's [flow.Queue], for its time; cancellations at once.
//  5. Come back at [Core.Next], for step 1 and for [Core.Expire].
//
// An agent that is new, or was too slow for its queue, gets [Core.FullView] and
// skips deliveries up to its number. A replay advances to the time of each entry and
// applies its record. The state does not change between entries: a delta that arrives
// meanwhile is found when a call compares its time with the time of the call.
//
// # Invariants
//
//   - A decision changes nothing: only [Core.Apply] and [Core.Advance] write the state.
//   - Cores that fold the same records at the same times have the same state, to the
//     byte, and decide the same from there on.
//   - Records hold whole decisions. A replay calls policies and handlers to compute
//     views and worlds, but never a validator.
//
// Handlers, policies and validators of the program's own must be pure functions, or
// the invariants break.
//
// docs/glossary.md has the nouns of all packages.
package agents
