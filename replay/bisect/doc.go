// Package bisect searches a recorded session with a test that is expensive to run: a
// program, a picture, a person.
//
// The moments of a range at which the input of the test is the same form a [Stretch].
// The stretches are the candidates of a [Search], which says what to judge next, takes
// one judgment after the other and tells at any time what is known: a [Conclusion].
// Stretches with equal inputs share one judgment.
//
// # What an answer means
//
// With the goal [Any] a search halves the range. It finds a transition: a good stretch
// with a bad one after it. There may be others. It then judges some stretches more, the
// probes, which lie evenly over the rest. A probe that is bad on the good side, or good
// on the bad side, proves that the session turns more than once: an island. Without an
// island the answer still assumes one transition, unless every stretch was judged.
//
// With the goals [First], [Last] and [AllPhases] a search judges every distinct input. Its
// answer assumes nothing, except at stretches that the test skipped.
//
// A test that is good and bad for equal inputs is not a function of its input. The
// conclusion then has a [Conflict], and no answer is to be trusted. [Repeat] takes the
// majority of several runs of such a test.
//
// docs/glossary.md has the nouns of all packages.
package bisect
