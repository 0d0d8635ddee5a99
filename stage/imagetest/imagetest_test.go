package imagetest_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/imagetest"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// yard is a frame of figures at x places of a scene 320 wide and 180 high.
func yard(figures ...stage.Figure) *stage.Frame {
	f := &stage.Frame{Scene: &scene.Scene{Width: 320, Height: 180}}
	for _, g := range figures {
		g.Look = scene.Look{Figure: "robot", Color: g.Actor, Size: 40}
		g.Y, g.Visible, g.Opacity, g.Scale, g.State = 120, true, 1, 1, "idle"
		f.Figures = append(f.Figures, g)
	}
	return f
}

func figure(id string, x float64, color string) stage.Figure {
	return stage.Figure{ID: id, X: x, Actor: color}
}

// A reference and a picture of 100 by 100 pixels differ where a test says so, for every
// mask, region and pair of thresholds; a second, slow comparison agrees.
func TestCompareAgainstAModel(t *testing.T) {
	frame := yard(figure("ada", 100, "gold"))
	rapid.Check(t, func(t *rapid.T) {
		want := picture.Draw(frame, picture.Options{Width: 64}).Image(0)
		size := want.Rect.Size()
		for range rapid.IntRange(0, 40).Draw(t, "spots") {
			at := image.Pt(rapid.IntRange(0, size.X-1).Draw(t, "x"), rapid.IntRange(0, size.Y-1).Draw(t, "y"))
			want.SetRGBA(at.X, at.Y, color.RGBA{rapid.Byte().Draw(t, "red"), 90, 90, 255})
		}
		opt := imagetest.Options{
			MaxDiff: rapid.Float64Range(0, .02).Draw(t, "share"), MaxColor: rapid.IntRange(0, 255).Draw(t, "color"), Same: rapid.Bool().Draw(t, "same"),
		}
		if rapid.Bool().Draw(t, "has region") {
			x, y := rapid.IntRange(0, size.X-1).Draw(t, "left"), rapid.IntRange(0, size.Y-1).Draw(t, "top")
			opt.Region = image.Rect(x, y, rapid.IntRange(x+1, size.X).Draw(t, "right"), rapid.IntRange(y+1, size.Y).Draw(t, "bottom"))
		}
		compared := func(image.Point) bool { return true }
		if rapid.Bool().Draw(t, "has mask") {
			row := rapid.IntRange(0, size.Y-1).Draw(t, "masked row")
			mask := image.NewAlpha(image.Rectangle{Min: image.Pt(3, 4), Max: size.Add(image.Pt(3, 4))})
			for x := range size.X {
				mask.SetAlpha(3+x, 4+row, color.Alpha{1})
			}
			opt.Mask, compared = mask, func(at image.Point) bool { return at.Y != row }
			if opt.Region.Dy() == 1 && opt.Region.Min.Y == row {
				_, err := imagetest.New(want, opt)
				require.EqualError(t, err, "imagetest: the mask leaves no pixel to compare")
				return
			}
		}
		test, err := imagetest.New(want, opt)
		require.NoError(t, err)
		got, err := test.Compare(frame)
		require.NoError(t, err)

		var model imagetest.Measurement
		drawn := picture.Draw(frame, picture.Options{Width: size.X}).Image(0)
		for y := range size.Y {
			for x := range size.X {
				at := image.Pt(x, y)
				if !compared(at) || !opt.Region.Empty() && !at.In(opt.Region) {
					continue
				}
				a, b := want.RGBAAt(x, y), drawn.RGBAAt(x, y)
				d := 0.
				for _, pair := range [][2]uint8{{a.R, b.R}, {a.G, b.G}, {a.B, b.B}, {a.A, b.A}} {
					d = math.Max(d, math.Abs(float64(pair[0])-float64(pair[1])))
				}
				model.Compared++
				model.Color = max(model.Color, int(d))
				if int(d) > opt.MaxColor {
					model.Differ++
				}
			}
		}
		model.Share = float64(model.Differ) / float64(model.Compared)
		require.Equal(t, model, got)
		require.Equal(t, model.Share > opt.MaxDiff, test.Differs(got))
		require.Equal(t, test.Differs(got) != opt.Same, test.Wrong(got))
	})
}

