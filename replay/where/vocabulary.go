package where

import (
	"errors"
	"fmt"
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

// vocabulary tells CEL which members entry and state have and how to read
// them. Everything else is left to the provider of the standard types.
type vocabulary struct {
	types.Provider
	entry, state map[string]*types.FieldType
	closed       map[string][]string // the members of projections that can have no others
}

func newVocabulary(standard types.Provider, set projection.Set) *vocabulary {
	v := &vocabulary{Provider: standard, state: map[string]*types.FieldType{}, closed: closedMembers(set)}
	v.entry = entryMembers
	v.state["seq"] = member(cel.IntType, (*stateVars).seq)
	v.state["at"] = member(cel.DoubleType, (*stateVars).at)
	for i, p := range set {
		v.state[p.Name] = member(cel.DynType, func(s *stateVars) ref.Val { return s.projection(i) })
	}
	return v
}

// entryMembers is fixed: see the package comment.
var entryMembers = map[string]*types.FieldType{
	"seq":  member(cel.IntType, func(e *entryVars) ref.Val { return types.Int(e.entry.Seq) }),
	"at":   member(cel.DoubleType, func(e *entryVars) ref.Val { return types.Double(projection.Millis(e.entry.At)) }),
	"kind": member(cel.StringType, func(e *entryVars) ref.Val { return kindNames[e.entry.Kind] }),
	"hash": member(cel.StringType, func(e *entryVars) ref.Val { return types.String(e.entry.Hash.String()) }),
	"key":  member(cel.StringType, (*entryVars).key),

	"id":            member(cel.StringType, (*entryVars).id),
	"type":          member(cel.StringType, (*entryVars).typ),
	"timestamp":     member(cel.DynType, (*entryVars).timestamp),
	"source":        member(cel.StringType, (*entryVars).source),
	"correlationId": member(cel.StringType, (*entryVars).correlationID),
	"metadata":      member(jsonObject, (*entryVars).metadata),
	"payload":       member(jsonObject, (*entryVars).payload),
	"problem":       member(cel.StringType, (*entryVars).problem),
	"raw":           member(jsonObject, (*entryVars).raw),

	"define":  member(jsonObject, (*entryVars).define),
	"effect":  member(jsonObject, (*entryVars).effect),
	"beat":    member(jsonObject, (*entryVars).beat),
	"session": member(jsonObject, (*entryVars).session),
	"data":    member(cel.StringType, (*entryVars).data),
}

// holder is what has members: entryVars or stateVars. It is empty where there
// is no entry or no state.
type holder interface{ empty() bool }

// member makes a member of a function that reads it; nil stands for none.
func member[H holder](typ *cel.Type, get func(H) ref.Val) *types.FieldType {
	read := func(target any) ref.Val {
		h, ok := target.(H)
		if !ok || h.empty() {
			return nil
		}
		return get(h)
	}
	return &types.FieldType{
		Type:  typ,
		IsSet: func(target any) bool { return read(target) != nil },
		GetFrom: func(target any) (any, error) {
			if v := read(target); v != nil {
				return v, nil
			}
			return nil, errNoMember
		},
	}
}

var errNoMember = errors.New("no such key: a member that this entry or state does not have")

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
	return sortedKeys(fields), fields != nil
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
		return sortedKeys(v.entry)
	}
	return sortedKeys(v.state)
}

// instead says what is there in place of a name that is not: what may be meant
// by it, or else all names.
func instead(name string, names []string) string {
	if meant, ok := spelling.Nearest(name, names); ok {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return "; it has " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
