package main

import (
	"os"
	"strconv"
	"strings"
)

// ticks is the time that the processors of the machine have spent since it started, in
// ticks of the kernel. The zero value is unknown time.
type ticks struct{ all, stolen float64 }

// machineTime reads /proc/stat. Elsewhere than on Linux the time is unknown.
func machineTime() ticks {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return ticks{}
	}
	return parseTicks(string(text))
}

// parseTicks reads the first line of /proc/stat, which sums up the processors:
// "cpu user nice system idle iowait irq softirq steal guest guest_nice". The guest
// times are contained in user and nice.
func parseTicks(stat string) ticks {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return ticks{}
	}
	var t ticks
	for _, field := range fields[1:9] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return ticks{}
		}
		t.all, t.stolen = t.all+n, n // steal is the last one
	}
	return t
}

// stealSince returns the share that the host took away since then, in percent, and -1
// if it is unknown.
func (t ticks) stealSince(then ticks) float64 {
	switch {
	case t.all == 0 || then.all == 0:
		return -1
	case t.all == then.all:
		return 0 // shorter than a tick
	}
	return 100 * (t.stolen - then.stolen) / (t.all - then.all)
}
