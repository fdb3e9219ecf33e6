package data

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/synth"
)

const syntheticPrefix = "synthetic://"

// maxSyntheticRecords keeps record numbers in a word of the generator's counter.
const maxSyntheticRecords = 1 << 31

func isSynthetic(path string) bool { return strings.HasPrefix(path, syntheticPrefix) }

func syntheticShape() []int { return []int{synth.Side, synth.Side} }

// openSynthetic makes the one file of synthetic://digits, whose path is the canonical form with every parameter.
func (d *Dataset) openSynthetic() error {
	records, seed, err := parseSynthetic(d.spec.Path)
	if err != nil {
		return err
	}
	path := fmt.Sprintf("%sdigits?records=%d&seed=%d", syntheticPrefix, records, seed)
	return d.add(path, path, &syntheticFile{even{records, syntheticChunkRecords}, seed})
}

func parseSynthetic(path string) (records int64, seed uint64, err error) {
	u, err := url.Parse(path)
	if err != nil {
		return 0, 0, fmt.Errorf("data %q: %w", path, err)
	}
	if u.Host != "digits" || u.Path != "" || u.Fragment != "" || u.User != nil {
		return 0, 0, fmt.Errorf("data %q: there is one synthetic data set, synthetic://digits?records=10000&seed=1", path)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return 0, 0, fmt.Errorf("data %q: %w", path, err)
	}
	records, seed = 10000, 1
	for name, all := range values {
		if len(all) != 1 {
			return 0, 0, fmt.Errorf("data %q: parameter %q is given %d times", path, name, len(all))
		}
		switch name {
		case "records":
			records, err = strconv.ParseInt(all[0], 10, 64)
			if err != nil || records < 1 || records > maxSyntheticRecords {
				return 0, 0, fmt.Errorf("data %q: records=%q is not a number from 1 to %d", path, all[0], int64(maxSyntheticRecords))
			}
		case "seed":
			if seed, err = strconv.ParseUint(all[0], 10, 64); err != nil {
				return 0, 0, fmt.Errorf("data %q: seed=%q is not a number from 0 to 18446744073709551615", path, all[0])
			}
		default:
			return 0, 0, fmt.Errorf("data %q: parameter %q is not known; there are records and seed", path, name)
		}
	}
	return records, seed, nil
}
