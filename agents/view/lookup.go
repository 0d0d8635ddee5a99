package view

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// ParseViewPath parses a JSON pointer into a view. A text that does not begin with
// a slash is the id of an entity.
func ParseViewPath(s string) (jsondoc.Pointer, error) {
	if s == "" || s[0] == '/' {
		return jsondoc.ParsePointer(s)
	}
	if len(s) > world.MaxID {
		return nil, fmt.Errorf("agents: %w: an id has at most %d bytes", jsondoc.ErrPointer, world.MaxID)
	}
	return EntityPath(s), nil
}

// EntityPath returns the pointer to an entity in a view.
func EntityPath(id string) jsondoc.Pointer { return jsondoc.Pointer{PathEntities[1:], id} }

// Lookup returns the value at p in the observer's view. It renders no more of the
// view than it needs.
func (o *Observer) Lookup(p jsondoc.Pointer) (signal.Value, bool) {
	if len(p) >= 2 {
		switch p[0] {
		case PathEntities[1:]:
			return p[2:].In(o.ShownEntity(p[1]))
		case PathRelations[1:]:
			return p[2:].In(o.ShownRelations(p[1]))
		}
	}
	return p.In(o.View().Value())
}

// ShownEntity returns an entity as the view has it, nil if the view does not have
// it.
func (o *Observer) ShownEntity(id string) signal.Value {
	if i, ok := o.find(id); ok {
		return o.seen[i].value()
	}
	return nil
}

// ShownRelations returns the relationships of an id as the view has them, nil if it
// has none.
func (o *Observer) ShownRelations(id string) signal.Value {
	for _, t := range o.relations {
		if t.id == id {
			return t.list
		}
	}
	return nil
}
