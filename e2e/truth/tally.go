package truth

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Tally counts verdicts.
type Tally struct {
	played   int
	verdicts map[Verdict]int
	reasons  map[string]int // codes of what made answers approximate
	unfit    int
}

// Count counts the outcome of a situation, or the error instead of one, and returns how many there were.
func (t *Tally) Count(o Outcome, err error) int {
	if t.verdicts == nil {
		t.verdicts, t.reasons = map[Verdict]int{}, map[string]int{}
	}
	t.played++
	if err != nil {
		t.unfit++
		return t.played
	}
	t.verdicts[o.Verdict]++
	if o.Verdict == Approximate {
		codes := map[string]bool{}
		for _, a := range o.Answers {
			for _, reason := range a.Approximate {
				codes[string(reason.Code)] = true
			}
		}
		for code := range codes {
			t.reasons[code]++
		}
	}
	return t.played
}

// String is "500 situations: 480 right, 15 approximate (not-modelled 15), 3 wrong, 2 refused, 0 unfit".
func (t *Tally) String() string {
	var codes []string
	for _, code := range slices.Sorted(maps.Keys(t.reasons)) {
		codes = append(codes, fmt.Sprintf("%s %d", code, t.reasons[code]))
	}
	approximate := fmt.Sprintf("%d approximate", t.verdicts[Approximate])
	if len(codes) > 0 {
		approximate += " (" + strings.Join(codes, ", ") + ")"
	}
	return fmt.Sprintf("%d situations: %d right, %s, %d wrong, %d without a forecast, %d that the cluster refused",
		t.played, t.verdicts[Right], approximate, t.verdicts[Wrong], t.verdicts[Refused], t.unfit)
}
