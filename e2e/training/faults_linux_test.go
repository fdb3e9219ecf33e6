package training_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// faults are what happens to the jobs of a chaos.
type faults struct {
	*testing.T
	random  *rand.Rand
	victims []*victim
	began   time.Time
	lasting sync.WaitGroup // those that end by themselves

	mu     sync.Mutex
	counts map[string]int
}

// fault is one kind. It is done to a victim, for a while if it is of a kind that lasts.
type fault struct {
	name string
	do   func(ctx context.Context, v *victim, choice uint64, lasts time.Duration) error
}

// errNothing: there is nothing at the moment that it could be done to.
var errNothing = errors.New("nothing there")

func (f *faults) kinds() []fault {
	worker, master := trainingjob.RoleWorker, trainingjob.RoleMaster
	kill := func(role string) func(context.Context, *victim, uint64, time.Duration) error {
		return func(_ context.Context, v *victim, choice uint64, _ time.Duration) error {
			return one(v, role, choice, func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) })
		}
	}
	pause := func(role string) func(context.Context, *victim, uint64, time.Duration) error {
		return func(ctx context.Context, v *victim, choice uint64, lasts time.Duration) error {
			return one(v, role, choice, func(pid int) error { return paused(ctx, pid, lasts) })
		}
	}
	kinds := []fault{
		{"a worker is killed", kill(worker)},
		{"a worker is killed again", kill(worker)},
		{"a worker is paused", pause(worker)},
		{"a worker is paused again", pause(worker)},
		{"a worker's connections are cut", func(_ context.Context, v *victim, choice uint64, _ time.Duration) error {
			return one(v, worker, choice, cutOff)
		}},
		{"nobody can reach the others' services", func(ctx context.Context, _ *victim, _ uint64, lasts time.Duration) error {
			status, err := cluster.Status()
			if err != nil {
				return err
			}
			agent, err := status.Component(controlplane.NodeAgent)
			if err != nil || agent.PID == 0 {
				return errors.Join(err, errNothing)
			}
			return paused(ctx, agent.PID, lasts)
		}},
		{"the master is killed", kill(master)},
		{"the master is paused", pause(master)},
		{"the API server is killed", func(ctx context.Context, _ *victim, _ uint64, _ time.Duration) error {
			return cluster.KillComponent(ctx, controlplane.APIServer)
		}},
	}
	if f.victims[0].disk.limited {
		kinds = append(kinds, fault{"the disk is full", func(ctx context.Context, v *victim, _ uint64, lasts time.Duration) error {
			return v.disk.full(ctx, lasts)
		}})
	}
	return kinds
}

// rage does all of them in an order that chance gives, and again; half-way it lets the jobs stand still for once. All
// that is random is drawn here, so that a seed gives the same faults however long each takes.
func (f *faults) rage(ctx context.Context, duration time.Duration) {
	defer f.lasting.Wait()
	kinds, stood := f.kinds(), false
	for {
		f.random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		for _, kind := range kinds {
			v, choice := f.victims[f.random.IntN(len(f.victims))], f.random.Uint64()
			lasts := time.Second/2 + time.Duration(f.random.Int64N(int64(5*time.Second)))
			next := time.Second/2 + time.Duration(f.random.Int64N(int64(4*time.Second)))
			f.lasting.Go(func() { f.begin(ctx, kind, v, choice, lasts) })
			select {
			case <-ctx.Done():
				return
			case <-time.After(next):
			}
			if time.Since(f.began) > duration {
				return
			}
			if !stood && time.Since(f.began) > duration/2 {
				stood = true
				f.standStill(ctx)
			}
		}
	}
}

func (f *faults) begin(ctx context.Context, kind fault, v *victim, choice uint64, lasts time.Duration) {
	at := time.Since(f.began).Round(100 * time.Millisecond)
	err := kind.do(ctx, v, choice, lasts)
	f.Logf("%7v aggregation %-9s %s, %v (if it lasts) %v", at, v.aggregation, kind.name, lasts.Round(100*time.Millisecond), errText(err))
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.counts[kind.name]++
	}
}

// standStill pauses every worker that there is and comes, until both jobs have said what they wait for.
func (f *faults) standStill(ctx context.Context) {
	f.lasting.Wait()
	ctx, cancel := context.WithTimeout(ctx, silence+patience.Medium)
	defer cancel()
	stopped := map[int]bool{}
	defer func() {
		for pid := range stopped {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may have been ended for its silence
		}
	}()
	for {
		waiting := false
		for _, v := range f.victims {
			waiting = waiting || !v.said.Load()
			for _, pid := range v.processes(trainingjob.RoleWorker) {
				stopped[pid] = syscall.Kill(pid, syscall.SIGSTOP) == nil || stopped[pid]
			}
		}
		if !waiting {
			return
		}
		select {
		case <-ctx.Done():
			f.Errorf("every worker was paused, and not every job has said that it waits: %v", ctx.Err())
			return
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return "NOT DONE: " + err.Error()
}

// one does something to one of a victim's processes.
func one(v *victim, role string, choice uint64, do func(pid int) error) error {
	pids := v.processes(role)
	if len(pids) == 0 {
		return fmt.Errorf("a %s's process: %w", role, errNothing)
	}
	return do(pids[choice%uint64(len(pids))])
}

func paused(ctx context.Context, pid int, lasts time.Duration) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(lasts):
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) { // it may have been killed meanwhile
		return err
	}
	return nil
}

// cutOff ends every TCP connection of a process, as a firewall does that has lost its table.
func cutOff(pid int) error {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("pidfd_open: %w", err)
	}
	defer func() { _ = unix.Close(process) }()
	files, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	if err != nil {
		return err
	}
	cut := 0
	for _, file := range files {
		number, err := strconv.Atoi(file.Name())
		if err != nil {
			return err
		}
		fd, err := unix.PidfdGetfd(process, number, 0)
		if err != nil {
			if errors.Is(err, unix.EBADF) {
				continue // it was closed meanwhile
			}
			return fmt.Errorf("pidfd_getfd: %w", err)
		}
		if peer, err := unix.Getpeername(fd); err == nil {
			if _, network := peer.(*unix.SockaddrInet4); network && unix.Shutdown(fd, unix.SHUT_RDWR) == nil {
				cut++
			}
		}
		_ = unix.Close(fd)
	}
	if cut == 0 {
		return fmt.Errorf("a connection of process %d: %w", pid, errNothing)
	}
	return nil
}

// disk is where a victim's checkpoints and its model go. Where this process may not mount, it cannot be filled.
type disk struct {
	path    string
	limited bool
}

// diskBytes holds some checkpoints of the tests' model.
const diskBytes = 4 << 20

func (f *faults) disk() disk {
	f.Helper()
	path := f.TempDir()
	if err := unix.Mount("none", path, "tmpfs", 0, "size="+strconv.Itoa(diskBytes)); err != nil {
		f.Logf("no disk will be full: a small tmpfs cannot be mounted here: %v", err)
		return disk{path: path}
	}
	f.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			f.Error(err)
		}
	})
	return disk{path, true}
}

// full leaves no byte for a while.
func (d disk) full(ctx context.Context, lasts time.Duration) error {
	filler, err := os.CreateTemp(d.path, "filler-")
	if err != nil {
		return err
	}
	_, err = io.CopyN(filler, zeros{}, diskBytes)
	if !errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%d bytes did not fill a disk of as many: %w", diskBytes, err)
	} else {
		err = nil
		select {
		case <-ctx.Done():
		case <-time.After(lasts):
		}
	}
	return errors.Join(err, filler.Close(), os.Remove(filler.Name()))
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
