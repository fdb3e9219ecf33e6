package snapshot

import (
	"bytes"
	"regexp"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// Merged is a job as it is applied, or as its object then is.
var Merged = merged

// Anonymized is what WriteAnonymized writes, with the names in other objects replaced in the same way, and a function
// that puts the names of a text back.
func Anonymized(s *forecast.Snapshot, others ...cluster.Object) (text []byte, back func(string) string, err error) {
	objects := objectsOf(s)
	n := namesOf(append(objects[:len(objects):len(objects)], others...))
	n.rename(objects)
	n.rename(others)
	was := map[string]string{}
	for word, is := range n.words {
		was[is] = word
	}
	var out bytes.Buffer
	err = write(&out, objects)
	return out.Bytes(), func(text string) string {
		return regexp.MustCompile(`x[0-9]{4,}|\b100000[0-9]{2}\b`).ReplaceAllStringFunc(text, func(word string) string { return was[word] })
	}, err
}
