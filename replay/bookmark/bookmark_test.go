package bookmark_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bookmark"
)

func Example() {
	var book bookmark.Book
	err := book.Put(bookmark.Bookmark{
		Session: "night", Name: "glow", Note: "still gold",
		Anchor: replay.Anchor{Head: eventlog.Head{Seq: 36, Hash: eventlog.Hash{0x1f}}, Offset: 350 * time.Millisecond},
	})
	if err != nil {
		fmt.Println(err)
	}
	if _, err := book.WriteTo(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output: {"session":"night","name":"glow","seq":36,"offset":"350ms","hash":"1f00000000000000000000000000000000000000000000000000000000000000","note":"still gold"}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

func TestRead(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"\n \n", ""},
		{`{"session":"s","name":"b","seq":2,"hash":"` + zeros + `"}`, "s @b 2 "},
		{`{"session":"s","name":"b","seq":2,"hash":"` + zeros + `","status":"gone","note":"n"}`, "s @b 2 n"},
		{`{"session":"s","name":"a","seq":7,"hash":"` + zeros + `"}
{"session":"s","name":"b","seq":2,"offset":"1ms","hash":"` + zeros + `"}
{"session":"s","name":"a","seq":1,"hash":"` + zeros + `"}`, "s @a 1 s @b 2+1ms "},
		{"\n{", "line 2: not a bookmark: unexpected EOF"},
		{`{"session":"s","name":"b","seq":-2,"hash":"` + zeros + `"}`, "cannot unmarshal number -2"},
		{`{"session":"s","name":"b","seq":2,"hash":"00"}`, `the hash "00" does not have 64`},
		{`{"session":"","name":"b","seq":2,"hash":"` + zeros + `"}`, "the session is missing"},
		{`{"session":"s","name":"a b","seq":2,"hash":"` + zeros + `"}`, `the name "a b"`},
		{`{"session":"s","name":"b+1ms","seq":2,"hash":"` + zeros + `"}`, `the name "b+1ms"`},
		{`{"session":"s","name":"-5","seq":2,"hash":"` + zeros + `"}`, `the name "-5"`},
		{`{"session":"s","name":"","seq":2,"hash":"` + zeros + `"}`, `the name ""`},
		{`{"session":"s","name":"b","seq":2,"offset":"-1ms","hash":"` + zeros + `"}`, "the offset -1ms is negative"},
		{`{"session":"s","name":"b","seq":2,"offset":"soon","hash":"` + zeros + `"}`, `the offset "soon"`},
		{`{"session":"s","name":"b","seq":2,"color":1,"hash":"` + zeros + `"}`, `unknown field "color"`},
		{`{"session":"s","name":"b","seq":2,"hash":"` + zeros + `"} 1`, "more after the object"},
		{`{"session":"s","name":"b","seq":2,"hash":"` + zeros + `","note":"` + strings.Repeat("x", 4097) + `"}`, "the note has 4097 bytes"},
		{strings.Repeat("x", 40_000), "line 1: not a bookmark: it has more than 32768 bytes"},
	} {
		book, err := bookmark.Read(strings.NewReader(tt.text))
		if err != nil {
			require.ErrorIs(t, err, bookmark.ErrMalformed)
			assert.Contains(t, err.Error(), tt.want, tt.text)
			continue
		}
		got := ""
		for b := range book.All("") {
			got += fmt.Sprintf("%s @%s %v %s", b.Session, b.Name, b.Moment(), b.Note)
		}
		assert.Equal(t, tt.want, got, tt.text)
	}
}

// A book is a map from sessions and names to bookmarks, and is read as it was written.
func TestBook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var book bookmark.Book
		model := map[string]bookmark.Bookmark{}
		word := rapid.SampledFrom([]string{"a", "b", "c", "ä_-9"})
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			b := bookmark.Bookmark{Session: word.Draw(t, "session"), Name: word.Draw(t, "name"), Note: rapid.String().Draw(t, "note")}
			b.Head.Seq = eventlog.Seq(rapid.Uint64Range(0, 5).Draw(t, "seq"))
			b.Offset = time.Duration(rapid.Int64Range(0, 3).Draw(t, "offset"))
			key := b.Session + " " + b.Name
			if rapid.Bool().Draw(t, "remove") {
				_, has := model[key]
				require.Equal(t, has, book.Remove(b.Session, b.Name))
				delete(model, key)
				continue
			}
			require.NoError(t, book.Put(b))
			model[key] = b
		}
		var text bytes.Buffer
		_, err := book.WriteTo(&text)
		require.NoError(t, err)
		again, err := bookmark.Read(bytes.NewReader(text.Bytes()))
		require.NoError(t, err)
		require.Equal(t, len(model), again.Len())
		var last *bookmark.Bookmark
		for b := range again.All("") {
			require.Equal(t, model[b.Session+" "+b.Name], b)
			found, ok := book.Find(b.Session, b.Name)
			require.True(t, ok)
			require.Equal(t, b, found)
			if last != nil && last.Session == b.Session {
				require.LessOrEqual(t, last.Moment().Compare(b.Moment()), 0)
			}
			last = &b
		}
		var second bytes.Buffer
		_, err = again.WriteTo(&second)
		require.NoError(t, err)
		require.Equal(t, text.String(), second.String())
	})
}

// Whatever is read without an error is written so that it is read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"session":"s","name":"b","seq":2,"offset":"1ms","hash":"` + zeros + `","note":"n"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		book, err := bookmark.Read(bytes.NewReader(data))
		if err != nil {
			require.ErrorIs(t, err, bookmark.ErrMalformed)
			return
		}
		var text bytes.Buffer
		_, err = book.WriteTo(&text)
		require.NoError(t, err)
		again, err := bookmark.Read(&text)
		require.NoError(t, err)
		require.Equal(t, book, again)
	})
}
