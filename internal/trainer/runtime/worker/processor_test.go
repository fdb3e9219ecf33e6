package worker

import "testing"

func TestAProcessorIsNamedByTheKernelsDescription(t *testing.T) {
	for name, c := range map[string]struct{ cpuinfo, want string }{
		"an x86 one by its brand":                       {"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Processor @ 2.10GHz\n\nprocessor\t: 1\n", "Intel(R) Xeon(R) Processor @ 2.10GHz"},
		"an ARM one by its number":                      {"processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n", "arm64 part 0xd40"},
		"one without a description by its architecture": {"", "arm64"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := processorIn(c.cpuinfo, "arm64"); got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}
