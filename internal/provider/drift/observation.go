package drift

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"time"
)

// Observation is the information about an object that a refresh reads and that is not in the state. Terraform keeps it
// with the state, as private data of the resource. A plan can then name writers without another request to the cluster,
// and its apply can compare the cluster with the basis of the plan.
type Observation struct {
	// Writers are the attributes whose fields other field managers own.
	Writers []Writer `json:"writers,omitempty"`
	// Others are labels and annotations that others put on the object and state therefore lacks, as paths with the digest
	// of the value: they matter once the configuration sets them too.
	Others map[string]string `json:"others,omitempty"`
	// Lost are attributes that were seen to change and that no other manager owns: the field was removed.
	Lost []string `json:"lost,omitempty"`
	// Held is the action that set the stop policy which a queue has: "queue-hold" or "queue-drain"; "" for none.
	Held string `json:"held,omitempty"`
}

// Writer is the last writer of an attribute, or of a part of it.
type Writer struct {
	Attribute string    `json:"attribute"` // labels["team"]
	Manager   string    `json:"manager"`
	Time      time.Time `json:"time"`
}

// Observed completes an observation by the changes of state in a refresh: attributes without a known writer were
// removed. Results of earlier refreshes stay.
func (o Observation) Observed(changes []Change, earlier Observation) Observation {
	lost := slices.Clone(earlier.Lost)
	for _, change := range changes {
		lost = append(lost, change.Path.String())
	}
	slices.Sort(lost)
	o.Lost = slices.DeleteFunc(slices.Compact(lost), func(attribute string) bool {
		_, written := o.writerOf(attribute)
		return written
	})
	return o
}

// writerOf is the writer of an attribute, of a part of it, or of an attribute that contains it.
func (o Observation) writerOf(attribute string) (Writer, bool) {
	var found Writer
	for _, w := range o.Writers {
		if !overlap(w.Attribute, attribute) {
			continue
		}
		if covers(attribute, w.Attribute) || len(w.Attribute) > len(found.Attribute) {
			found = w
		}
		if w.Attribute == attribute {
			break
		}
	}
	return found, found.Manager != ""
}

// Digest replaces a value that is not the resource's and that the state therefore does not keep.
func Digest(value string) string {
	sum := sha256.Sum256([]byte(value))
	return base64.RawStdEncoding.EncodeToString(sum[:12])
}

// isEntryOfMetadata reports whether an attribute is a label or an annotation.
func isEntryOfMetadata(attribute string) bool {
	return strings.HasPrefix(attribute, `labels["`) || strings.HasPrefix(attribute, `annotations["`)
}

func sortedKeys[V any](all ...map[string]V) []string {
	union := map[string]V{}
	for _, m := range all {
		maps.Copy(union, m)
	}
	return slices.Sorted(maps.Keys(union))
}
