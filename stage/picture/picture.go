// Package picture draws the frames of a stage.
package picture
