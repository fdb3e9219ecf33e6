package task

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// amount is how much of CPU or memory a node must have.
type amount struct {
	resource.Quantity
	// atLeast is SkyPilot's "+": more is welcome, so there is no limit.
	atLeast bool
}

// parseCPUs reads "4", "4+" or "500m".
func parseCPUs(text string) (amount, error) {
	a, err := parseAmount(text, func(number string) string { return number })
	if err != nil {
		return amount{}, fmt.Errorf("is %q; write a number of CPUs, such as \"4\", \"4+\" (at least 4) or \"500m\"", text)
	}
	return a, nil
}

// parseMemory reads "32" and "32+" (GiB, as SkyPilot counts), "32GB" and "512MB" (which SkyPilot counts by 1024 too),
// and "32Gi".
func parseMemory(text string) (amount, error) {
	a, err := parseAmount(text, func(number string) string {
		if n, ok := strings.CutSuffix(strings.ToUpper(number), "B"); ok && n != "" && slices.Contains([]byte("KMGTP"), n[len(n)-1]) {
			return n + "i"
		}
		if number != "" && strings.Trim(number, "0123456789.") == "" {
			return number + "Gi"
		}
		return number
	})
	if err != nil {
		return amount{}, fmt.Errorf("is %q; write GiB, such as \"32\" or \"32+\" (at least 32), or a quantity, such as \"512Mi\"", text)
	}
	return a, nil
}

func parseAmount(text string, unit func(string) string) (amount, error) {
	number, atLeast := strings.CutSuffix(strings.TrimSpace(text), "+")
	q, err := resource.ParseQuantity(unit(strings.TrimSpace(number)))
	if err != nil {
		return amount{}, err
	}
	if q.Sign() <= 0 {
		return amount{}, fmt.Errorf("%q is not positive", text)
	}
	return amount{q, atLeast}, nil
}
