package local_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	rng "math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/local"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/supervise"
)

// site simulates the environment of a master's process in a cluster: the supervisor that restarts it, and the
// workers, which survive it and which the next master finds. In local.Train they would die with it.
type site struct {
	launcher *local.Launcher
	listener net.Listener // where masters ask for workers
	serving  sync.WaitGroup

	mu      sync.Mutex
	living  map[int]coordinator.PodChanged
	last    int           // the highest number that a worker ever had
	master  *json.Encoder // to the running master
	masters int           // started so far
}

// masterJob is what a master's process is started with.
type masterJob struct {
	Job         json.RawMessage
	Threads     int
	Kernel      string
	Min, Max    int
	Output      string
	Listen      string // its address for workers
	Credentials string
	Site        string // where it asks for workers
}

// found is the first message of a site to a master.
type found struct {
	Existing   []coordinator.PodChanged
	LastWorker int
}

// order is a request of a master to its site.
type order struct {
	Create  bool // false: end it
	Worker  int
	Minimum bool
}

// ended is the message of a master's process that it ends on purpose.
type ended struct {
	Code   int
	Reason string
	Model  *master.ModelInfo
	Files  []string
}

// The files of a run in its output directory.
const (
	masterFile = "master.json"
	endedFile  = "ended.json"
	outputFile = "output.txt"
)

// masterBegins is the line before each master's output: its notices, and its log with a line for each step.
const masterBegins = "MasterBegins"

func newSite(t *testing.T, workerArgs []string) *site {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &site{launcher: local.NewLauncher(workerArgs, &testLog{t}), listener: listener, living: map[int]coordinator.PodChanged{}, last: -1}
}

// start begins to serve masters. The returned function ends that, and the workers.
func (s *site) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.serving.Go(func() {
		for {
			select {
			case e := <-s.launcher.Events():
				s.seen(e.(coordinator.PodChanged))
			case <-ctx.Done():
				return
			}
		}
	})
	s.serving.Go(func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.serve(ctx, conn)
		}
	})
	return func() {
		_ = s.listener.Close()
		cancel()
		s.serving.Wait()
		s.launcher.Close()
	}
}

func (s *site) seen(e coordinator.PodChanged) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.living[e.Worker] = e; e.State == coordinator.PodEnded {
		delete(s.living, e.Worker)
	}
	if s.master != nil {
		_ = s.master.Encode(e) // the next master gets all events
	}
}

// serve carries out the orders of one master until it ends.
func (s *site) serve(ctx context.Context, conn net.Conn) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	s.mu.Lock()
	first := found{LastWorker: s.last}
	for _, e := range s.living {
		first.Existing = append(first.Existing, e)
	}
	s.master = json.NewEncoder(conn)
	err := s.master.Encode(first)
	s.masters++
	s.mu.Unlock()
	orders := json.NewDecoder(conn)
	for err == nil {
		var o order
		if err = orders.Decode(&o); err != nil {
			break
		}
		if !o.Create {
			s.launcher.Delete(o.Worker)
			continue
		}
		s.mu.Lock()
		s.last = max(s.last, o.Worker)
		s.mu.Unlock()
		s.launcher.Create(o.Worker, o.Minimum)
	}
	s.mu.Lock()
	s.master = nil
	s.mu.Unlock()
}

// seenMasters is how many masters have come.
func (s *site) seenMasters() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.masters
}

