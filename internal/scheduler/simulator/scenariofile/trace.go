package scenariofile

import "path/filepath"

// TraceFormat is how a trace is written; see package trace.
type TraceFormat string

// The formats.
const (
	AlibabaGPU2023  TraceFormat = "alibaba-gpu-v2023"
	AlibabaSpot2026 TraceFormat = "alibaba-spot-v2026"
	Philly          TraceFormat = "philly"
	Helios          TraceFormat = "helios"
	Synthetic       TraceFormat = "synthetic"
)

// Formats are all of them.
var formats = []TraceFormat{AlibabaGPU2023, AlibabaSpot2026, Philly, Helios, Synthetic}

// Trace is a recorded cluster, read where the user has put it, and the policy by which its jobs run here.
type Trace struct {
	Format TraceFormat `json:"format"`
	// Jobs is the file of jobs, and Nodes that of nodes where the format has one and the scenario lists none; relative
	// to the scenario file.
	Jobs  string `json:"jobs"`
	Nodes string `json:"nodes"`
	// Limit is how many jobs are read from the beginning; 0: all. It is the number of jobs of a synthetic trace; 0 is
	// Philly's 117,325.
	Limit int `json:"limit"`

	// Queue is the LocalQueue for the jobs; "": none. With queueOf "group" the name of the job's virtual cluster,
	// organization or user group is added: QUEUE-GROUP must be among the local queues.
	Queue   string `json:"queue"`
	QueueOf string `json:"queueOf"`
	// High and Low are priority classes of kube-scheduler: of the jobs that the trace calls important (HP, latency
	// sensitive), and of the others.
	High string `json:"high"`
	Low  string `json:"low"`
	// WorkloadHigh and WorkloadLow are Kueue's.
	WorkloadHigh string `json:"workloadHigh"`
	WorkloadLow  string `json:"workloadLow"`

	// CheckpointEvery and Restart are the gangs'; see Gang. With CheckpointUpTo each job has an interval of its own between
	// the two, drawn from the seed.
	CheckpointEvery Duration `json:"checkpointEvery"`
	CheckpointUpTo  Duration `json:"checkpointUpTo"`
	Restart         Duration `json:"restart"`
	// Elastic turns gangs of more than one pod into elastic jobs: these can continue with one worker, at a speed in
	// proportion.
	Elastic bool `json:"elastic"`
	// TerminationGracePeriod and Stops are the pods'; nil: 30s, and of gangs all of it.
	TerminationGracePeriod *Duration `json:"terminationGracePeriod"`
	Stops                  *Duration `json:"stops"`
}

func (t *Trace) relativeTo(dir string) {
	for _, path := range []*string{&t.Jobs, &t.Nodes} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}
