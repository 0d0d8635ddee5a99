package signal

import (
	"fmt"
	"strings"
)

// ruleSet is the compiled schema.
type ruleSet struct {
	envelope *rule
	types    []string // well-known, in order
	payloads map[string]*rule
}

// compileSchema turns the text of the schema into rules. It knows the part of
// JSON Schema that the protocol uses, and panics on any other keyword, so that no
// constraint is ignored.
func compileSchema(text string) *ruleSet {
	root, err := ParseValue([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("signal: the embedded schema: %v", err))
	}
	c := schemaCompiler{root: root, set: &ruleSet{payloads: map[string]*rule{}}}
	c.set.envelope = c.rule(root, "#")
	c.set.envelope.title = "a signal"
	return c.set
}

type schemaCompiler struct {
	root Value
	set  *ruleSet
}

func (c *schemaCompiler) bug(at, format string, args ...any) {
	panic(fmt.Sprintf("signal: the embedded schema at %s: %s", at, fmt.Sprintf(format, args...)))
}

// rule compiles the schema v, which stands at the pointer at.
func (c *schemaCompiler) rule(v Value, at string) *rule {
	if ref, ok := v.Get("$ref"); ok {
		target, _ := ref.Text()
		return c.rule(c.resolve(target, v, at), target)
	}
	r := &rule{}
	var required []string
	for key, value := range v.Members() {
		switch key {
		case "$schema", "$id", "description", "$defs":
			// These keywords do not constrain values.
		case "title":
			r.title, _ = value.Text()
		case "type":
			r.kind = c.kind(value, at)
		case "enum":
			r.enum = c.texts(value, at)
		case "minimum":
			var ok bool
			if r.minimum, ok = value.Int64(); !ok || r.minimum < -1<<53 || r.minimum > 1<<53 {
				c.bug(at, "the minimum %s is not an integer that a double holds", value)
			}
			r.bounded = true
		case "required":
			required = c.texts(value, at)
		case "properties":
			for name, sub := range value.Members() {
				r.members = append(r.members, member{name: name, rule: c.rule(sub, at+"/properties/"+name)})
			}
		case "additionalProperties":
			if truth, ok := value.Bool(); !ok || truth {
				c.bug(at, "additionalProperties is not false")
			}
			r.closed = true
		case "allOf":
			for branch := range value.Elements() {
				c.branch(branch, at)
			}
		default:
			c.bug(at, "the keyword %q is not understood", key)
		}
	}
	c.consistent(r, len(required), at)
	for _, name := range required {
		i := r.find(name)
		if i < 0 {
			c.bug(at, "%q is required but not a property", name)
		}
		r.members[i].required = true
	}
	return r
}

// consistent panics if check would ignore a constraint of r.
func (c *schemaCompiler) consistent(r *rule, required int, at string) {
	number := r.kind == FieldInteger || r.kind == FieldNumber
	switch {
	case r.kind == 0:
		c.bug(at, "no type")
	case r.enum != nil && r.kind != FieldString, r.bounded && !number:
		c.bug(at, "enum or minimum on a %s", r.kind)
	case !r.closed && (len(r.members) > 0 || required > 0), r.closed && r.kind != FieldObject:
		c.bug(at, "properties of an object that is not closed")
	case len(r.members) > 64:
		c.bug(at, "more than 64 properties")
	}
}

// branch compiles one "if the type is this, then the payload is that".
func (c *schemaCompiler) branch(v Value, at string) {
	name, _ := v.Lookup("if.properties.type.const")
	payload, _ := v.Lookup("then.properties.payload")
	typ, ok := name.Text()
	// Any other keyword in the branch would make its text longer.
	want := fmt.Sprintf(`{"if":{"properties":{"type":{"const":%s}}},"then":{"properties":{"payload":%s}}}`, name, payload)
	if !ok || at != "#" || v.String() != want || c.set.payloads[typ] != nil {
		c.bug(at, "allOf has a branch that is not understood, or twice: %s", v)
	}
	r := c.rule(payload, at+"/allOf/"+typ)
	if r.kind != FieldObject || r.title != typ {
		c.bug(at, "the payload of %s is not an object, or has another title", typ)
	}
	c.set.types = append(c.set.types, typ)
	c.set.payloads[typ] = r
}

// resolve returns the schema that a reference means.
func (c *schemaCompiler) resolve(target string, v Value, at string) Value {
	name, ok := strings.CutPrefix(target, "#/$defs/")
	if !ok || v.Len() != 1 {
		c.bug(at, "the reference %q is not understood", target)
	}
	defs, _ := c.root.Get("$defs")
	def, ok := defs.Get(name)
	if !ok {
		c.bug(at, "the reference %q leads nowhere", target)
	}
	return def
}

func (c *schemaCompiler) kind(v Value, at string) FieldKind {
	text, _ := v.Text()
	for k := FieldString; k <= FieldObject; k++ {
		if k.String() == text {
			return k
		}
	}
	c.bug(at, "the type %s is not understood", v)
	return 0
}

func (c *schemaCompiler) texts(v Value, at string) []string {
	list := []string{}
	for e := range v.Elements() {
		text, ok := e.Text()
		if !ok {
			c.bug(at, "%s is not a list of strings", v)
		}
		list = append(list, text)
	}
	return list
}
