// Package fused is what the command looks for, and what it lets be.
package fused

import "math"

type float interface{ float32 | float64 }

// Sum and what follows are fused.
func Sum(a, b, c float64) float64 {
	return a*b + c
}

func Difference(a, b, c float32) float32 { return c - a*b }

// Half is no product as it is written.
func Half(a, c float64) float64 {
	return c - a/2
}

func generic[T float](a, b, c T) T {
	return -(a * b) - c
}

// Instance has generic compiled.
var Instance = generic[float64]

func Exp(x float64) float64 { return math.Exp(x) }

// Function uses one without a call.
var Function = math.Hypot

// Apart is not fused, and the others use what is exact.
func Apart(a, b, c float64) float64 { return float64(a*b) + c - float64(a/2) }

func Exact(x float64) float64 {
	return math.Sqrt(math.Abs(x)) + math.Floor(math.Mod(x, 3)) + math.Round(math.Trunc(x)) + math.Max(x, math.Min(x, 1))
}
