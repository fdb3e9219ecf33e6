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
	wrong    []string // the names of situations
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
	if o.Verdict == Wrong {
		t.wrong = append(t.wrong, o.Situation.Name)
	}
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

// String is "500 situations: 480 right, 15 approximate (not-modelled 15), 1 wrong (seed-17), 2 without a forecast, …".
func (t *Tally) String() string {
	var codes []string
	for _, code := range slices.Sorted(maps.Keys(t.reasons)) {
		codes = append(codes, fmt.Sprintf("%s %d", code, t.reasons[code]))
	}
	approximate := fmt.Sprintf("%d approximate", t.verdicts[Approximate])
	if len(codes) > 0 {
		approximate += " (" + strings.Join(codes, ", ") + ")"
	}
	wrong := fmt.Sprintf("%d wrong", len(t.wrong))
	if len(t.wrong) > 0 {
		wrong += " (" + strings.Join(t.wrong, ", ") + ")"
	}
	return fmt.Sprintf("%d situations: %d right, %s, %s, %d without a forecast, %d that the cluster refused",
		t.played, t.verdicts[Right], approximate, wrong, t.verdicts[Refused], t.unfit)
}
