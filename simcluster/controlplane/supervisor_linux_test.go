package controlplane

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLayout(t *testing.T) {
	t.Run("sockets lie in the state directory where their paths are short enough", func(t *testing.T) {
		layout, err := NewLayout("/srv/cluster")
		if err != nil || layout.EtcdSocket() != "/srv/cluster/run/etcd.sock" {
			t.Error(layout.EtcdSocket(), err)
		}
	})
	t.Run("sockets of a long state directory lie elsewhere, in the same place each time", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), strings.Repeat("long", 25))
		layout, err := NewLayout(dir)
		if err != nil {
			t.Fatal(err)
		}
		again, err := NewLayout(dir)
		if err != nil || again != layout {
			t.Errorf("%+v, then %+v, %v", layout, again, err)
		}
		if err := layout.Create(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := layout.RemoveSockets(); err != nil {
				t.Error(err)
			}
		}()
		listener, err := net.Listen("unix", layout.EtcdPeerSocket())
		if err != nil {
			t.Fatal(err)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("sockets of a state directory whose name means something in a URL lie elsewhere", func(t *testing.T) {
		for _, dir := range []string{"/a,b", "/a b", "/a?b", "/a%41", "/ä"} {
			layout, err := NewLayout(dir)
			if err != nil || strings.HasPrefix(layout.Sockets, dir) {
				t.Error(layout.Sockets, err)
			}
		}
	})
	t.Run("a temporary directory that is too long itself is not used", func(t *testing.T) {
		t.Setenv("TMPDIR", "/"+strings.Repeat("long", 30))
		layout, err := NewLayout("/" + strings.Repeat("long", 30))
		if err != nil || !strings.HasPrefix(layout.Sockets, "/tmp/") {
			t.Error(layout.Sockets, err)
		}
	})
	t.Run("a directory that holds something else is refused, and left as it is", func(t *testing.T) {
		dir := t.TempDir()
		if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600)); err != nil { //nolint:gosec // As a home directory has it.
			t.Fatal(err)
		}
		layout := Layout{Dir: dir, Sockets: filepath.Join(dir, "run")}
		if err := layout.Create(); err == nil || !strings.Contains(err.Error(), "thesis.tex") || !strings.Contains(err.Error(), "--dir") {
			t.Error(err)
		}
		if _, err := layout.Remove(); err == nil {
			t.Error("it was removed")
		}
		entries, err := os.ReadDir(dir)
		if info, statErr := os.Stat(dir); err != nil || statErr != nil || len(entries) != 1 || info.Mode().Perm() != 0o755 {
			t.Error(entries, info, err, statErr)
		}
	})
	t.Run("what was made is removed, and nothing else", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		layout := Layout{Dir: dir, Sockets: filepath.Join(dir, "run")}
		for range 2 { // the second start finds its own directory
			if err := errors.Join(layout.Create(), saveJSON(layout.configFile(), DefaultConfig())); err != nil {
				t.Fatal(err)
			}
		}
		elsewhere := t.TempDir()
		thesis := filepath.Join(dir, "thesis.tex")
		err := errors.Join(os.WriteFile(thesis, nil, 0o600), os.WriteFile(filepath.Join(elsewhere, "kept"), nil, 0o600),
			os.Remove(layout.Logs()), os.Symlink(elsewhere, layout.Logs()))
		if err != nil {
			t.Fatal(err)
		}
		if left, err := layout.Remove(); err != nil || !slices.Equal(left, []string{"thesis.tex"}) {
			t.Error(left, err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Error(entries, err)
		}
		if _, err := os.Stat(filepath.Join(elsewhere, "kept")); err != nil {
			t.Error(err)
		}
		empty := Layout{Dir: filepath.Join(t.TempDir(), "empty"), Sockets: filepath.Join(t.TempDir(), "run")}
		if err := empty.Create(); err != nil {
			t.Fatal(err)
		}
		if left, err := empty.Remove(); err != nil || len(left) > 0 {
			t.Error(left, err)
		}
		if _, err := os.Stat(empty.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("a sockets' directory that others can enter is refused", func(t *testing.T) {
		layout := Layout{Dir: t.TempDir(), Sockets: filepath.Join(t.TempDir(), "run")}
		if err := os.Mkdir(layout.Sockets, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := layout.Create(); err != nil {
			t.Errorf("our own is refused: %v", err)
		}
		if err := os.Chmod(layout.Sockets, 0o755); err != nil { //nolint:gosec // That is the point.
			t.Fatal(err)
		}
		if err := layout.Create(); err == nil || !strings.Contains(err.Error(), layout.Sockets) {
			t.Error(err)
		}
	})
}

func TestPorts(t *testing.T) {
	t.Run("a port in use is refused with the port and what to do", func(t *testing.T) {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close() //nolint:errcheck // Nothing was sent.
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = choosePorts(t.Context(), Config{Port: listener.Addr().(*net.TCPAddr).Port}, Ports{})
		if err == nil || !strings.Contains(err.Error(), "port "+port) || !strings.Contains(err.Error(), "--port 0") {
			t.Error(err)
		}
	})
	t.Run("clusters that start at the same time never choose the same port, nor one that the kernel gives away", func(t *testing.T) {
		seen := map[int]bool{}
		low, high := ephemeralPorts()
		for range 50 {
			ports, reserved, err := choosePorts(t.Context(), Config{}, Ports{})
			if err != nil {
				t.Fatal(err)
			}
			defer reserved.release()
			for _, port := range []int{ports.APIServer, ports.Scheduler, ports.Kubelet} {
				if seen[port] || port >= low && port <= high {
					t.Errorf("port %d", port)
				}
				seen[port] = true
			}
		}
	})
	t.Run("the ports of the last start are chosen again if they are free, else others", func(t *testing.T) {
		ports, reserved, err := choosePorts(t.Context(), Config{}, Ports{})
		if err != nil {
			t.Fatal(err)
		}
		others, reservedOthers, err := choosePorts(t.Context(), Config{}, ports)
		if err != nil {
			t.Fatal(err)
		}
		reservedOthers.release()
		reserved.release()
		if others.APIServer == ports.APIServer {
			t.Errorf("another cluster's port %d was chosen", ports.APIServer)
		}
		again, reserved, err := choosePorts(t.Context(), Config{}, ports)
		if err != nil || !reflect.DeepEqual(again, ports) {
			t.Fatalf("%+v; want %+v; %v", again, ports, err)
		}
		reserved.release()
	})
}

// A journal records what happens to a process, for tests that wait for it.
type journal struct {
	starts chan int
	deaths chan error
}

// shell returns a process that runs a shell script, and its journal.
func shell(t *testing.T, script string) (*process, journal) {
	j := journal{starts: make(chan int, 100), deaths: make(chan error, 100)}
	return &process{
		name:       "program",
		executable: "/bin/sh",
		arguments:  []string{"-c", script},
		log:        filepath.Join(t.TempDir(), "log"),
		stopGrace:  10 * time.Second,
		started:    func(_ string, pid int) { j.starts <- pid },
		died:       func(_ string, _ time.Duration, end error) { j.deaths <- end },
	}, j
}

func TestProcesses(t *testing.T) {
	t.Run("a process that dies is restarted, and the reason is reported", func(t *testing.T) {
		p, journal := shell(t, "echo hello; exit 3")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.run(ctx) }()
		for range 2 {
			<-journal.starts
			if end := <-journal.deaths; end == nil || end.Error() != "exit status 3" {
				t.Error(end)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if text := tail(p.log, 2); text != "hello\nhello" {
			t.Errorf("log %q", text)
		}
	})
	t.Run("a process that is stopped may say goodbye, and its end is no death", func(t *testing.T) {
		p, journal := shell(t, `trap "echo goodbye; exit 0" TERM; echo hello; while :; do sleep 0.01; done`)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.run(ctx) }()
		<-journal.starts
		eventually.True(t, "the program says hello", func() bool { return tail(p.log, 1) == "hello" })
		cancel()
		if err := <-done; err != nil || len(journal.deaths) > 0 {
			t.Error(err, len(journal.deaths))
		}
		if text := tail(p.log, 1); text != "goodbye" {
			t.Errorf("log ends in %q", text)
		}
	})
	t.Run("a process that does not stop is killed", func(t *testing.T) {
		p, journal := shell(t, `trap "" TERM; echo hello; while :; do sleep 0.01; done`)
		p.stopGrace = 50 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.run(ctx) }()
		pid := <-journal.starts
		eventually.True(t, "the program says hello", func() bool { return tail(p.log, 1) == "hello" })
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := signal(pid, 0); err == nil {
			t.Errorf("process %d is alive", pid)
		}
	})
	t.Run("a program that is not there is an error at once", func(t *testing.T) {
		p, _ := shell(t, "")
		p.executable = "/nowhere"
		if err := p.run(t.Context()); err == nil || !strings.Contains(err.Error(), "/nowhere") {
			t.Error(err)
		}
	})
}

func TestSupervise(t *testing.T) {
	// A program that fails in the place of all components.
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho $1 cannot continue\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	options := func(t *testing.T) Options {
		layout, err := NewLayout(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return Options{Layout: layout, Config: DefaultConfig(), Executable: broken, Progress: io.Discard}
	}
	never := func() { t.Error("a cluster without components was ready") }

	t.Run("a component that cannot run ends the start with its own last words", func(t *testing.T) {
		o := options(t)
		err := Supervise(t.Context(), o, never)
		if err == nil || !strings.Contains(err.Error(), "etcd cannot continue") || !strings.Contains(err.Error(), o.Layout.Log(Etcd)) {
			t.Error(err)
		}
		status, err := ReadStatus(o.Layout)
		if err != nil || status.Phase != PhaseStopped {
			t.Errorf("%+v, %v", status, err)
		}
	})
	t.Run("a start that is asked to stop is no failure", func(t *testing.T) {
		o := options(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Supervise(ctx, o, never); err != nil {
			t.Error(err)
		}
	})
	t.Run("a second supervisor of the same directory is refused", func(t *testing.T) {
		o := options(t)
		o.Executable = filepath.Join(t.TempDir(), "idle")
		if err := os.WriteFile(o.Executable, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Supervise(ctx, o, never) }()
		eventually.True(t, "the first supervisor runs a component", func() bool {
			status, err := ReadStatus(o.Layout)
			return err == nil && len(status.Components) == 1 && status.Components[0].PID != 0
		})
		if err := Supervise(t.Context(), o, never); !errors.Is(err, ErrRunning) {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Run("a directory without a cluster says so", func(t *testing.T) {
		if _, err := ReadStatus(Layout{Dir: t.TempDir()}); !errors.Is(err, ErrNoCluster) {
			t.Error(err)
		}
	})
	t.Run("there is nothing to stop where nothing runs", func(t *testing.T) {
		if stopped, err := Down(t.Context(), Layout{Dir: t.TempDir()}); stopped || err != nil {
			t.Error(stopped, err)
		}
	})
}

func TestReadiness(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus, taints ...string) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		for _, taint := range taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taint})
		}
		return n
	}
	nodes := []corev1.Node{
		node("good", corev1.ConditionTrue),
		node("special", corev1.ConditionTrue, "for-gpus-only"),
		node("new", corev1.ConditionTrue, corev1.TaintNodeNotReady),
		node("silent", corev1.ConditionUnknown),
	}
	t.Run("nodes that take pods are ready, whatever else is there", func(t *testing.T) {
		if err := nodesReady(nodes, []string{"good", "special"}); err != nil {
			t.Error(err)
		}
	})
	t.Run("nodes that are missing, silent or still tainted are named", func(t *testing.T) {
		err := nodesReady(nodes, []string{"good", "new", "silent", "missing"})
		if err == nil || err.Error() != "not ready: new, silent, missing" {
			t.Error(err)
		}
	})
}

func TestALogThatIsTooLongIsEmptiedAndItsComponentGoesOn(t *testing.T) {
	log := filepath.Join(t.TempDir(), "etcd.log")
	component, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer component.Close() //nolint:errcheck // The files are looked at below.
	write := func(text string) {
		t.Helper()
		if _, err := component.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	limit := func() {
		t.Helper()
		if err := limitLog(log, 10); err != nil {
			t.Fatal(err)
		}
	}
	write("short")
	limit()
	write(", and now too long")
	limit()
	write("after")
	limit()
	for path, want := range map[string]string{log: "after", log + ".1": "short, and now too long"} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s holds %q, expected %q: %v", path, text, want, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(log)); err != nil || len(entries) != 2 {
		t.Error(entries, err)
	}
}
