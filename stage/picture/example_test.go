package picture_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

func ExampleDraw() {
	frame := &stage.Frame{
		Scene: &scene.Scene{Width: 320, Height: 180},
		Figures: []stage.Figure{{
			ID: "claude", Label: "claude", Look: scene.Look{Figure: "robot", Color: "cornflowerblue", Size: 60},
			X: 160, Y: 120, Visible: true, Opacity: 1, Scale: 1, State: "thinking",
		}},
	}
	drawing := picture.Draw(frame, picture.Options{Width: 640})
	svg := drawing.AppendSVG(nil)
	img := drawing.Image(320)
	fmt.Println(len(svg) > 0, img.Rect)
	fmt.Print(picture.Terminal(frame, 32, 3, false))
	// Output:
	// true (0,0)-(320,180)
	//
	//                 ▣
	//         claude [thinking]
}