// With an entity, only its figure, its badge, its label and its speech count, where they are
// in either picture.
func TestEntity(t *testing.T) {
	ada, bob := figure("ada", 60, "gold"), figure("bob", 240, "tomato")
	speaking, labelled := ada, ada
	speaking.Text, speaking.TextOpacity = "Who is there?", 1
	labelled.Label = "Ada"
	good := yard(ada, bob)
	test, err := imagetest.FromFrame(good, 320, imagetest.Options{Entity: "ada"})
	require.NoError(t, err)
	byImage, err := imagetest.New(picture.Draw(good, picture.Options{Width: 320}).Image(0), imagetest.Options{Entity: "ada"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		frame *stage.Frame
		wrong bool
	}{
		"the same":            {good, false},
		"another has moved":   {yard(ada, figure("bob", 180, "tomato")), false},
		"another is gone":     {yard(ada), false},
		"it has another look": {yard(figure("ada", 60, "teal"), bob), true},
		"it has moved":        {yard(figure("ada", 64, "gold"), bob), true},
		"it speaks":           {yard(speaking, bob), true},
		"it has a label":      {yard(labelled, bob), true},
		"it is gone":          {yard(bob), true},
		"it stands far off":   {yard(figure("ada", 160, "gold"), bob), true},
	} {
		for _, test := range []*imagetest.ImageTest{test, byImage} {
			m, err := test.Compare(c.frame)
			require.NoError(t, err)
			assert.Equalf(t, c.wrong, test.Wrong(m), "%s: %s", name, test.Text(m))
		}
	}
	m, err := byImage.Compare(yard(bob))
	require.NoError(t, err)
	assert.Equal(t, imagetest.Measurement{Share: 1, Absent: true}, m)
	assert.Equal(t, `differs 100%: "ada" is not in the picture`, byImage.Text(m))

	nowhere, err := imagetest.FromFrame(yard(bob), 320, imagetest.Options{Entity: "ada"})
	require.NoError(t, err)
	m, err = nowhere.Compare(yard(bob))
	require.NoError(t, err)
	assert.Equal(t, `does not differ: "ada" is in neither picture`, nowhere.Text(m))
	assert.False(t, nowhere.Wrong(m))
}

// Tests with equal verdicts on all pictures have one identity, other tests another one.
func TestIdentity(t *testing.T) {
	img := picture.Draw(yard(), picture.Options{Width: 32}).Image(0)
	other := image.NewRGBA(img.Rect)
	mask := image.NewAlpha(img.Rect)
	mask.SetAlpha(1, 1, color.Alpha{255})
	seen := map[string]int{}
	for i, opt := range []imagetest.Options{
		{}, {Mask: mask}, {Region: image.Rect(0, 0, 3, 3)}, {Region: image.Rect(0, 0, 3, 4)}, {Entity: "a"}, {Entity: "b"}, {MaxDiff: .1}, {MaxColor: 1}, {Same: true},
	} {
		for j, want := range []image.Image{img, other} {
			test, err := imagetest.New(want, opt)
			require.NoError(t, err)
			again, err := imagetest.New(want, opt)
			require.NoError(t, err)
			assert.Equal(t, test.Identity(), again.Identity())
			assert.NotContains(t, seen, test.Identity(), "test %d of image %d", i, j)
			seen[test.Identity()] = i
		}
	}
}

func TestNewRefuses(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 32, 18))
	for want, opt := range map[string]imagetest.Options{
		"imagetest: the permitted share of differing pixels is 2; it must be from 0 to 1":   {MaxDiff: 2},
		"imagetest: the permitted share of differing pixels is NaN; it must be from 0 to 1": {MaxDiff: math.NaN()},
		"imagetest: the permitted color distance is 256; it must be from 0 to 255":          {MaxColor: 256},
		"imagetest: the permitted color distance is -1; it must be from 0 to 255":           {MaxColor: -1},
		"imagetest: the region 30,0,3,3 is not within the image, which is 32x18":            {Region: image.Rect(30, 0, 33, 3)},
		"picture: compare images: the first is 32 by 18, the mask 3 by 3":                   {Mask: image.NewAlpha(image.Rect(0, 0, 3, 3))},
	} {
		_, err := imagetest.New(img, opt)
		assert.EqualError(t, err, want)
	}
	_, err := imagetest.New(image.NewRGBA(image.Rect(0, 0, 8, 8)), imagetest.Options{})
	assert.EqualError(t, err, "imagetest: the image is 8 pixels wide; a picture of the stage has from 16 to 8192")
	_, err = imagetest.FromFrame(yard(), 1<<20, imagetest.Options{})
	assert.EqualError(t, err, "imagetest: the image is 1048576 pixels wide; a picture of the stage has from 16 to 8192")

	test, err := imagetest.New(image.NewRGBA(image.Rect(0, 0, 32, 19)), imagetest.Options{})
	require.NoError(t, err)
	_, err = test.Compare(yard())
	var size *picture.SizeError
	assert.ErrorAs(t, err, &size)
}

