package where

// Spent returns the steps and bytes that the last evaluation of an expression
// requested of its meter.
func (x *Expression) Spent() (steps, bytes int64) {
	return x.machine.meter.steps, x.machine.meter.bytes
}

// ContextEvery is the number of steps between two checks of the context.
const ContextEvery = contextEvery
