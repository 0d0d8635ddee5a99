package where

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/projection"
)

var (
	entryType = cel.ObjectType("sajou.Entry")
	stateType = cel.ObjectType("sajou.State")

	jsonObject = cel.MapType(cel.StringType, cel.DynType)
)

// vocabulary is the type provider for the members of entry and state. It delegates
// everything else to the provider of the standard types.
type vocabulary struct {
	types.Provider
	entry, state map[string]*types.FieldType
	closed       map[string][]string // the members of [Closed] projections
}

func newVocabulary(standard types.Provider, set projection.Set) *vocabulary {
	v := &vocabulary{Provider: standard, entry: map[string]*types.FieldType{}, closed: closedMembers(set)}
	for name, m := range entryMembers {
		v.entry[name] = &types.FieldType{Type: m.typ}
	}
	v.state = map[string]*types.FieldType{"seq": {Type: cel.IntType}, "at": {Type: cel.DoubleType}}
	for _, p := range set {
		v.state[p.Name] = &types.FieldType{Type: cel.DynType}
	}
	return v
}

// entryMember is a member of entry: its type, and a function that reads it, which
// returns nil for an entry without it.
type entryMember struct {
	typ *cel.Type
	get func(*entryVars) ref.Val
}

// entryMembers is fixed: see the package comment.
var entryMembers = map[string]entryMember{
	"seq":  {cel.IntType, func(e *entryVars) ref.Val { return types.Int(e.entry.Seq) }},
	"at":   {cel.DoubleType, func(e *entryVars) ref.Val { return types.Double(projection.Millis(e.entry.At)) }},
	"kind": {cel.StringType, func(e *entryVars) ref.Val { return kindNames[e.entry.Kind] }},
	"hash": {cel.StringType, func(e *entryVars) ref.Val { return types.String(e.entry.Hash.String()) }},
	"key":  {cel.StringType, (*entryVars).key},

	"id":            {cel.StringType, (*entryVars).id},
	"type":          {cel.StringType, (*entryVars).typ},
	"timestamp":     {cel.DynType, (*entryVars).timestamp},
	"source":        {cel.StringType, (*entryVars).source},
	"correlationId": {cel.StringType, (*entryVars).correlationID},
	"metadata":      {jsonObject, (*entryVars).metadata},
	"payload":       {jsonObject, (*entryVars).payload},
	"problem":       {cel.StringType, (*entryVars).problem},
	"raw":           {jsonObject, (*entryVars).raw},

	"define":  {jsonObject, (*entryVars).define},
	"effect":  {jsonObject, (*entryVars).effect},
	"beat":    {jsonObject, (*entryVars).beat},
	"session": {jsonObject, (*entryVars).session},
	"data":    {cel.StringType, (*entryVars).data},
}

// entryNames are their names in order.
var entryNames = slices.Sorted(maps.Keys(entryMembers))

func (v *vocabulary) fields(typ string) map[string]*types.FieldType {
	switch typ {
	case entryType.TypeName():
		return v.entry
	case stateType.TypeName():
		return v.state
	}
	return nil
}

// FindStructType implements [types.Provider].
func (v *vocabulary) FindStructType(typ string) (*types.Type, bool) {
	switch typ {
	case entryType.TypeName():
		return types.NewTypeTypeWithParam(entryType), true
	case stateType.TypeName():
		return types.NewTypeTypeWithParam(stateType), true
	}
	return v.Provider.FindStructType(typ)
}

// FindStructFieldNames implements [types.Provider].
func (v *vocabulary) FindStructFieldNames(typ string) ([]string, bool) {
	fields := v.fields(typ)
	return slices.Sorted(maps.Keys(fields)), fields != nil
}

// FindStructFieldType implements [types.Provider].
func (v *vocabulary) FindStructFieldType(typ, name string) (*types.FieldType, bool) {
	f, ok := v.fields(typ)[name]
	return f, ok
}

// NewValue implements [types.Provider]: expressions make no entries and states.
func (v *vocabulary) NewValue(typ string, _ map[string]ref.Val) ref.Val {
	return types.NewErr("a %s cannot be made", typ)
}

// members returns the members that a variable has.
func (v *vocabulary) members(variable string) []string {
	if variable == "entry" {
		return slices.Sorted(maps.Keys(v.entry))
	}
	return slices.Sorted(maps.Keys(v.state))
}

// instead returns the suggestion for an unknown name: a similar name, or else all
// names.
func instead(name string, names []string) string {
	if meant, ok := spelling.Nearest(name, names); ok {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return "; it has " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
}
