// Package choreography runs authored sequences of visual actions. It is a
// pure, exact state machine: signals and instants of session time go in,
// commands to a renderer come out.
//
// # Nouns
//
// A [definition.Definition] says which signal type it answers to, under which
// condition, and which steps follow. A [Scheduler] keeps the definitions in force
// in the order in which they came into force. It makes one performance of each
// definition that a signal matches and moves all performances through time. A
// [definition.Resolver] turns the "signal.x" references of a step into values of the
// signal's payload. The scheduler sends commands to a [CommandSink], and the same
// events to an [ActObserver], for which nothing is resolved unless it asks. A
// [definition.StageView] answers the conditions on the stage.
//
// # Time
//
// Time is session time, a [time.Duration] since the session began. Milliseconds
// of a definition are converted once, rounded to the nearest nanosecond; a value
// that does not fit becomes the farthest instant. The package has no clock: the
// caller says how far to go with [Scheduler.Advance].
//
// Boundaries are exact. A step begins at the instant at which the step before it
// ends, whatever frames are drawn. Any way of cutting a span of time into advances
// therefore gives the same state bytes and the same commands except updates: each
// advance ends with one update for each running animation.
//
// # Order
//
// Commands come in time order. At one instant the performances act in the order in
// which they were made, each one completely: depth first, the children of a parallel
// group in the order in which they are written. A performance that its guard lets
// begin at that instant begins after all of these; if that frees others, they follow
// in the next round.
//
// # Steps
//
//   - An action without "duration", and spawn, destroy, playSound and
//     setAnimation always, is instant: one execute.
//   - Any other action is animated: start, updates while its progress is below
//     one, complete. With a duration of zero or less there is no update.
//   - "delay" holds an action back, measured from the instant of its turn.
//   - wait passes time; parallel runs its steps side by side and ends with the
//     last; onArrive is replaced by its steps, and directly inside parallel it is a
//     sequence beside its siblings.
//   - onInterrupt at the top is not performed in its place: when the performance is
//     interrupted, its steps run as a performance of their own.
//   - Each of them may have a "when". It is judged at the instant at which the step
//     is reached, before its delay; if it does not hold, the step is skipped with
//     everything inside it. A "when" that is not a condition, such as a string, is
//     a parameter like others.
//
// # Conditions
//
// A condition tests the signal, "signal.x", or the stage as it is at that instant,
// "stage:ENTITY.PROPERTY": the property stands after the last dot, and an entity that
// begins with "signal." is a reference. The condition of a definition is judged when
// the signal arrives.
//
// # Guards
//
// A definition with a "guard" names entities that only one of its performances may
// use at a time: {"guard": {"entity": NAME or [NAME…], "policy": …}}. Names may be
// references; they are resolved when the signal arrives. A name that does not resolve
// to a string is dropped, and a guard without names has no effect. A performance holds
// all of its names from its beginning to its end, and no two performances hold one
// name. If a name is taken,
//
//   - "queue", the default, makes the performance wait. It begins when all of its
//     names are free and no earlier performance waits for any of them, at the
//     instant at which the last of these ends. It holds nothing while it waits, so
//     waiting performances cannot deadlock, and only preemption overtakes;
//   - "skip" makes no performance, even if other performances only wait for a name;
//   - "preempt" interrupts the performances that hold one of the names and begins at
//     once. Waiting performances go on waiting.
//
// At most [definition.MaxWaiting] performances wait for one name; a further one is
// skipped. Handlers run without a guard.
//
// # Replacement
//
// A definition with an "id" replaces the one in force with that id. Performances that
// run or wait continue with the definition they began with.
//
// # Interruption
//
// A definition with "interrupts" ends every performance that carries the
// correlation id of its signal, at once and without a complete. Handlers resolve
// references against the signal of the interrupted performance. They carry no
// correlation id and therefore cannot be interrupted themselves. A performance that
// waits for its guard can be interrupted too, and its handler runs.
//
// # Limits
//
// Without a guard two performances may animate one entity: both streams are
// sent and the renderer decides. A guard compares names as they are written or
// resolved; it does not look at the entities that the steps use.
//
// docs/glossary.md has the nouns of all packages.
package choreography
