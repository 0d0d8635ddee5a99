package where

import (
	"context"
	"errors"
	"math"
	"testing"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/signal"
)

// counted is a context that counts how often it is asked.
type counted struct {
	context.Context
	asked int
}

func (c *counted) Err() error {
	c.asked++
	return nil
}

// A meter grants what reaches a limit and refuses what exceeds it by one. After a refusal it
// grants nothing, and keeps the reason.
func TestMeter(t *testing.T) {
	steps, bytes := &BudgetError{Limit: StepLimit, Unit: "steps"}, &BudgetError{Limit: MemoryLimit, Unit: "bytes"}
	for name, tt := range map[string]struct {
		grants []func(m *meter) bool // the last one is refused
		err    error
	}{
		"steps one by one":     {[]func(m *meter) bool{func(m *meter) bool { return m.step(StepLimit - 1) }, func(m *meter) bool { return m.step(1) }, func(m *meter) bool { return m.step(1) }}, steps},
		"all steps":            {[]func(m *meter) bool{func(m *meter) bool { return m.step(StepLimit) }, func(m *meter) bool { return m.step(0) }, func(m *meter) bool { return m.step(1) }}, steps},
		"a step too many":      {[]func(m *meter) bool{func(m *meter) bool { return m.step(StepLimit + 1) }}, steps},
		"text":                 {[]func(m *meter) bool{func(m *meter) bool { return m.text(64*(StepLimit-1) + 63) }, func(m *meter) bool { return m.text(0) }}, steps},
		"a long text":          {[]func(m *meter) bool{func(m *meter) bool { return m.text(64 * StepLimit) }}, steps},
		"bytes":                {[]func(m *meter) bool{func(m *meter) bool { return m.build(MemoryLimit) }, func(m *meter) bool { return m.build(0) }, func(m *meter) bool { return m.build(1) }}, bytes},
		"a byte too many":      {[]func(m *meter) bool{func(m *meter) bool { return m.build(MemoryLimit + 1) }}, bytes},
		"bytes beyond numbers": {[]func(m *meter) bool{func(m *meter) bool { return m.build(1) }, func(m *meter) bool { return m.build(math.MaxInt64) }}, bytes},
		"a copy":               {[]func(m *meter) bool{func(m *meter) bool { return m.copied(MemoryLimit - sizeText) }, func(m *meter) bool { return m.copied(0) }}, bytes},
		"a copy of a long one": {[]func(m *meter) bool{func(m *meter) bool { return m.step(StepLimit) }, func(m *meter) bool { return m.copied(1) }}, steps},
	} {
		var m meter
		m.reset(t.Context())
		for i, grant := range tt.grants {
			require.Equal(t, i < len(tt.grants)-1, grant(&m), "%s: request %d", name, i)
		}
		require.Equal(t, tt.err, m.err, name)
		before := [2]int64{m.steps, m.bytes}
		require.False(t, m.step(0) || m.text(0) || m.build(0) || m.copied(0), name)
		require.Equal(t, before, [2]int64{m.steps, m.bytes}, name)
		require.Equal(t, tt.err, m.err, name)
		m.reset(t.Context())
		require.Equal(t, meter{ctx: t.Context()}, m, name)
	}
	require.EqualError(t, steps, "the expression costs too much: one evaluation takes more than 5000000 steps; ask for less, or loop over a shorter list")
	require.EqualError(t, bytes, "the expression costs too much: one evaluation builds more than 67108864 bytes; ask for less, or loop over a shorter list")
	require.ErrorIs(t, steps, ErrBudget)

	// The context is asked at the first step, and then each time that contextEvery steps
	// have been taken since.
	ctx := &counted{Context: t.Context()}
	m := meter{ctx: ctx}
	for i := range 3*contextEvery + 1 {
		require.True(t, m.step(1))
		require.Equal(t, 1+i/contextEvery, ctx.asked, "after %d steps", i+1)
	}
	ended, end := context.WithCancelCause(t.Context())
	cause := errors.New("why it ended")
	end(cause)
	m = meter{ctx: ended}
	require.False(t, m.step(1))
	require.Equal(t, cause, m.err)
}

// values returns a list in each of its forms, an object in each of its forms, and a map, all of
// them equal in their kind.
func values(t *testing.T, m *meter) (lists []*list, maps []ref.Val) {
	t.Helper()
	exact := func(text string) signal.Value {
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err)
		return v
	}
	lists = []*list{
		{m: m, exact: exact(`[1, "two", null]`)},
		{m: m, view: []any{int64(1), "two", nil}},
		{m: m, made: []ref.Val{types.Int(1), types.String("two"), types.NullValue}},
	}
	maps = []ref.Val{
		m.object(&exactMembers{m: m, value: exact(`{"a": 1, "b": "two"}`)}),
		m.object(viewMembers{"a": int64(1), "b": "two"}),
		&dict{m: m, order: []ref.Val{types.String("a"), types.String("b")}, values: map[ref.Val]ref.Val{types.String("a"): types.Int(1), types.String("b"): types.String("two")}},
	}
	return lists, maps
}