func TestPercentNeverRoundsToADifferentAnswer(t *testing.T) {
	for share, want := range map[float64]string{0: "0.00%", 1e-9: "<0.01%", .00012: "0.01%", .5: "50.00%", .99999: ">99.99%", 1: "100.00%"} {
		assert.Equal(t, want, imagetest.Percent(share))
	}
}

func TestParse(t *testing.T) {
	r, err := imagetest.ParseRegion("1,2, 3,4")
	require.NoError(t, err)
	assert.Equal(t, image.Rect(1, 2, 4, 6), r)
	for _, text := range []string{"", "1,2,3", "1,2,3,4,5", "1,2,0,4", "1,2,3,0", "-1,2,3,4", "a,2,3,4", "1,2,3,99999999999999999999"} {
		_, err := imagetest.ParseRegion(text)
		assert.Errorf(t, err, "%q", text)
	}
	for text, want := range map[string]float64{"0": 0, "1%": .01, "0.25": .25, "100%": 1} {
		got, err := imagetest.ParseShare(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "%", "2", "101%", "-0.1", "NaN", "x"} {
		_, err := imagetest.ParseShare(text)
		assert.Errorf(t, err, "%q", text)
	}
}

// header returns the beginning of a PNG that claims a size.
func header(width, height uint32, depth, kind byte) []byte {
	chunk := append([]byte("IHDR"), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)...)
	chunk = append(chunk, depth, kind, 0, 0, 0)
	data := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	return binary.BigEndian.AppendUint32(append(data, chunk...), crc32.ChecksumIEEE(chunk))
}

// An image that claims a large size is refused before its pixels are allocated.
func TestReadPNGRefusesLargeImages(t *testing.T) {
	for _, h := range [][]byte{
		header(1<<20, 1<<20, 8, 6), header(8193, 1, 8, 2), header(8192, 4609, 8, 2), header(8192, 2305, 16, 6), header(16, 1<<30, 1, 0),
	} {
		var err error
		allocated := testing.AllocsPerRun(1, func() { _, err = imagetest.ReadPNG(h) })
		require.ErrorContains(t, err, "which is larger than any picture of a stage")
		assert.Less(t, allocated, 100.)
	}
	_, err := imagetest.ReadPNG(header(1<<31-1, 1<<31-1, 8, 6))
	require.EqualError(t, err, "imagetest: it cannot be decoded: dimension overflow")
	_, err = imagetest.ReadPNG([]byte("GIF89a"))
	require.EqualError(t, err, "imagetest: it is not a PNG")
	_, err = imagetest.ReadPNG(header(100, 100, 8, 6))
	require.ErrorContains(t, err, "it is not a complete PNG")
}

func FuzzReadPNG(f *testing.F) {
	var small bytes.Buffer
	require.NoError(f, png.Encode(&small, image.NewRGBA(image.Rect(0, 0, 20, 10))))
	f.Add(small.Bytes())
	f.Add(header(100, 100, 8, 3))
	f.Fuzz(func(t *testing.T, data []byte) {
		img, err := imagetest.ReadPNG(data)
		if err != nil || img.Bounds().Dx()*img.Bounds().Dy() > 1<<16 {
			return
		}
		test, err := imagetest.New(img, imagetest.Options{})
		if err != nil {
			return
		}
		m, err := test.Compare(yard())
		if err == nil && m.Compared != img.Bounds().Dx()*img.Bounds().Dy() {
			t.Errorf("%d pixels compared of %v", m.Compared, img.Bounds())
		}
	})
}
