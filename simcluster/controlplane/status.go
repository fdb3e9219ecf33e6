package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// The phases of a cluster.
const (
	// PhaseStarting lasts until everything is available that Ready guarantees.
	PhaseStarting = "Starting"
	// PhaseReady: the API server answers, pods are scheduled and nodes run them. A component that died and is being
	// started again does not end this phase.
	PhaseReady = "Ready"
	// PhaseStopping is the ordered stop.
	PhaseStopping = "Stopping"
	// PhaseStopped: no process is left; the state is on disk.
	PhaseStopped = "Stopped"
)

// A Status is what the supervisor says about its cluster.
type Status struct {
	Phase string `json:"phase"`
	// SupervisorPID is 0 when no supervisor runs.
	SupervisorPID int               `json:"supervisorPID,omitempty"`
	Started       time.Time         `json:"started"`
	Ports         Ports             `json:"ports"`
	Components    []ComponentStatus `json:"components,omitempty"`
}

// A ComponentStatus is what the supervisor says about one component.
type ComponentStatus struct {
	Name string `json:"name"`
	// PID is 0 when the component does not run at the moment.
	PID     int       `json:"pid,omitempty"`
	Started time.Time `json:"started"`
	// Restarts counts how often the component was started again after it had died.
	Restarts int `json:"restarts"`
}

// Component returns the status of the named component.
func (s Status) Component(name string) (ComponentStatus, error) {
	var names []string
	for _, component := range s.Components {
		if component.Name == name {
			return component, nil
		}
		names = append(names, component.Name)
	}
	return ComponentStatus{}, fmt.Errorf("there is no component %q; there are %q", name, names)
}

// ErrNoCluster is returned for a directory in which no cluster was ever started.
var ErrNoCluster = errors.New("no cluster was started here; `simcluster up` starts one")

// ReadStatus returns the state of the cluster in layout's directory. It is true to the moment: a status that a killed
// supervisor left behind is reported as PhaseStopped.
func ReadStatus(layout Layout) (Status, error) {
	content, err := os.ReadFile(layout.statusFile())
	if errors.Is(err, fs.ErrNotExist) {
		return Status{}, fmt.Errorf("%s: %w", layout.Dir, ErrNoCluster)
	}
	if err != nil {
		return Status{}, fmt.Errorf("reading the cluster's status: %w", err)
	}
	var status Status
	if err := json.Unmarshal(content, &status); err != nil {
		return Status{}, fmt.Errorf("the cluster's status %q is damaged: %w", layout.statusFile(), err)
	}
	supervised, err := Supervised(layout)
	if err != nil {
		return Status{}, err
	}
	if !supervised {
		status.Phase, status.SupervisorPID = PhaseStopped, 0
		for i := range status.Components {
			status.Components[i].PID = 0
		}
	}
	return status, nil
}

// Supervised reports whether a supervisor runs for the cluster in layout's directory.
func Supervised(layout Layout) (bool, error) {
	if _, err := os.Stat(layout.lockFile()); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock := flock.New(layout.lockFile(), flock.SetFlag(os.O_RDWR))
	// A shared lock: two that merely ask do not find each other and take that for a supervisor.
	free, err := lock.TryRLock()
	if err != nil {
		return false, fmt.Errorf("asking whether a supervisor runs: %w", err)
	}
	return !free, lock.Close()
}
