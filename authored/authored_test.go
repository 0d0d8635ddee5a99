package authored_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/signal"
)

var errKind = errors.New("refused")

// Remarks come in the order of the text, whatever the order they were added in,
// and only errors make an error.
func TestDiagnostics(t *testing.T) {
	v, err := signal.ParseValue([]byte(text))
	require.NoError(t, err)
	root := authored.Located{Value: v}
	var f authored.Remarks
	assert.NoError(t, f.Diagnostics("f.json", []byte(text)).Err(errKind))
	f.Warnf(root.At("é\u0041").Location.Key(), "late")
	for i, e := range root.At("a").Elements {
		if e.Has("b/c") {
			f.Errorf(e.At("b/c").Location, "element %d", i)
		}
	}
	ds := f.Diagnostics("f.json", []byte(text))
	assert.Equal(t, "f.json:2:20: error: element 1 (/a/1/b~1c)\nf.json:3:3: warning: late (/éA)", ds.String())
	err = ds.Err(errKind)
	assert.ErrorIs(t, err, errKind)
	assert.EqualError(t, err, "f.json:2:20: error: element 1 (/a/1/b~1c)")
	assert.NoError(t, ds.Only(authored.SeverityWarning).Err(errKind))
}

// An error is listed even behind more warnings than are listed.
func TestErrorIsNotLost(t *testing.T) {
	var f authored.Remarks
	for i := range authored.MaxDiagnostics + 5 {
		f.Warnf((*authored.Location)(nil).At("a"), "warning %d", i)
	}
	assert.False(t, f.Refused())
	f.Errorf(nil, "error")
	f.Errorf(nil, "not listed")
	ds := f.Diagnostics("f.json", []byte(text))
	assert.Len(t, ds, authored.MaxDiagnostics+1)
	assert.Equal(t, 2, f.Errors())
	assert.True(t, slices.ContainsFunc(ds, func(d authored.Diagnostic) bool { return d.Message == "error" }))
	last := ds[len(ds)-1]
	assert.Equal(t, "there is more, which is not listed", last.Message)
	assert.Equal(t, authored.SeverityError, last.Severity)
}

func TestSyntaxDiagnostic(t *testing.T) {
	broken := []byte("{\n  \"a\": }")
	_, err := signal.ParseValue(broken)
	d := authored.SyntaxDiagnostic("f.json", broken, err)
	assert.Equal(t, "f.json:2:8: error: '}' where a value should be", d.String())
	assert.Equal(t, "f.json:1:1: error: other", authored.SyntaxDiagnostic("f.json", broken, errors.New("other")).String())
}
