package language

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// references describes the payload that references lead into.
type references struct {
	on     string
	fields []signal.Field
	known  bool // the type's payload has exactly these fields
}

func referencesOf(on string) references {
	fields, known := signal.PayloadFields(on)
	return references{on, fields, known}
}

// unreachable lists the envelope's fields, which references do not reach.
var unreachable = []string{"id", "source", "timestamp", "correlationId", "metadata"}

// reference judges a string that may be a reference. It returns the field that the
// reference leads to, nil if value is not a reference or the field is not known.
func (v *validator) reference(p *authored.Location, value signal.Value, refs references) *signal.Field {
	way, ok := definition.Reference(value)
	if !ok {
		return nil
	}
	return v.way(p, way, refs)
}

// way judges a path into the payload. A path that the schema does not have gets a warning:
// a lenient recording keeps payloads with other members (docs/adr/0007), and the reference
// resolves there.
func (v *validator) way(p *authored.Location, way string, refs references) *signal.Field {
	switch first, rest, _ := strings.Cut(way, "."); {
	case way == "":
		v.Errorf(p, "the reference names no field")
		return nil
	case way == "type":
		return nil
	case first == "payload" && rest != "" && !refs.known:
		v.Warnf(p, "signal.%s looks for a payload inside the payload; did you mean signal.%s?", way, rest)
		return nil
	case !refs.known:
		return nil
	case first == "payload" && rest != "":
		v.Warnf(p, "a payload of %s has no field payload; did you mean signal.%s?", refs.on, rest)
		return nil
	}
	fields, seen := refs.fields, "signal"
	var found *signal.Field
	for name := range strings.SplitSeq(way, ".") {
		i := slices.IndexFunc(fields, func(f signal.Field) bool { return f.Name == name })
		switch {
		case i >= 0:
		case seen == "signal" && slices.Contains(unreachable, name):
			v.Warnf(p, "signal.%s belongs to the envelope, which references do not reach", name)
			return nil
		case seen == "signal":
			v.Warnf(p, "a payload of %s has no field %s%s", refs.on, wording.Quoted(name), instead(name, fields))
			return nil
		case fields == nil:
			v.Warnf(p, "%s has nothing inside it", seen)
			return nil
		default:
			v.Warnf(p, "%s has no field %s%s", seen, wording.Quoted(name), instead(name, fields))
			return nil
		}
		found, seen = &fields[i], seen+"."+name
		if found.Kind == signal.FieldObject && found.Fields == nil {
			return nil // an object with any fields
		}
		fields = found.Fields
	}
	return found
}

// instead returns the field that was probably meant, or else all of them.
func instead(name string, fields []signal.Field) string {
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	if near, ok := spelling.Nearest(name, names); ok {
		return "; did you mean " + wording.Quoted(near) + "?"
	}
	return "; it has " + strings.Join(names, ", ") + ", and others only if it was recorded leniently"
}
