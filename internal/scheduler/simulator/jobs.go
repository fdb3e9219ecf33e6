package simulator

import "github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"

// job is the part that gangs and elastic jobs have in common.
type job struct {
	id        int
	name      string
	submitted Time
	started   Time
	computed  bool // it has begun to compute at least once
	over      bool
}

// about returns the job, whatever its kind.
func (j *job) asJob() *job { return j }

// starts records that a job computes for the first time.
func (s *simulation) starts(j *job) {
	if !j.computed {
		j.computed, j.started = true, s.now
	}
}

// ends records that a job has ended.
func (s *simulation) ends(j *job, priority int32) {
	j.over = true
	s.ended++
	s.stats.finish(j, priority, s.now)
}

// makeJobs schedules the arrivals of a job.
func (s *simulation) makeJobs(from *scenariofile.Job) {
	count := 1
	if from.Repeat != nil {
		count = from.Repeat.Count
	}
	at := Time(from.Submit)
	for n := range count {
		j := job{id: len(s.jobs), name: from.JobName(n), submitted: at}
		if from.Gang != nil {
			s.jobs = append(s.jobs, &gang{simulation: s, job: j, spec: from.Gang})
		} else {
			s.jobs = append(s.jobs, &elastic{simulation: s, job: j, spec: from.Elastic})
		}
		s.eventQueue.add(event{at: at, kind: jobArrives, subject: j.id})
		if r := from.Repeat; r != nil {
			if r.Random {
				at += s.rng.exponential(r.Every)
			} else {
				at += Time(r.Every)
			}
		}
	}
}
