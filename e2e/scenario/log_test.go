package scenario

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

func stages(n int) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) { return len(h.Stages) >= n, nil }
}

func TestWaitObservesEventsFromBeforeAndAfterItsStart(t *testing.T) {
	defer goleak.VerifyNone(t)
	log := NewLog(&bytes.Buffer{}, nil)
	log.Add(eventlog.Event{Stage: &eventlog.Stage{Name: "first"}})
	if err := log.Wait(t.Context(), "there is one stage", time.Minute, stages(1)); err != nil {
		t.Fatal(err)
	}
	go log.Add(eventlog.Event{Stage: &eventlog.Stage{Name: "second"}})
	if err := log.Wait(t.Context(), "there are two stages", time.Minute, stages(2)); err != nil {
		t.Fatal(err)
	}
}

func TestWaitErrorNamesTheConditionAndTheCause(t *testing.T) {
	log := NewLog(&bytes.Buffer{}, nil)
	err := log.Wait(t.Context(), "pigs fly", time.Millisecond, stages(1))
	if err == nil || err.Error() != "waiting until pigs fly: timed out after 1ms" {
		t.Errorf("after its limit: %v", err)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.Wait(interrupted, "pigs fly", time.Hour, stages(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	broken := errors.New("the pig is dead")
	err = log.Wait(t.Context(), "pigs fly", time.Hour, func(*eventlog.History) (bool, error) { return false, broken })
	if !errors.Is(err, broken) {
		t.Errorf("with a condition that cannot come true: %v", err)
	}
}

func TestLogWritesAndObservesEveryEventInOrder(t *testing.T) {
	var written bytes.Buffer
	var observed []string
	log := NewLog(&written, func(e eventlog.Event) { observed = append(observed, e.Stage.Name) })
	for _, name := range []string{"a", "b", "c"} {
		log.Add(eventlog.Event{Stage: &eventlog.Stage{Name: name}})
	}
	events, err := eventlog.Read(&written)
	if err != nil || len(events) != 3 || log.Err() != nil {
		t.Fatalf("%d events were written (%v, %v), want 3", len(events), err, log.Err())
	}
	if strings.Join(observed, "") != "abc" {
		t.Errorf("observed %v", observed)
	}
}
