package scenario

import (
	"context"
	"errors"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

func TestTheContextOfARunEndsBeforeTheTestBinaryDoesAndWhenTheRunStops(t *testing.T) {
	t.Parallel()
	ctx, stop := testContext(t)
	if err := ctx.Err(); err != nil {
		t.Fatal(err)
	}
	if binary, limited := t.Deadline(); limited {
		if run, there := ctx.Deadline(); !there || !run.Equal(binary.Add(-patience.Short)) {
			t.Errorf("the run ends at %v (%v), the binary at %v", run, there, binary)
		}
	}
	stop()
	stop() // as a deferred call and a cleanup would
	if err := ctx.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
