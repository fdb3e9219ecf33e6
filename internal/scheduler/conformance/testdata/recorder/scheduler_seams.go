package scheduler

import "context"

// The recorder runs the scheduler cycle by cycle, and lets each cycle's admissions reach the API before the next.

// Cycle runs one cycle. It blocks while no queue has a head.
func (s *Scheduler) Cycle(ctx context.Context) { s.schedule(ctx) }

// AdmitAtOnce writes admissions within the cycle instead of beside it.
func (s *Scheduler) AdmitAtOnce() { s.setAdmissionRoutineWrapper(atOnce{}) }

type atOnce struct{}

func (atOnce) Run(f func()) { f() }

// AdmitBy gives the writing of admissions to somebody else.
func (s *Scheduler) AdmitBy(run func(func())) { s.setAdmissionRoutineWrapper(by(run)) }

type by func(func())

func (b by) Run(f func()) { b(f) }
