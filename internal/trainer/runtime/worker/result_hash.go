package worker

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
)

// castagnoli is a checksum with hardware support, as fast as memory.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// resultHash is the hash by which two workers' results of the same virtual worker are compared: the gradient and the
// statistics behind it, the rows of the tables, the loss and the counts. It is computed before several results are
// summed, since the sums depend on the assignments; a checksum detects every single flipped bit, and misses other
// differences once in 2³².
func resultHash(r nn.Result, out []float32, rows []gradient.Rows) uint32 {
	hash := crc32.Checksum(wire.Bytes(out), castagnoli)
	if len(rows) > 0 {
		hash = crc32.Update(hash, castagnoli, wire.Bytes(gradient.AppendPacked(nil, rows)))
	}
	measured := make([]byte, 0, 16+8*len(r.Counts))
	measured = binary.LittleEndian.AppendUint64(measured, math.Float64bits(r.LossSum))
	measured = binary.LittleEndian.AppendUint64(measured, uint64(r.Records))
	for _, n := range r.Counts {
		measured = binary.LittleEndian.AppendUint64(measured, uint64(n))
	}
	return crc32.Update(hash, castagnoli, measured)
}
