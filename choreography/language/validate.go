package language

import (
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// validator collects remarks about a file. It recurses once for each nesting.
type validator struct {
	authored.Remarks
	catalog *Catalog         // the declarations in force
	items   map[string]*item // of the file, by word and name
	scope   placeholders

	isWritten bool // it judges the expansion of a choreography, not the text of a file
}

// declaration judges one declaration of a file.
func (v *validator) declaration(it *item) {
	p, d := it.p, it.value
	if d.Kind() != signal.KindObject {
		v.Errorf(p, "a definition must be an object, not %s", d.Kind().WithArticle())
		return
	}
	switch it.word {
	case wordSequence:
		v.sequence(p, d)
	case wordEasing:
		v.easingDeclaration(p, d)
	case wordBinding:
		v.binding(p, d)
	default:
		v.definition(p, d)
	}
}

// definition judges one choreography.
func (v *validator) definition(p *authored.Location, d signal.Value) {
	refs := references{}
	extends, derived := d.Get("extends")
	if on, ok := d.Get("on"); ok {
		text, isText := on.Text()
		if !isText {
			v.Errorf(p.At("on"), "on must be a string, the signal type to answer to, not %s", on.Kind().WithArticle())
		}
		refs = referencesOf(text)
	} else if derived {
		refs = referencesOf(v.onOf(firstText(d, "extends")))
	} else {
		v.Errorf(p, `"on" is missing: the signal type to answer to`)
	}
	steps, ok := d.Get("steps")
	if !ok && !derived {
		v.Errorf(p, `"steps" is missing`)
	}
	for name, value := range d.Members() {
		at := p.At(name)
		switch name {
		case "on", "steps":
		case "id":
			v.id(at, value)
		case "extends":
			v.extends(at, extends, d)
		case "before", "after":
			if !derived {
				v.Errorf(at.Key(), "%s is only for a choreography that extends another", name)
			}
			v.steps(at, value, refs, true)
		case "when":
			v.when(at, value, refs)
		case "guard":
			v.guard(at, value, refs)
		case "interrupts":
			if value.Kind() != signal.KindBool {
				v.Errorf(at, "interrupts must be true or false, not %s", value.Kind().WithArticle())
			}
		default:
			if name == "easings" && v.isWritten {
				break
			}
			v.Errorf(at.Key(), "unknown field %s: a choreography has id, on, when, interrupts, guard and steps, or extends, before and after", wording.Quoted(name))
		}
	}
	// A choreography that only interrupts needs no steps.
	if interrupts := d.Member("interrupts"); ok && !(definition.Truthy(interrupts) && isEmptyArray(steps)) {
		v.steps(p.At("steps"), steps, refs, true)
	}
}

// id judges the id of a choreography or a binding.
func (v *validator) id(p *authored.Location, value signal.Value) {
	id, ok := value.Text()
	if !ok {
		v.Errorf(p, "id must be a string, not %s", value.Kind().WithArticle())
		return
	}
	if id == "" {
		v.Warnf(p, "an empty id names nothing")
	} else if err := checkName("the id", id); err != nil {
		v.Errorf(p, "%v", err)
	} else if strings.HasPrefix(id, bindingPrefix) {
		v.Errorf(p, reasonIDPrefix, bindingPrefix)
	}
}

func (v *validator) extends(p *authored.Location, extends, d signal.Value) {
	id, ok := extends.Text()
	switch {
	case !ok:
		v.Errorf(p, reasonExtendsKind, extends.Kind().WithArticle())
	case id == firstText(d, "id"):
		v.Errorf(p, "the choreography extends itself")
	case v.items[key(wordChoreography, id)] == nil && v.catalog.definition(id) == nil:
		v.Errorf(p, "there is no choreography %s", wording.Quoted(id))
	}
}

// onOf returns the signal type of a choreography of the file or in force, "" if it is
// not known.
func (v *validator) onOf(id string) string {
	for range definition.MaxNesting { // extends may form a cycle
		it := v.items[key(wordChoreography, id)]
		if it == nil {
			break
		}
		if on := firstText(it.value, "on"); on != "" {
			return on
		}
		id = firstText(it.value, "extends")
	}
	if d := v.catalog.definition(id); d != nil {
		return d.On()
	}
	return ""
}
