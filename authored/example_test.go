package authored_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/signal"
)

// A reader collects remarks about values, and gets their places in the text.
func ExampleRemarks() {
	text := []byte("{\n  \"name\": \"yard\",\n  \"size\": -4\n}")
	value, err := signal.ParseValue(text)
	if err != nil {
		fmt.Println(authored.SyntaxDiagnostic("yard.json", text, err))
		return
	}
	var remarks authored.Remarks
	root := authored.Located{Value: value}
	if size := root.At("size"); size.Value != nil {
		if n, ok := size.Value.Int64(); !ok || n < 0 {
			remarks.Errorf(size.Location, "size must not be negative")
		}
	}
	fmt.Println(remarks.Diagnostics("yard.json", text))
	// Output:
	// yard.json:3:11: error: size must not be negative (/size)
}
