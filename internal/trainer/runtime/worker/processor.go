package worker

import (
	"os"
	"runtime"
	"strings"
)

// processor is this machine's, for a sentence that names it.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	return processorIn(string(text), runtime.GOARCH)
}

// processorIn finds the name in what Linux says of a machine's processors. arm64's have a number instead of one.
func processorIn(cpuinfo, architecture string) string {
	part := ""
	for line := range strings.Lines(cpuinfo) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name":
			return strings.TrimSpace(value)
		case "CPU part":
			part = strings.TrimSpace(value)
		}
	}
	if part != "" {
		return architecture + " part " + part
	}
	return architecture
}
