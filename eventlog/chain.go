package eventlog

import "github.com/sajou-dev/sajou-go/eventlog/chain"

// The nouns of the chain, which package chain defines without a store.
type (
	// Seq is the number of an entry in its session.
	Seq = chain.Seq

	// Hash is one link of a session's chain, a SHA-256.
	Hash = chain.Hash

	// Head is a position in a session: a Seq and its entry's Hash.
	Head = chain.Head

	// Kind is the kind of fact that an entry records.
	Kind = chain.Kind

	// Draft is an entry without its place in a log.
	Draft = chain.Draft

	// Entry is one numbered record of a session.
	Entry = chain.Entry

	// EntryError names the entry at which an operation failed.
	EntryError = chain.EntryError
)

// The kinds of entry.
const (
	KindSignal  = chain.KindSignal
	KindEffect  = chain.KindEffect
	KindBeat    = chain.KindBeat
	KindDefine  = chain.KindDefine
	KindSession = chain.KindSession
)

// Bounds that are part of the format.
const (
	HashSize        = chain.HashSize
	MaxName         = chain.MaxName
	MaxKey          = chain.MaxKey
	MaxBatchEntries = chain.MaxBatchEntries
)

// Genesis returns hash(0) of the session of that name.
func Genesis(name string) Hash { return chain.Genesis(name) }

// ParseHead reads the form that [Head.String] writes.
func ParseHead(s string) (Head, error) { return chain.ParseHead(s) }

// ParseKind returns the kind whose name [Kind.String] gives.
func ParseKind(name string) (Kind, error) { return chain.ParseKind(name) }

// CheckName reports whether a session can have that name; see [chain.CheckName].
func CheckName(name string) error { return chain.CheckName(name) }
