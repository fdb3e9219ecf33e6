package example

import (
	"fmt"
	"sort"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// Found is a feature as a record holds it.
type Found struct {
	Name  string
	Kind  Kind
	Count int // values; strings in bytes_list
}

// maxFeatures bounds what is listed: a feature of five bytes takes a hundred in the list.
const maxFeatures = 100_000

// Look lists the features of a record by name. It is for people and for recognizing the codec, not for the hot path.
func Look(record []byte) ([]Found, error) {
	byName := map[string]Found{}
	err := eachFeature(record, func(name, feature []byte) error {
		found := Found{Name: string(name)}
		err := eachList(feature, func(kind Kind, list []byte) error {
			if kind != found.Kind {
				found.Kind, found.Count = kind, 0
			}
			return eachValue(kind, list, func([]byte, uint64) { found.Count++ })
		})
		if byName[found.Name] = found; len(byName) > maxFeatures {
			return fmt.Errorf("it has more than %d features", maxFeatures)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make([]Found, 0, len(byName))
	for _, found := range byName {
		all = append(all, found)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

// Holds reports whether record is a tf.train.Example with all of the named features. It is cheap for a record that is
// none: such a message is one field 1 that spans the whole record, as every writer makes it.
func Holds(record []byte, features []graph.Feature) bool {
	field, wire, n := protowire.ConsumeTag(record)
	if n < 0 || field != 1 || wire != protowire.BytesType || len(features) == 0 {
		return false
	}
	if _, m := protowire.ConsumeBytes(record[n:]); m < 0 || n+m != len(record) {
		return false
	}
	found, err := Look(record)
	if err != nil {
		return false
	}
	for _, f := range features {
		at := sort.Search(len(found), func(i int) bool { return found[i].Name >= f.Name })
		if at == len(found) || found[at].Name != f.Name {
			return false
		}
	}
	return true
}

// describe lists a record's features for a message.
func describe(record []byte) string {
	found, err := Look(record)
	if err != nil || len(found) == 0 {
		return "no features"
	}
	const most = 10 // enough to recognize a data set
	var b strings.Builder
	for i, f := range found {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(found)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q (%s of %d)", f.Name, f.Kind, f.Count)
	}
	return b.String()
}
