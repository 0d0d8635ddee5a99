package episode_test

import (
	"testing"

	"github.com/sajou-dev/sajou-go/director/episode"
)

// FuzzKeyword checks that each keyword is found in a response that is its text, in both
// modes.
func FuzzKeyword(f *testing.F) {
	f.Add("Straße", "I CAN’T")
	f.Fuzz(func(t *testing.T, keyword, response string) {
		episode.Occurs(keyword, response, false)
		episode.Occurs(keyword, response, true)
		if episode.Folded(keyword) != "" && !episode.Occurs(keyword, keyword, false) {
			t.Errorf("%q is not in itself", keyword)
		}
	})
}
