package dataset

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The schemes of data sets whose records are not stored.
const (
	SyntheticPrefix = "synthetic://" // generated records
	IndicesPrefix   = "indices://"   // only the records' numbers; the job's script has the records
)

// Digits is the default synthetic data set.
const Digits = "digits"

// SyntheticSets lists the synthetic data sets, Digits first. internal/trainer/data has a generator for each.
func SyntheticSets() []string { return []string{Digits, "shapes", "frappe", "census"} }

// maxSyntheticRecords keeps record numbers in a word of the generator's counter.
const maxSyntheticRecords = 1 << 31

// Synthetic is a generated data set.
type Synthetic struct {
	Name    string
	Records int64
	Seed    uint64
}

// String is the canonical URI, with every parameter.
func (s Synthetic) String() string {
	return fmt.Sprintf("%s%s?records=%d&seed=%d", SyntheticPrefix, s.Name, s.Records, s.Seed)
}

// ParseSynthetic parses synthetic://NAME?records=10000&seed=1. Both parameters are optional.
func ParseSynthetic(uri string) (Synthetic, error) {
	u, values, err := parse(uri)
	if err != nil {
		return Synthetic{}, err
	}
	if !slices.Contains(SyntheticSets(), u.Host) || !hasOnlyHostAndQuery(u) {
		return Synthetic{}, fmt.Errorf("there is no such synthetic data set; there are %s, and the same of %s",
			Synthetic{Digits, 10000, 1}, strings.Join(SyntheticSets()[1:], ", "))
	}
	s := Synthetic{Name: u.Host, Records: 10000, Seed: 1}
	for name, all := range values {
		if len(all) != 1 {
			return Synthetic{}, fmt.Errorf("parameter %q is given %d times", name, len(all))
		}
		switch name {
		case "records":
			s.Records, err = strconv.ParseInt(all[0], 10, 64)
			if err != nil || s.Records < 1 || s.Records > maxSyntheticRecords {
				return Synthetic{}, fmt.Errorf("records=%q is not a number from 1 to %d", all[0], int64(maxSyntheticRecords))
			}
		case "seed":
			if s.Seed, err = strconv.ParseUint(all[0], 10, 64); err != nil {
				return Synthetic{}, fmt.Errorf("seed=%q is not a number from 0 to 18446744073709551615", all[0])
			}
		default:
			return Synthetic{}, fmt.Errorf("parameter %q is not known; there are records and seed", name)
		}
	}
	return s, nil
}

// Indices is a data set of which only the number of records is known.
type Indices struct {
	Name    string
	Records int64
}

// String is the canonical URI.
func (i Indices) String() string {
	return fmt.Sprintf("%s%s?records=%d", IndicesPrefix, i.Name, i.Records)
}

// ParseIndices parses indices://NAME?records=60000.
func ParseIndices(uri string) (Indices, error) {
	u, values, err := parse(uri)
	if err != nil {
		return Indices{}, err
	}
	if u.Host == "" || !hasOnlyHostAndQuery(u) || len(values) != 1 || len(values["records"]) != 1 {
		return Indices{}, fmt.Errorf("name a data set of the script's own with its number of records: %sNAME?records=60000", IndicesPrefix)
	}
	records, err := strconv.ParseInt(values.Get("records"), 10, 64)
	if err != nil || records < 1 {
		return Indices{}, fmt.Errorf("records=%q is not a number of at least 1", values.Get("records"))
	}
	return Indices{Name: u.Host, Records: records}, nil
}

// IsGenerated reports whether the records of a source are not stored: synthetic:// and indices://.
func IsGenerated(source string) bool {
	return strings.HasPrefix(source, SyntheticPrefix) || strings.HasPrefix(source, IndicesPrefix)
}

// parse splits a URI. Its errors leave out the URI, which callers name.
func parse(uri string) (*url.URL, url.Values, error) {
	u, err := url.Parse(uri)
	if err != nil {
		var wrong *url.Error
		if errors.As(err, &wrong) {
			err = wrong.Err
		}
		return nil, nil, err
	}
	values, err := url.ParseQuery(u.RawQuery)
	return u, values, err
}

func hasOnlyHostAndQuery(u *url.URL) bool { return u.Path == "" && u.Fragment == "" && u.User == nil }
