package nn_test

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exactProducts are the functions whose products need no rounding, so that a fused instruction changes nothing: of two
// float32 in float64 (kernel/fma.go), and of a 24-bit number with a power of two (Init's uniform numbers).
var exactProducts = []string{"kernel.fma", "kernel.(*tile2).advance", "nn.(*Network).Init"}

// fused are the instructions by which a compiler rounds a product and a sum once instead of twice.
var fused = regexp.MustCompile(`\b(VFN?M(ADD|SUB)\d+[SP][SD]|FN?M(ADD|SUB)[SD])\b`)

func TestTheCompilerFusesNoProductAndSumOfOurArithmetic(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles these packages for two more architectures")
	}
	for name, environment := range map[string][]string{"arm64": {"GOARCH=arm64"}, "GOAMD64=v3": {"GOARCH=amd64", "GOAMD64=v3"}} {
		t.Run(name, func(t *testing.T) {
			// The packages' archives: a program would have the architecture's whole standard library compiled for it.
			list := exec.CommandContext(t.Context(), "go", "list", "-export", "-f", "{{.Export}}", ".", "../kernel", "../philox", "../graph")
			list.Env = append(os.Environ(), append(environment, "CGO_ENABLED=0", "GOOS=linux")...)
			archives, err := list.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderrOf(err))
			}
			var text []byte
			for _, archive := range strings.Fields(string(archives)) {
				part, err := exec.CommandContext(t.Context(), "go", "tool", "objdump", archive).Output()
				if err != nil {
					t.Fatalf("%s: %v\n%s", archive, err, stderrOf(err))
				}
				text = append(text, part...)
			}
			function, functions := "", 0
			for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
				line := lines.Text()
				if symbol, ok := strings.CutPrefix(line, "TEXT "); ok {
					path, _, _ := strings.Cut(symbol, "(SB)")
					function = path[strings.LastIndex(path, "/")+1:]
					functions++
					continue
				}
				if !fused.MatchString(line) || slices.Contains(exactProducts, function) || strings.Contains(line, "_amd64.s:") {
					continue // the assembly fuses on purpose
				}
				t.Errorf("%s: %s", function, strings.TrimSpace(line))
			}
			if functions < 100 {
				t.Fatalf("only %d functions were looked at", functions)
			}
		})
	}
}

// stderrOf is what a command wrote before it failed.
func stderrOf(err error) []byte {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.Stderr
	}
	return nil
}
