// Package agents is the world of many agents: what is the case in it, who sees
// what of it, and what each agent is told when it changes. It is pure: it knows no
// clock, no chance, no goroutine and no log. What happens arrives as numbered
// effects, and equal effects give equal worlds, views and bytes on every machine.
//
// # The nouns
//
// A [World] holds entities (an id and a JSON object), relations between them, and
// where they are. It changes by an [Effect] alone: [World.Check] says beforehand
// whether one can be applied, [World.Apply] does it and returns the [Changes],
// which are all that was written. Kinds of effect that the world does not know
// change nothing but its metadata, unless a [Handler] tells what they mean.
//
// A [Policy] says what one agent may see. A [Lens] is a policy with the form of
// what the agent gets; [CompileLens] reads it from JSON. An [Observer] keeps what
// one agent has been shown: after an effect, [Observer.Update] returns the [Delta]
// that takes the agent from its last view to the new one. An [Audience] says whom an
// effect may concern, so that the others need not be asked.
//
//	changes, err := world.Apply(effect)
//	for _, id := range audience.Follow(world.Reader, effect, changes) {
//		if delta, ok := observers[id].Update(world.Reader, effect, changes); ok {
//			queue(id, delta)
//		}
//	}
//
// # The core
//
// A [Core] is all that agents need of one world: the world itself, who is
// registered with what rights, quotas, cooldowns, and the generations under way.
// What was answered to whom stays in the log, which [Core.Bind] lets it ask. It decides and folds, and knows no disk and no
// waiting. Whoever runs it live holds one lock and goes in this order:
//
//  1. If time alone has cancelled something by now, as [Core.Due] says, append an
//     entry to the log that says nothing but the time, and [Core.Advance] to it.
//  2. Decide: [Core.Submit], [Core.Decide], [Core.Broadcast], [Core.Issue], … Append
//     the records to the log at that time, all or none. If that fails, the core is
//     as it was, as long as nothing was applied.
//  3. [Core.Apply] each record, before the next decision.
//  4. When they are durable, hand out what Apply and Advance returned: each
//     [Delivery] into its agent's [Queue], for its time; cancellations at once.
//  5. Come back at [Core.Next], for step 1 and for [Core.Expire].
//
// An agent that is new, or was too slow for its queue, gets [Core.Whole] and
// passes over deliveries up to its number. A replay does nothing but go to the
// times of the log's entries and apply the records. Between them time passes for
// nobody: news that arrives meanwhile is looked up by whoever asks.
//
// # Invariants
//
//   - Apply of what Check accepts does not fail; what Check refuses changes nothing.
//   - A delta is a valid JSON Patch against the view that the delta before it led
//     to. Applied in order, deltas give the very view whose digest they carry.
//   - That view is what the policy says of the world as it is, however it came
//     about. Only what is remembered ([Memory]) depends on the way.
//   - What was said in private is known to its source and its target alone, and
//     what was said to a team to that team, whatever the policies.
//   - view_seq of an agent is the number of the newest effect that it was shown
//     something of; it never passes the world's.
//
// # What it does not protect against
//
// A policy or a handler of the program's own that is no pure function, or that
// claims a smaller [Reach] than it has, breaks the invariants. The document's hash chain
// ([Checksum], [Verify]) shows that an entry was altered; it does not stop someone
// who makes all later checksums anew.
package agents
