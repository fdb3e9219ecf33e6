package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/group"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// memberOf is one with so many processes, without the processes, and their instructions.
func memberOf(worker, processes int) (*member, []*bytes.Buffer) {
	m := &member{worker: worker, held: group.NoState, checkpoint: group.NoState}
	var instructions []*bytes.Buffer
	for range processes {
		instructions = append(instructions, &bytes.Buffer{})
		m.processes = append(m.processes, &process{to: instructions[len(instructions)-1], held: group.NoState, checkpoint: group.NoState})
	}
	return m, instructions
}

// lastOf is the last instruction.
func lastOf(t *testing.T, instructions *bytes.Buffer) (i instruction) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(instructions.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &i); err != nil {
		t.Fatal(err)
	}
	return i
}

func begun(t *testing.T, m *member, b *wirepb.GroupBegin) {
	t.Helper()
	if err := m.begin(b); err != nil {
		t.Fatal(err)
	}
}

func idled(t *testing.T, m *member, r report) bool {
	t.Helper()
	all, err := m.isIdle(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAWorkerIsReadyWhenAllItsProcessesAre(t *testing.T) {
	m, _ := memberOf(4, 3)
	for _, p := range []int{2, 0, 1} {
		ready := m.isReady(report{process: p, Store: fmt.Sprintf("host:%d", p), Held: group.NoState, Checkpoint: int64(p)})
		if ready != (p == 1) || (m.address != "") != ready {
			t.Errorf("after process %d: ready %v at %q", p, ready, m.address)
		}
	}
	if m.address != "host:0" || m.checkpoint != 0 {
		t.Errorf("it is at %s with checkpoint %d", m.address, m.checkpoint)
	}
}

func TestTheProcessesOfAWorkerAreNeighbouringRanks(t *testing.T) {
	m, instructions := memberOf(4, 2)
	begun(t, m, &wirepb.GroupBegin{Generation: 7, Rank: 2, World: 3, Source: 1, Store: "host:1", Step: 5, Broadcast: true, Load: true})
	for local := range instructions {
		i := lastOf(t, instructions[local])
		if i.Kind != "begin" || i.Rank != 4+local || i.World != 6 || i.Source != 2 || i.Generation != 7 || i.Step != 5 || !i.Broadcast || !i.Load {
			t.Errorf("process %d received %+v", local, i)
		}
	}
}

func TestAStepIsReducedWhenItIsForAllProcesses(t *testing.T) {
	m, _ := memberOf(4, 2)
	begun(t, m, &wirepb.GroupBegin{Generation: 7, World: 1, Step: 5})
	for _, early := range []report{{Generation: 6, Step: 5, process: 0}, {Generation: 7, Step: 4, process: 0}, {Generation: 7, Step: 5, process: 1, LossSum: 2, Records: 3}} {
		if _, _, all := m.hasReduced(early); all {
			t.Errorf("reduced with %+v", early)
		}
	}
	if loss, records, all := m.hasReduced(report{Generation: 7, Step: 5, process: 0, LossSum: 1, Records: 4}); !all || loss != 3 || records != 7 {
		t.Errorf("reduced %v: loss %v of %d records", all, loss, records)
	}
	m.step++
	if _, _, all := m.hasReduced(report{Generation: 7, Step: 6, process: 0}); all {
		t.Error("a step was reduced with a report of the one before")
	}
}

func TestTheFirstProcessThatLeavesAGenerationEndsItForTheOthers(t *testing.T) {
	m, instructions := memberOf(4, 3)
	begun(t, m, &wirepb.GroupBegin{Generation: 7, World: 2, Step: 5})
	m.hold(5, 6)
	if idled(t, m, report{process: 1, Generation: 6, Held: 5, Of: 6}) || lastOf(t, instructions[0]).Kind != "begin" {
		t.Error("a report of an earlier generation counts")
	}
	if idled(t, m, report{process: 1, Generation: 7, Held: 5, Of: 6, Reason: "connection reset"}) {
		t.Error("idle with one process")
	}
	for local := range instructions {
		if i := lastOf(t, instructions[local]); i.Kind != "abort" || i.Generation != 7 {
			t.Errorf("process %d received %+v", local, i)
		}
	}
	if idled(t, m, report{process: 0, Generation: 7, Held: 5, Of: 6, Reason: "the others are gone"}) || !idled(t, m, report{process: 2, Generation: 7, Held: 5, Of: 6}) {
		t.Error("not idle when the last process is")
	}
	if m.generation != 0 || m.held != 5 || m.of != 6 || m.reason != "connection reset" {
		t.Errorf("it waits in generation %d with step %d of %d: %s", m.generation, m.held, m.of, m.reason)
	}
}

// TestProcessesWhoseStatesDifferReceiveThatOfTheFirst: a generation has ended while the first process sent its state.
func TestProcessesWhoseStatesDifferReceiveThatOfTheFirst(t *testing.T) {
	var apart []int64
	for worker := range 2 {
		m, instructions := memberOf(worker, 2)
		begun(t, m, &wirepb.GroupBegin{Generation: 7, World: 2, Step: 5, Broadcast: true})
		idled(t, m, report{process: 0, Generation: 7, Held: 5, Of: 6})
		if !idled(t, m, report{process: 1, Generation: 7, Held: group.NoState, Of: 6}) || m.held != 5 {
			t.Fatalf("it holds %d", m.held)
		}
		if m.of >= 0 {
			t.Errorf("the master takes it for the state of generation %d", m.of)
		}
		apart = append(apart, m.of)
		begun(t, m, &wirepb.GroupBegin{Generation: 8, World: 1, Step: 5})
		if i := lastOf(t, instructions[1]); !i.Broadcast {
			t.Error("a worker that is alone does not bring its processes to one state")
		}
		m.hold(6, 8)
		begun(t, m, &wirepb.GroupBegin{Generation: 9, World: 1, Step: 6})
		if i := lastOf(t, instructions[1]); i.Broadcast {
			t.Error("a state that all processes hold is sent")
		}
	}
	if slices.Equal(apart[:1], apart[1:]) {
		t.Error("the master takes the states of two workers for the same")
	}
}

func TestTheFirstGenerationOfAWorkerBringsItsProcessesToOneState(t *testing.T) {
	for processes, want := range map[int]bool{1: false, 2: true} {
		m, instructions := memberOf(4, processes)
		begun(t, m, &wirepb.GroupBegin{Generation: 1, World: 1})
		if i := lastOf(t, instructions[0]); i.Broadcast != want {
			t.Errorf("%d processes receive %+v", processes, i)
		}
	}
}
