package workload

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	nameHashLength = 5
	// A workload's name is a label's value too, which may have 63 characters (Kueue's gate ShortWorkloadNames, on).
	maxNameLength = 63
)

// NameFor is the name of the Workload of one Job or pod, such as job-low-1a2b3: Kueue derives it from the owner's kind,
// name and UID, so that an owner that is created anew gets another.
func NameFor(kind schema.GroupVersionKind, name string, uid types.UID) string {
	sum := sha1.Sum([]byte(kind.Kind + "\n" + kind.Group + "\n" + name + "\n" + string(uid)))
	prefix := strings.ToLower(kind.Kind) + "-" + name
	prefix = prefix[:min(len(prefix), maxNameLength-1-nameHashLength)]
	return prefix + "-" + hex.EncodeToString(sum[:])[:nameHashLength]
}
