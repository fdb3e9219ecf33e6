package inprocess

import (
	"context"
	"reflect"
	"time"
	"unsafe"

	"k8s.io/utils/clock"

	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/util/routine"
	"sigs.k8s.io/kueue/pkg/util/wait"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

// Kueue's scheduler runs in a loop of its own and writes admissions beside it. What is below runs it cycle by cycle, and
// lets each cycle's admissions reach the API before the next. Kueue has no exported way to do so; its version is fixed
// by go.mod, and a release in which one of these names is another one does not link, or panics in the first test.

// cycle runs one cycle. It blocks while no queue has a head.
//
//go:linkname cycle sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).schedule
func cycle(s *scheduler.Scheduler, ctx context.Context) wait.SpeedSignal //nolint:revive // the receiver comes first

// admitBy gives the writing of admissions to somebody else.
//
//go:linkname admitBy sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).setAdmissionRoutineWrapper
func admitBy(s *scheduler.Scheduler, by routine.Wrapper)

// atOnce writes admissions within the cycle.
type atOnce struct{}

func (atOnce) Run(f func()) { f() }

// inTheEnd collects what writes admissions.
type inTheEnd []func()

func (l *inTheEnd) Run(f func()) { *l = append(*l, f) }

// useClock replaces a controller's clock.
func useClock(r *core.WorkloadReconciler, c clock.Clock) {
	field := reflect.ValueOf(r).Elem().FieldByName("clock")
	*(*clock.Clock)(unsafe.Pointer(field.UnsafeAddr())) = c //nolint:gosec // there is no option for it
}

// waitForPodsReady is a configuration whose type has no name outside its package. A workload is late when its pods were
// not ready for a step.
func waitForPodsReady(w *conformance.WaitForPodsReady) core.Option {
	with := reflect.ValueOf(core.WithWaitForPodsReady)
	value := reflect.New(with.Type().In(0).Elem())
	set := func(name string, to any) {
		field := value.Elem().FieldByName(name)
		reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(to)) //nolint:gosec // as above
	}
	set("timeout", time.Second)
	set("requeuingBackoffBaseSeconds", w.BackoffBaseSeconds)
	set("requeuingBackoffLimitCount", w.BackoffLimitCount)
	set("requeuingBackoffMaxDuration", time.Hour)
	return with.Call([]reflect.Value{value})[0].Interface().(core.Option)
}

// hasHeads reports whether a cycle would find something to try.
func (r *run) hasHeads() bool {
	if reflect.ValueOf(r.manager).Elem().FieldByName("secondPassQueue").Elem().FieldByName("queued").Len() > 0 {
		return true
	}
	for name, workloads := range r.manager.Dump() {
		if len(workloads) > 0 && r.cache.ClusterQueueActive(name) {
			return true
		}
	}
	return false
}