// trainAtSite runs a job whose master and workers are killed, and whose master is signalled to stop and started again
// later.
func trainAtSite(t *testing.T, j *job.Job, text []byte, r run, output string) master.Result {
	t.Helper()
	// Long enough for all faults. A kill waits 50 ms, and much of the time no worker computes.
	pace := max(15*time.Millisecond, time.Duration(r.kills+r.masterKills)*3*time.Millisecond, time.Duration(r.stops)*40*time.Millisecond)
	made, err := trainingjob.NewCredentials(rand.Reader, time.Now(), trainingjob.MasterName(j.Spec.Name))
	if err != nil {
		t.Fatal(err)
	}
	credentials := filepath.Join(output, "credentials")
	if err := wire.Credentials(made).Save(credentials); err != nil {
		t.Fatal(err)
	}
	// An address of its own, so that no other connection takes the port while there is no master.
	address := freeAddress(t, fmt.Sprintf("127.%d.%d.%d:0", 1+rng.IntN(254), rng.IntN(255), 1+rng.IntN(254)))
	config := masterJob{Job: text, Threads: r.threads, Kernel: r.kernel, Min: 1, Max: r.workers, Output: output, Listen: address, Credentials: credentials}
	workerArgs := []string{
		"worker", "--master", address, "--credentials", credentials, "--kernel", r.kernel, "--threads", strconv.Itoa(r.threads),
		"--pace", pace.String(), "--log-level", "error",
	}
	done := disturbed{}
	for life := 0; ; life++ {
		s := newSite(t, workerArgs)
		config.Site = s.listener.Addr().String()
		result := s.life(t, config, r.share(life), life < r.stops, &done)
		if result.Code == coordinator.ExitInterrupted && life < r.stops {
			continue
		}
		if done.kills < r.kills || done.masterKills < r.masterKills || life < r.stops {
			t.Errorf("%v: it ended after %+v, and %d stops", r, done, life)
		}
		text, err := os.ReadFile(filepath.Join(output, outputFile))
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		t.Logf("%d workers and %d masters were killed, %d masters stopped; masters took the state back from workers %d times, and from a checkpoint %d times",
			done.kills, done.masterKills, life, strings.Count(string(text), "\nStateRestored"), strings.Count(string(text), "\nResumed"))
		return result
	}
}

// share is the number of a run's kills between two stops.
func (r run) share(life int) disturbed {
	part := func(n int) int { return n*(life+1)/(r.stops+1) - n*life/(r.stops+1) }
	return disturbed{kills: part(r.kills), masterKills: part(r.masterKills)}
}

// disturbed counts the faults of a run.
type disturbed struct{ kills, masterKills int }

// life is what happens between the start of a job's supervisor and its end.
func (s *site) life(t *testing.T, config masterJob, share disturbed, stops bool, done *disturbed) master.Result {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(config.Output, masterFile)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	endedPath := filepath.Join(config.Output, endedFile)
	if err := os.Remove(endedPath); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience.Long)
	defer cancel()
	defer s.start(ctx)()
	running, stop := context.WithCancel(ctx)
	var chaos sync.WaitGroup
	chaos.Go(func() {
		s.disturb(running, config.Output, share, done)
		if stops && atWork(running, config.Output) {
			stop()
		}
	})
	code, err := supervise.Run(running, supervise.Config{
		Args: []string{"master", path}, Stdout: &testLog{t}, Stderr: &testLog{t},
		Final: []int{coordinator.ExitDone, coordinator.ExitInterrupted, coordinator.ExitJobFailed}, Log: slog.New(slog.DiscardHandler),
	})
	stop()
	chaos.Wait()
	if err != nil || ctx.Err() != nil {
		t.Fatalf("the supervisor: exit code %d, %v, %v", code, err, ctx.Err())
	}
	var e ended
	if text, err = os.ReadFile(endedPath); err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil && code == coordinator.ExitInterrupted {
		return master.Result{Code: code} // it was signalled to stop before it began
	}
	if err != nil || e.Code != code {
		t.Fatalf("the master's exit code is %d, and it has said %+v: %v", code, e, err)
	}
	if e.Model != nil {
		e.Model.Files = e.Files
	}
	return master.Result{Code: e.Code, Reason: e.Reason, Model: e.Model}
}

