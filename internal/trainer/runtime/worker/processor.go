package worker

import (
	"os"
	"runtime"
	"strings"
)

// processor is the name of this machine's processor, for messages.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	return processorIn(string(text), runtime.GOARCH)
}

// processorIn finds the name in Linux' /proc/cpuinfo. Processors of arm64 have a number instead.
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
