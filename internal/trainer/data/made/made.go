// Package made reads the URIs of data sets whose records are made and not stored: synthetic://NAME and indices://NAME. It
// says what is wrong with one before anything of it is made, so that a plan can say it too.
package made

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/planted"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/synth"
)

// What the URIs begin with.
const (
	SyntheticPrefix = "synthetic://"
	IndicesPrefix   = "indices://"
)

// Digits is the synthetic data set that is made where none is named. There are package synth's, of images, and package
// planted's.
const Digits = "digits"

// maxSyntheticRecords keeps record numbers in a word of the generator's counter.
const maxSyntheticRecords = 1 << 31

// Synthetic is a generated data set.
type Synthetic struct {
	Name    string
	Records int64
	Seed    uint64
}

// ParseSynthetic reads synthetic://NAME?records=10000&seed=1, of which both parameters may be left out.
func ParseSynthetic(uri string) (Synthetic, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return Synthetic{}, plain(err)
	}
	_, images := synth.ByName(u.Host)
	_, table := planted.ByName(u.Host)
	if !images && !table || u.Path != "" || u.Fragment != "" || u.User != nil {
		return Synthetic{}, fmt.Errorf("there is no such synthetic data set; there are synthetic://digits?records=10000&seed=1, and the same of %s", otherSets())
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Synthetic{}, err
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

// Indices are the numbers of records that a script has itself.
type Indices struct {
	Name    string
	Records int64
}

// ParseIndices reads indices://NAME?records=60000.
func ParseIndices(uri string) (Indices, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return Indices{}, plain(err)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Indices{}, err
	}
	if u.Host == "" || u.Path != "" || u.Fragment != "" || u.User != nil || len(values) != 1 || len(values["records"]) != 1 {
		return Indices{}, fmt.Errorf("name a data set of the script's own with its number of records: %sNAME?records=60000", IndicesPrefix)
	}
	records, err := strconv.ParseInt(values.Get("records"), 10, 64)
	if err != nil || records < 1 {
		return Indices{}, fmt.Errorf("records=%q is not a number of at least 1", values.Get("records"))
	}
	return Indices{Name: u.Host, Records: records}, nil
}

// plain leaves out the URI, which the caller names.
func plain(err error) error {
	var wrong *url.Error
	if errors.As(err, &wrong) {
		return wrong.Err
	}
	return err
}

// otherSets are the names of the sets besides Digits.
func otherSets() string {
	var names []string
	for _, s := range synth.Sets() {
		if s.Name != Digits {
			names = append(names, s.Name)
		}
	}
	for _, t := range planted.All() {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}
