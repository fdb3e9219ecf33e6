package accelerator

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// The guide "Moving from SkyPilot YAML" shows the table by the labels of most nodes, and names what has none of them.
func TestTheGuideHasEveryAcceleratorWithItsLabels(t *testing.T) {
	text, err := os.ReadFile("../../../../templates/guides/moving-from-skypilot.md")
	if err != nil {
		t.Fatal(err)
	}
	columns := [][]string{{KeyGKE, KeyGKETPU}, {KeyGFD}, {KeyEKS}, {KeyAKS}}
	rows, inTable := map[string][]string{}, false
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if inTable = strings.HasPrefix(line, "|") && (inTable || strings.TrimSpace(cells[0]) == "accelerator"); !inTable {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if strings.HasPrefix(cells[0], "`") {
			rows[strings.Trim(cells[0], "`")] = cells[1:]
		}
	}
	all := builtin()
	for name, d := range all {
		var want []string
		for _, keys := range columns {
			var values []string
			for _, key := range keys {
				for _, value := range d.Labels[key] {
					values = append(values, "`"+value+"`")
				}
			}
			want = append(want, strings.Join(values, ", "))
		}
		switch {
		case strings.Join(want, "") == "":
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("%s is not named", name)
			}
		case !slices.Equal(rows[name], want):
			t.Errorf("%s: the guide has %q, the table %q", name, rows[name], want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if _, known := all[name]; !known {
			t.Errorf("the table has no %s", name)
		}
	}
}
