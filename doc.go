// Package sajou is an event-sourced engine for AI-agent sessions that are shown
// as animated scenes. It is the door to the packages that do the work.
//
// Everything that happens in a session is an entry of one hash-chained log
// ([eventlog]). Everything else is a fold over that log and can be thrown away
// ([projection]). An [Engine] is one store in one directory; a [Session] records
// signals, attaches sinks, and hands out the live side of its agents and its director.
//
//	eng, err := sajou.Open(dir, sajou.Config{})
//	ses, err := eng.Session(ctx, "release-42")
//	_, err = ses.Define(ctx, definitions...)
//	head, err := ses.Signal(ctx, sig)                        // durable when it returns
//	shown := ses.Attach(ctx, sink, 60)                       // a choreography.CommandSink, 60 frames a second
//	scout, err := ses.Agents().Register(ctx, "scout", policy)
//	outcome, err := scout.Submit(ctx, intent)                // durable, or a typed rejection
//	seen, err := scout.NextObservation(ctx)
//	said, err := generate.Run(ctx, scout, model, request)    // a language model answers for the agent
//	past, err := eng.Replay("release-42")
//	state, err := past.At(ctx, replay.Moment{Seq: 812})
//
// # The rooms
//
// A package X is pure, X/live is X on a running log, X/history is X on a recorded one.
//
//	choreography, stage   performances, and what a viewer sees; stage/live attaches sinks
//	agents                the world that agents share; agents/live submits, observes and
//	                      interrupts, agents/generate drives a language model, and
//	                      agents/history answers what an agent knew
//	director              episodes and turns; director/live keeps a session on the script
//	eventlog, projection, snapshot, replay
//	                      the log, its folds, their images, travel in time
//	session               what a log means: words, codecs, the standard projections
//	internal/writer       the one way to decide and append
//
// Imports point down: pure packages, then eventlog, projection, snapshot, replay,
// session, internal/writer, the live packages, and this one.
//
// # What a session records
//
// An entry has one of five kinds. Package session lists their words and encodings.
//
//   - session: the first entry, which says where session time comes from
//     ([session.TimeAuthority]) and by which rules the log is folded
//     ([session.Rules]); clock, where no signal has told when session time began; and
//     tick, where time alone has changed something.
//   - define: a declaration that comes into force, as it was written: a choreography,
//     sequence, easing, binding or scene, or, with the word episode, an episode of the
//     director. A log so replays without any file beside it.
//   - signal: a signal, in the encoding of package signal. Where an episode says so,
//     the director's events become signals too, the cue signals: their source is
//     "director", and their id is cue- and the number of their entry.
//   - effect: one record of the agents' world, with the words of package agents: an
//     effect, a refusal, a registration, a token, an attempt of a generator.
//   - beat: one event of the director, with the words of package director; or, with
//     the word message, what the user or the character said. Events hold only the digest
//     of what was said, so that [Config.OmitText] can leave messages out.
//
// Nothing in a log depends on the clock, the machine or chance, except through the
// recorded values: the same records at the same times under the same session name give
// the same head hash in every store.
//
// # Live and replay
//
// Both go through one fold. An entry is applied by letting session time run up
// to and including its own, and then letting it happen; so the commands of a
// session, updates apart, do not depend on how often a viewer looked. Frames
// are drawn from copies of the state and never reach it.
//
// # Guarantees
//
//   - A record is durable when the call returns, and all of it or none.
//   - Decisions see the newest state; sinks, subscribers and [Session.State] see
//     an entry only once it is durable.
//   - Only the engine appends to a session that it has open, and only [Engine.Close]
//     closes the store: [Engine.Log] and [Engine.Snapshots] return readers, and
//     [Engine.Restore] is refused with [eventlog.ErrClaimed].
//   - A slow or blocked sink or subscriber never delays a writer and loses
//     nothing but frames: each reads the log at its own pace, and holds no
//     queue. A sink that panics is detached, and a sink that never returns is given
//     up when it is closed.
//   - Opening after a crash continues from the newest good snapshot and the
//     entries behind it.
//
// docs/embedding.md is a whole service, from Open to a graceful stop, and
// docs/compatibility.md tells what later versions keep. docs/glossary.md has the nouns of
// all packages.
package sajou
