package imagetest_test

import (
	"fmt"
	"image"

	"github.com/sajou-dev/sajou-go/stage/imagetest"
)

// A test by the picture of a frame finds that a figure has moved, and permits it where the
// figure is not compared.
func ExampleImageTest() {
	good, now := yard(figure("ada", 60, "gold")), yard(figure("ada", 200, "gold"))
	for _, opt := range []imagetest.Options{
		{},
		{MaxDiff: .5},
		{Region: image.Rect(0, 0, 320, 20)},
		{Entity: "ada", MaxColor: 255},
	} {
		test, err := imagetest.FromFrame(good, 320, opt)
		if err != nil {
			fmt.Println(err)
			return
		}
		m, err := test.Compare(now)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(test.Wrong(m), m.Differ > 0, m.Compared > 320*20)
	}
	// Output:
	// true true true
	// false true true
	// false false false
	// false false false
}
