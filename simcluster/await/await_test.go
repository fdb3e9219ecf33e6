package await_test

import (
	"context"
	"errors"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

func TestWhatComesAboutAtTheThirdLookIsAwaited(t *testing.T) {
	looks := 0
	err := await.Until(t.Context(), "it is there", 1, func(context.Context) error {
		if looks++; looks < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || looks != 3 {
		t.Errorf("%d looks: %v", looks, err)
	}
}

func TestAFailedWaitReportsWhatWasMissing(t *testing.T) {
	late, missing := errors.New("too late"), errors.New("one of two is there")
	ctx, end := context.WithCancelCause(t.Context())
	looks := 0
	err := await.Until(ctx, "both are there", 1, func(ctx context.Context) error {
		if looks++; looks < 2 {
			return missing
		}
		end(late)
		return ctx.Err()
	})
	want := "waiting until both are there: too late; at the last look: one of two is there"
	if err == nil || err.Error() != want || !errors.Is(err, late) || !errors.Is(err, missing) {
		t.Errorf("got %v, want %s", err, want)
	}
}
