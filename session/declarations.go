package session

import (
	"fmt"
	"iter"
	"slices"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// DeclarationOf returns the declaration that a define entry brought into force.
func DeclarationOf(e *eventlog.Entry) (language.Declaration, error) {
	word, v, err := WordOf(e)
	if err != nil {
		return nil, err
	}
	d, err := CompileDeclaration(word, v)
	if err != nil {
		return nil, fmt.Errorf("sajou: entry %d: %w", e.Seq, err)
	}
	return d, nil
}

// CompileDeclaration compiles the word and the value of a define entry, which the
// declaration keeps.
func CompileDeclaration(word string, v signal.Value) (language.Declaration, error) {
	switch word {
	case WordScene:
		s, err := scene.Compile(v)
		if err != nil {
			return nil, err // never a typed nil
		}
		return s, nil
	case episode.Word:
		e, err := episode.Compile(v)
		if err != nil {
			return nil, err
		}
		return e, nil
	default:
		return language.CompileDeclaration(word, v)
	}
}

// DeclarationsOf yields the declarations that an entry brings into force: that of a
// define entry, and those that the first entry of a variant adds; see
// [WithDeclarations]. After an error, which wraps [eventlog.ErrCorrupt] or
// [definition.ErrInvalid], it goes on with the next one.
func DeclarationsOf(e *eventlog.Entry) iter.Seq2[language.Declaration, error] {
	return func(yield func(language.Declaration, error) bool) {
		switch {
		case e.Kind == eventlog.KindDefine:
			yield(DeclarationOf(e))
		case e.Kind == eventlog.KindSession && e.Seq == 1:
			for word, v := range addedTo(e) {
				if d, err := CompileDeclaration(word, v); !yield(d, err) {
					return
				}
			}
		}
	}
}

// WithDeclarations returns the data of a session's first entry, which is first, with
// declarations that come into force with it, in order. The member "define" of its value
// has the word and the value of each. A session of a log declares in entries of their
// own; a variant of a recorded session, whose entries keep their numbers, has no place
// for further ones. An episode cannot be added so. The error wraps [eventlog.ErrCorrupt]
// if the entry does not open a session, and [eventlog.ErrInvalid] for an episode.
func WithDeclarations(first *eventlog.Entry, declarations []language.Declaration) ([]byte, error) {
	if _, err := openedOf(first); err != nil {
		return nil, fmt.Errorf("%w: %w", eventlog.ErrCorrupt, err)
	}
	_, v, err := WordOf(first)
	if err != nil {
		return nil, err
	}
	var list []signal.Value
	for word, v := range addedTo(first) {
		list = append(list, signal.Array(signal.Text(word), v))
	}
	for _, d := range declarations {
		if d.Word() == episode.Word {
			return nil, fmt.Errorf("%w: the session has no episode %q, and one cannot begin with the first entry", eventlog.ErrInvalid, d.Name())
		}
		list = append(list, signal.Array(signal.Text(d.Word()), d.Value()))
	}
	object := signal.ObjectOf(v)
	if len(list) > 0 {
		object.Set(memberDefine, signal.Array(list...))
	}
	data := AppendWord(nil, wordOpened, object.Value())
	if _, _, err := SplitWord(data); err != nil { // such as a declaration as deep as a value can be
		return nil, fmt.Errorf("%w: the declarations do not fit into the first entry: %w", eventlog.ErrInvalid, err)
	}
	return data, nil
}

// memberDefine is the member of a session's first entry with the declarations that
// come into force with it.
const memberDefine = "define"

// addedTo yields the words and values of the declarations of a session's first entry.
func addedTo(first *eventlog.Entry) iter.Seq2[string, signal.Value] {
	return func(yield func(string, signal.Value) bool) {
		if _, err := openedOf(first); err != nil {
			return
		}
		_, v, _ := WordOf(first)
		list, _ := v.Get(memberDefine)
		for one := range list.Elements() {
			pair := slices.Collect(one.Elements())
			if len(pair) != 2 {
				continue
			}
			if word, ok := pair[0].Text(); ok && !yield(word, pair[1]) {
				return
			}
		}
	}
}
