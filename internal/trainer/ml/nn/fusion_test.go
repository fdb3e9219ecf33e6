package nn_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
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
	for name, environment := range map[string][]string{"arm64": {"GOARCH=arm64"}, "GOAMD64=v3": {"GOARCH=amd64", "GOAMD64=v3"}} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "program")
			build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, ".")
			build.Env = append(os.Environ(), append(environment, "CGO_ENABLED=0", "GOOS=linux")...)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			text, err := exec.CommandContext(t.Context(), "go", "tool", "objdump", "-s", `internal/trainer/ml/(kernel|nn|philox|graph)\.`, program).Output()
			if err != nil {
				t.Fatal(err)
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
				if !fused.MatchString(line) || slices.Contains(exactProducts, function) ||
					strings.Contains(line, "_amd64.s:") || strings.Contains(line, "_test.go:") {
					continue // the assembly fuses on purpose; what tests compute is in no model
				}
				t.Errorf("%s: %s", function, strings.TrimSpace(line))
			}
			if functions < 100 {
				t.Fatalf("only %d functions were looked at", functions)
			}
		})
	}
}
