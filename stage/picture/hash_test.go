package picture_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// Drawings have one hash if and only if they look the same.
func TestHash(t *testing.T) {
	base := picture.Draw(forge("#eef2ff"), picture.Options{})
	for _, tt := range []struct {
		name   string
		change func(*stage.Frame)
		same   bool
	}{
		{"nothing", func(*stage.Frame) {}, true},
		{"a sound fades", func(f *stage.Frame) { f.At += time.Millisecond }, false},
		{"a sound that was over before is forgotten", func(f *stage.Frame) { f.Sounds = f.Sounds[1:] }, true},
		{"an invisible figure moves", func(f *stage.Frame) { f.Figures[4].X++ }, true},
		{"a figure moves", func(f *stage.Frame) { f.Figures[1].X += 1e-6 }, false},
		{"a figure is tinted", func(f *stage.Frame) { f.Figures[2].Strength += .1 }, false},
		{"a figure is not visible", func(f *stage.Frame) { f.Figures[3].Visible = false }, false},
		{"a speech goes on", func(f *stage.Frame) { f.Figures[1].Text += "!" }, false},
		{"a beam grows", func(f *stage.Frame) { f.Beams[0].ToX++ }, false},
	} {
		f := forge("#eef2ff")
		tt.change(f)
		d := picture.Draw(f, picture.Options{})
		assert.Equal(t, tt.same, d.Hash() == base.Hash(), tt.name)
		if tt.same {
			assert.True(t, bytes.Equal(base.Image(320).Pix, d.Image(320).Pix), tt.name)
		}
	}
	wide := picture.Draw(forge("#eef2ff"), picture.Options{Width: 400})
	require.NotEqual(t, base.Hash(), wide.Hash())

	silent, later := forge("#eef2ff"), forge("#eef2ff")
	silent.Sounds, later.Sounds = nil, nil
	for i := range silent.Figures {
		silent.Figures[i].State, later.Figures[i].State = "idle", "idle" // the badges of others are animated
	}
	later.At += time.Second
	require.Equal(t, picture.Draw(silent, picture.Options{}).Hash(), picture.Draw(later, picture.Options{}).Hash(), "time alone changes nothing")
}

// Every field of a shape is part of the hash.
func TestHashCoversShapes(t *testing.T) {
	seen := map[[32]byte]string{}
	for name, hash := range picture.ShapeHashes() {
		if other, ok := seen[hash]; ok {
			t.Errorf("a change of %q and one of %q have the same hash", name, other)
		}
		seen[hash] = name
	}
}

func BenchmarkHash(b *testing.B) {
	d := picture.Draw(forge("#eef2ff"), picture.Options{})
	for b.Loop() {
		d.Hash()
	}
}
