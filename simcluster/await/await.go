// Package await polls for a condition in a cluster that no watch reports. The context limits the wait, and the caller
// handles a timeout.
package await

import (
	"context"
	"fmt"
	"time"
)

// Until looks, with a pause between two looks, until look has nothing to complain of. When ctx ends before, the error
// says what was awaited ("the node is ready"), why ctx ended, and what look complained of at last, while there was
// time.
func Until(ctx context.Context, what string, pause time.Duration, look func(context.Context) error) error {
	var lastErr error
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		if lastErr == nil || ctx.Err() == nil { // a look that ctx has ended has seen nothing
			lastErr = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w; at the last look: %w", what, context.Cause(ctx), lastErr)
		case <-time.After(pause):
		}
	}
}
