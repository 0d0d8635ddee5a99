package wording_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

func TestWords(t *testing.T) {
	if got := wording.Quoted("a\"b\n"); got != `"a\"b\n"` {
		t.Errorf("quoted %s", got)
	}
	if got := wording.Quoted(strings.Repeat("ü", 100)); !utf8.ValidString(got) || len(got) > 70 || !strings.HasSuffix(got, `…"`) {
		t.Errorf("shortened %s", got)
	}
	for kind, want := range map[signal.ValueKind]string{
		signal.KindArray: "an array", signal.KindString: "a string", signal.KindNull: "null", signal.KindAbsent: "nothing",
	} {
		if got := wording.Article(kind); got != want {
			t.Errorf("%v is %q, want %q", kind, got, want)
		}
	}
}
