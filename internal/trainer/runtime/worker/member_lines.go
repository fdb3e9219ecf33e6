package worker

// instruction is a line to the script. Kind says which of the fields there are.
type instruction struct {
	Kind string `json:"kind"`

	// Of "job", the first.
	Seed          uint64 `json:"seed,omitempty"`
	Steps         int64  `json:"steps,omitempty"`
	StepsPerEpoch int64  `json:"steps_per_epoch,omitempty"`
	Records       int64  `json:"records,omitempty"` // of an epoch
	MinibatchSize int    `json:"minibatch_size,omitempty"`
	GradsToWait   int    `json:"grads_to_wait,omitempty"`
	PerTask       int    `json:"records_per_task,omitempty"`
	LearningRate  any    `json:"learning_rate,omitempty"`
	Checkpoints   string `json:"checkpoints,omitempty"` // their directory
	Keep          int    `json:"keep,omitempty"`
	Worker        int    `json:"worker"`
	Host          string `json:"host,omitempty"` // the address at which other workers reach this one

	// Of "begin", and the generation of all that follow it.
	Generation int64  `json:"generation,omitempty"`
	Rank       int    `json:"rank"`
	World      int    `json:"world,omitempty"`
	Store      string `json:"store,omitempty"`
	Source     int    `json:"source"`
	Load       bool   `json:"load,omitempty"`
	Broadcast  bool   `json:"broadcast,omitempty"`

	// Of "begin", "work", "commit" and "save".
	Step int64 `json:"step"`

	// Of "work": this rank's share of the step, and of the one after if no worker comes or goes, to read it ahead.
	Epoch       int         `json:"epoch"`
	Minibatches []minibatch `json:"minibatches,omitempty"`
	Following   []minibatch `json:"following,omitempty"`
	Virtual     int         `json:"virtual_workers,omitempty"` // of the whole step
	StepRecords int         `json:"step_records,omitempty"`

	// Of "commit" and "finish".
	Last  bool `json:"last,omitempty"`
	Save  bool `json:"save,omitempty"`
	Saver bool `json:"saver,omitempty"`
}

// minibatch is what one virtual worker computes.
type minibatch struct {
	VirtualWorker int     `json:"virtual_worker"`
	Records       []int64 `json:"records"`
}

// report is a line of the script.
type report struct {
	Kind       string  `json:"kind"` // ready, idle, reduced, saved, diverged, alive
	Store      string  `json:"store"`
	Held       int64   `json:"held"`
	Of         int64   `json:"of"`
	Checkpoint int64   `json:"checkpoint"`
	Generation int64   `json:"generation"`
	Step       int64   `json:"step"`
	LossSum    float64 `json:"loss_sum"`
	Records    int64   `json:"records"`
	Reason     string  `json:"reason"`

	process int // whose line it is
}

// processEnded is the kind of the last report of a process, which is no line of it: it has ended, or its connection has.
const processEnded = "ended"