// Lists and maps answer as cel-go wants of values, whatever form they have.
func TestValuesForCEL(t *testing.T) {
	m := &meter{ctx: t.Context()}
	lists, maps := values(t, m)
	for i, l := range lists {
		require.Equal(t, types.Int(3), l.Size())
		require.False(t, l.IsZeroValue())
		require.Equal(t, types.String("two"), l.Get(types.Int(1)))
		for _, index := range []ref.Val{types.Int(3), types.Int(-1), types.Double(4)} {
			require.ErrorIs(t, l.Get(index).(*types.Err), errMissing, "%v", index)
		}
		require.Error(t, l.Get(types.String("x")).(*types.Err))
		require.Equal(t, types.True, l.Contains(types.String("two")))
		require.Equal(t, types.False, l.Contains(types.Int(2)))
		longer, ok := l.Add(lists[0]).(*list)
		require.True(t, ok)
		require.Equal(t, 6, longer.len())
		require.Equal(t, types.String("two"), longer.elem(4))
		require.True(t, types.IsError(l.Add(types.Int(1))))
		var elements []ref.Val
		for it := l.Iterator(); it.HasNext() == types.True; {
			elements = append(elements, it.Next())
		}
		require.Equal(t, []ref.Val{types.Int(1), types.String("two"), types.NullValue}, elements)
		require.Equal(t, types.ListType, l.Type())
		require.Same(t, l, l.Value())
		require.Same(t, l, l.ConvertToType(types.ListType))
		require.Equal(t, types.ListType, l.ConvertToType(types.TypeType))
		require.EqualError(t, l.ConvertToType(types.StringType).(*types.Err), "type conversion error from 'list' to 'string'")
		for _, other := range lists {
			require.Equal(t, types.True, l.Equal(other), "%d", i)
		}
		require.Equal(t, types.False, l.Equal(maps[0]))
		require.Equal(t, types.False, l.Equal(&list{m: m, made: elements[:2]}))
		_, err := l.ConvertToNative(nil)
		require.ErrorIs(t, err, errNoNative)
	}
	require.True(t, (&list{m: m}).IsZeroValue())
	for i, v := range maps {
		o, ok := v.(traits.Mapper)
		require.True(t, ok)
		require.Equal(t, types.Int(2), o.Size())
		require.Equal(t, types.String("two"), o.Get(types.String("b")))
		require.Equal(t, missing, o.Get(types.String("c")))
		require.Equal(t, missing, o.Get(types.Bytes("a")))
		require.Equal(t, types.True, o.Contains(types.String("a")))
		require.Equal(t, types.False, o.Contains(types.Int(0)))
		one, found := o.Find(types.String("a"))
		require.True(t, found)
		require.Equal(t, types.Int(1), one)
		_, found = o.Find(types.NullValue)
		require.False(t, found)
		require.False(t, v.(traits.Zeroer).IsZeroValue())
		var names []ref.Val
		for it := o.Iterator(); it.HasNext() == types.True; {
			names = append(names, it.Next())
		}
		require.Equal(t, []ref.Val{types.String("a"), types.String("b")}, names)
		require.Equal(t, types.MapType, o.Type())
		require.Same(t, v, o.Value())
		require.Same(t, v, o.ConvertToType(types.MapType))
		require.Equal(t, types.MapType, o.ConvertToType(types.TypeType))
		require.EqualError(t, o.ConvertToType(types.ListType).(*types.Err), "type conversion error from 'map' to 'list'")
		for _, other := range maps {
			require.Equal(t, types.True, o.Equal(other), "%d", i)
		}
		for _, other := range []ref.Val{
			lists[0], m.object(viewMembers{}), m.object(viewMembers{"a": int64(1), "c": "two"}), m.object(viewMembers{"a": int64(1), "b": "three"}), m.object(viewMembers{"a": int64(1), "b": "two", "c": nil}),
			&dict{m: m}, &dict{m: m, order: []ref.Val{types.Int(1), types.Int(2)}, values: map[ref.Val]ref.Val{types.Int(1): types.Int(1), types.Int(2): types.String("two")}},
		} {
			require.Equal(t, types.False, o.Equal(other), "%d", i)
			require.Equal(t, types.False, other.Equal(o), "%d", i)
		}
		_, err := o.ConvertToNative(nil)
		require.ErrorIs(t, err, errNoNative)
	}
	require.True(t, m.object(viewMembers{}).IsZeroValue())
	require.True(t, (&dict{m: m}).IsZeroValue())

	// An error is equal to nothing, and stays the error it is.
	failed := types.NewErr("failed")
	require.Same(t, failed, m.equal(failed, types.True))
	require.Same(t, failed, m.equal(types.True, failed))
	require.NoError(t, m.err)
}

// Numbers that are equal are one key of a map, whatever their kind. NaN and values that are
// neither numbers, texts nor booleans are none.
func TestTableKey(t *testing.T) {
	for _, tt := range []struct {
		key, want ref.Val
	}{
		{types.True, types.True},
		{types.String("1"), types.String("1")},
		{types.Int(-1), types.Int(-1)},
		{types.Uint(1), types.Int(1)},
		{types.Double(1), types.Int(1)},
		{types.Double(-0.5), types.Double(-0.5)},
		{types.Uint(math.MaxInt64), types.Int(math.MaxInt64)},
		{types.Uint(math.MaxInt64 + 1), types.Uint(math.MaxInt64 + 1)},
		{types.Uint(math.MaxUint64), types.Uint(math.MaxUint64)},
		{types.Double(1 << 62), types.Int(1 << 62)},
		{types.Double(1 << 63), types.Uint(1 << 63)},
		{types.Double(-1 << 63), types.Int(math.MinInt64)},
		{types.Double(-1 << 64), types.Double(-1 << 64)},
		{types.Double(1 << 64), types.Double(1 << 64)},
		{types.Double(1<<64 - 2048), types.Uint(1<<64 - 2048)},
		{types.Double(math.Inf(1)), types.Double(math.Inf(1))},
		{types.Double(0), types.Int(0)},
		{types.Double(math.NaN()), nil},
		{types.NullValue, nil},
		{types.Bytes("a"), nil},
		{&list{}, nil},
	} {
		got, ok := tableKey(tt.key)
		require.Equal(t, tt.want != nil, ok, "%v", tt.key)
		if ok {
			require.Equal(t, tt.want, got, "%v", tt.key)
		}
	}
}
