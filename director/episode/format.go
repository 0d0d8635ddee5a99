package episode

import (
	"crypto/sha256"
	_ "embed" // for the schema
	"encoding/hex"
	"errors"

	"github.com/sajou-dev/sajou-go/signal"
)

// Word is the word of an episode's declaration.
const Word = "episode"

// Version is the version of the episode format that this package reads.
const Version = 1

//go:embed episode.schema.json
var schemaText string

// Schema returns the JSON Schema (draft 2020-12) of the shapes of episodes. [Parse]
// checks the rules that a schema cannot express.
func Schema() []byte { return []byte(schemaText) }

// Errors about episodes.
var (
	// ErrEpisode is wrapped by the errors about episodes that are refused.
	ErrEpisode = errors.New("director: not a valid episode")
	// ErrVersion says that an episode was written in a later version of the format.
	ErrVersion = errors.New("director: unknown version of the episode format")
)

// ContentDigest identifies content: the SHA-256 of a text, or of compact JSON.
type ContentDigest [sha256.Size]byte

// String returns the digest in hexadecimal.
func (d ContentDigest) String() string { return hex.EncodeToString(d[:]) }

// DigestOf returns the digest of a text.
func DigestOf(text string) ContentDigest { return sha256.Sum256([]byte(text)) }

// digestOfValue returns the digest of the JSON text of v.
func digestOfValue(v signal.Value) ContentDigest { return sha256.Sum256(v.AppendJSON(nil)) }

// ParseDigest reads the output of [ContentDigest.String], and nothing else.
func ParseDigest(s string) (d ContentDigest, ok bool) {
	if len(s) != 2*len(d) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(s))
	return d, err == nil && d.String() == s
}