// disturb kills workers and, spread evenly among them, masters.
func (s *site) disturb(ctx context.Context, output string, share disturbed, done *disturbed) {
	all := share.kills + share.masterKills
	for i := range all {
		ofMaster := (i+1)*share.masterKills/all > i*share.masterKills/all
		if ofMaster && !atWork(ctx, output) { // otherwise it would rarely complete a step
			return
		}
		before := s.seenMasters()
		for killed := false; !killed; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(20+rng.IntN(60)) * time.Millisecond):
			}
			role := "worker"
			if ofMaster {
				role = "master"
			}
			pids := childrenOf(role, output)
			killed = len(pids) > 0 && syscall.Kill(pids[rng.IntN(len(pids))], syscall.SIGKILL) == nil
		}
		if !ofMaster {
			done.kills++
			continue
		}
		done.masterKills++
		// Most workers should survive for the next master.
		for s.seenMasters() == before {
			select {
			case <-ctx.Done():
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// atWork waits until the running master has done a step, and a moment longer.
func atWork(ctx context.Context, output string) bool {
	for {
		text, _ := os.ReadFile(filepath.Join(output, outputFile)) // the first master makes it
		if begins := strings.LastIndex(string(text), masterBegins); begins >= 0 && strings.Contains(string(text[begins:]), " step=") {
			break
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Duration(rng.IntN(200)) * time.Millisecond):
		return true
	}
}

func freeAddress(t *testing.T, at string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at)
	if err != nil {
		// Not every system has all of 127.0.0.0/8.
		if listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

// masterProcess is the `master` command at a site.
func masterProcess(path string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	e, err := runMaster(ctx, path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "master:", err)
		return 1
	}
	return e.Code
}

func runMaster(ctx context.Context, path string) (e ended, err error) {
	var c masterJob
	text, err := os.ReadFile(path)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return e, err
	}
	spec, err := trainingjob.DecodeJob(c.Job)
	if err != nil {
		return e, err
	}
	o := options(c.Threads, c.Kernel)
	name, model, err := job.ReadModel(spec, o)
	if err != nil {
		return e, err
	}
	j, err := job.Load(ctx, spec, name, model, o)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	files := store.Directory{Root: c.Output, KeepCheckpoints: spec.Keep()}
	fence, err := local.NewFence(files.Dir(j.Identity.Job))
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, fence.Close()) }()
	credentials, err := wire.LoadCredentials(c.Credentials)
	if err != nil {
		return e, err
	}
	record, err := os.OpenFile(filepath.Join(c.Output, outputFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, record.Close()) }()
	if _, err := fmt.Fprintln(record, masterBegins); err != nil {
		return e, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return e, err
	}
	launcher, first, err := dialSite(ctx, c.Site)
	if err != nil {
		return e, errors.Join(err, listener.Close())
	}
	defer launcher.close()
	result, err := master.Run(ctx, master.Config{
		Job: j, JobJSON: c.Job, ModelName: name, Min: c.Min, Max: c.Max, LastWorker: first.LastWorker, Existing: first.Existing,
		Listener: listener, Credentials: credentials, Launcher: launcher, Fence: fence, Reporter: noticeWriter{to: record}, Store: files,
		Log:     slog.New(slog.NewTextHandler(record, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Silence: patience.Medium, // no worker is paused
	})
	if err != nil {
		return e, err
	}
	e = ended{Code: result.Code, Reason: result.Reason, Model: result.Model}
	if e.Model != nil {
		e.Files = e.Model.Files
	}
	if text, err = json.Marshal(e); err != nil {
		return e, err
	}
	return e, os.WriteFile(filepath.Join(c.Output, endedFile), text, 0o600)
}

// noticeWriter is a reporter that writes notices to a file.
type noticeWriter struct {
	discard
	to io.Writer
}

func (w noticeWriter) Notice(n coordinator.Notice) { _, _ = fmt.Fprintln(w.to, n.Reason, n.Message) }

// siteLauncher is a master.Launcher that asks its site.
type siteLauncher struct {
	conn    net.Conn
	events  chan coordinator.Event
	mu      sync.Mutex
	orders  *json.Encoder
	closing chan struct{}
	reading sync.WaitGroup
}

func dialSite(ctx context.Context, address string) (*siteLauncher, found, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, found{}, err
	}
	l := &siteLauncher{conn: conn, events: make(chan coordinator.Event, 256), orders: json.NewEncoder(conn), closing: make(chan struct{})}
	decoder := json.NewDecoder(conn)
	var first found
	if err := decoder.Decode(&first); err != nil {
		return nil, found{}, errors.Join(err, conn.Close())
	}
	slices.SortFunc(first.Existing, func(a, b coordinator.PodChanged) int { return cmp.Compare(a.Worker, b.Worker) })
	l.reading.Go(func() {
		for {
			var e coordinator.PodChanged
			if decoder.Decode(&e) != nil {
				return
			}
			select {
			case l.events <- e:
			case <-l.closing:
				return
			}
		}
	})
	return l, first, nil
}

func (l *siteLauncher) Create(worker int, minimum bool)  { l.send(order{true, worker, minimum}) }
func (l *siteLauncher) Delete(worker int)                { l.send(order{Worker: worker}) }
func (l *siteLauncher) Events() <-chan coordinator.Event { return l.events }

func (l *siteLauncher) send(o order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.orders.Encode(o) // a site that is gone ends this process soon
}

func (l *siteLauncher) close() {
	close(l.closing)
	_ = l.conn.Close()
	l.reading.Wait()
}
