// Package expand limits the memory for decompressed data. DEFLATE can expand one byte to a thousand, and an empty
// record needs a slice header, so without a limit a file of a megabyte could exhaust a machine's memory.
package expand

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

const (
	// MinLimit is allowed whatever the stored size: twice the chunk that RecordIO writers make by default, so that a
	// chunk of zeros is read.
	MinLimit = 64 << 20
	// Factor is by how much more may be stored than MinLimit/Factor: several times what training data compresses to.
	Factor = 16
	// RecordBytes is what a record takes besides its bytes: the header of its slice.
	RecordBytes = 24
)

// Limit is how many bytes in memory may come from so many stored ones.
func Limit(stored int64) int64 {
	if stored > (1<<62)/Factor {
		return 1 << 62
	}
	return max(MinLimit, Factor*stored)
}

// Records is how many records may come from so many stored bytes: their headers take no more than MinLimit, or four
// times as much as is stored, which lets records be a byte or two.
func Records(stored int64) int64 { return max(MinLimit, 4*min(stored, 1<<60)) / RecordBytes }

// Rule names the limit in messages.
func Rule(stored int64) string {
	return fmt.Sprintf("at most %s bytes are read from %s stored ones (%d MiB, or %d times as many)",
		wording.Count(Limit(stored)), wording.Count(stored), MinLimit>>20, Factor)
}
