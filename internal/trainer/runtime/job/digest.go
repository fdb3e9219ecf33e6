package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"
)

// identify computes the two digests of a job. The lineage covers everything that determines the state at every step:
// the traced graph with its loss and optimizer, the numbers of the schedule but the epochs, the version of the
// arithmetic, and the data. The job's digest adds the number of epochs. For a script, the graph is replaced by its text
// and command, and the tensors of its state.
func identify(computation json.RawMessage, p schedule.Params, fingerprint [sha256.Size]byte) coordinator.Identity {
	lineage := digest(struct {
		Graph          json.RawMessage `json:"graph"`
		Seed           uint64          `json:"seed"`
		MinibatchSize  int             `json:"minibatch_size"`
		GradsToWait    int             `json:"grads_to_wait"`
		RecordsPerTask int             `json:"records_per_task"`
		Numerics       int             `json:"numerics"`
		Data           string          `json:"data"`
	}{computation, p.Seed, p.MinibatchSize, p.GradsToWait, p.RecordsPerTask, kernel.NumericsVersion, hex.EncodeToString(fingerprint[:])})
	return coordinator.Identity{
		Lineage: lineage,
		Job: digest(struct {
			Lineage string `json:"lineage"`
			Epochs  int    `json:"epochs"`
		}{lineage, p.Epochs}),
		Numerics: kernel.NumericsVersion,
	}
}

// digest is the SHA-256 of a value's JSON, whose fields have one order.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("job: " + err.Error()) // strings, numbers and valid JSON only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
