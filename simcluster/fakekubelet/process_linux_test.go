package fakekubelet

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"k8s.io/cri-client/pkg/logs"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// The test binary is its own shim, as the binary that calls Run is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ShimCommand {
		os.Exit(ShimMain(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// runToEnd runs a shell script and returns its end and output.
func runToEnd(t *testing.T, spec processSpec, script string, meanwhile func(*process, *containerLog)) (processExit, string) {
	t.Helper()
	dir := t.TempDir()
	log, err := createContainerLog(filepath.Join(dir, "0.log"))
	if err != nil {
		t.Fatal(err)
	}
	exited := make(chan processExit, 1)
	spec.id = "test-" + filepath.Base(dir) + t.Name()
	spec.argv = []string{"sh", "-c", script}
	spec.env = append(spec.env, "PATH="+hostPATH(), containerVariable+"="+spec.id)
	spec.log = log
	spec.exited = func(e processExit) { exited <- e }
	if spec.dir == "" {
		spec.dir = "/"
	}
	if spec.limit == 0 {
		spec.limit = math.MaxInt64
	}
	p, err := startProcess(spec, newOOMWatch())
	if err != nil {
		t.Fatal(err)
	}
	if meanwhile != nil {
		meanwhile(p, log)
	}
	var end processExit
	select {
	case end = <-exited:
	case <-time.After(patience.Medium):
		p.killGroup()
		t.Fatal("the container did not end")
	}
	var out bytes.Buffer
	if err := readLog(t.Context(), log.path, nil, &logs.LogOptions{}, &out, &out); err != nil {
		t.Fatal(err)
	}
	return end, out.String()
}

func TestProcess(t *testing.T) {
	t.Run("its exit code and both outputs are kept", func(t *testing.T) {
		end, out := runToEnd(t, processSpec{}, "echo out; echo err >&2; exit 7", nil)
		if end.code != 7 || !strings.Contains(out, "out\n") || !strings.Contains(out, "err\n") {
			t.Errorf("end %+v, output %q", end, out)
		}
	})
	t.Run("a signal gives 128 and its number", func(t *testing.T) {
		end, _ := runToEnd(t, processSpec{}, "exec sleep 1000", func(p *process, _ *containerLog) { p.signal(unix.SIGTERM) })
		if end.code != 143 {
			t.Errorf("exit code %d", end.code)
		}
	})
	t.Run("children in sessions of their own end with it", func(t *testing.T) {
		_, out := runToEnd(t, processSpec{}, "setsid sleep 1000 & echo $!; sleep 0.1", nil)
		for _, pid := range processes() {
			line, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(out), "cmdline"))
			if err == nil && strings.Contains(string(line), "sleep") {
				t.Fatalf("process %d of %q is left", pid, out)
			}
		}
	})
	t.Run("the agent and the control plane come before it", func(t *testing.T) {
		level, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, out := runToEnd(t, processSpec{}, "nice", nil)
		if want := min(20-level+containerNiceness, 19); strings.TrimSpace(out) != strconv.Itoa(want) {
			t.Errorf("its niceness is %q, and %d were expected", out, want)
		}
	})
	t.Run("what cannot be executed is an error", func(t *testing.T) {
		_, err := startProcess(processSpec{argv: []string{"no-such-program"}, env: []string{"PATH=/bin"}, dir: "/"}, newOOMWatch())
		if err == nil || !strings.Contains(err.Error(), "executable file not found in $PATH") {
			t.Errorf("got %v", err)
		}
	})
}

func TestMountedView(t *testing.T) {
	for _, method := range []mountMethod{mountByThread, mountByShim} {
		t.Run(method.String(), func(t *testing.T) {
			if err := probe(t.Context(), method, filepath.Join(t.TempDir(), "probe")); err != nil {
				t.Skipf("this machine permits no such mounts: %v", err)
			}
			dir := t.TempDir()
			write := func(name, text string) string {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				return path
			}
			write("config/job.json", "the job")
			one := write("one", "a file")
			write("token/token", "secret")
			scratch := filepath.Join(dir, "root")
			if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(scratch, 0o755); err != nil {
				t.Fatal(err)
			}
			view := &fileView{Scratch: scratch, Dir: "/new/work", Binds: []bind{
				{Target: "/etc/elastic-test", Source: filepath.Join(dir, "config"), Directory: true, ReadOnly: true},
				{Target: "/var/run/secrets/elastic-test", Source: filepath.Join(dir, "token"), Directory: true},
				{Target: "/elastic-test-data", Source: filepath.Join(dir, "data"), Directory: true},
				{Target: "/elastic-test-data/one", Source: one},
			}}
			end, out := runToEnd(t, processSpec{view: view, method: method, dir: view.Dir},
				"pwd; cat /etc/elastic-test/job.json /var/run/secrets/elastic-test/token /elastic-test-data/one; test -e /etc/passwd && ! touch /etc/elastic-test/x 2>/dev/null && echo kept > /elastic-test-data/out", nil)
			if end.code != 0 || !strings.HasPrefix(out, "/new/work\nthe jobsecreta file") {
				t.Errorf("end %+v, output %q", end, out)
			}
			if _, err := os.Stat(filepath.Join(dir, "data/out")); err != nil {
				t.Errorf("what was written to a volume: %v", err)
			}
			for _, path := range []string{"/etc/elastic-test", "/var/run/secrets/elastic-test", "/elastic-test-data", "/new/work"} {
				if _, err := os.Lstat(path); err == nil {
					t.Errorf("%s was left on the host", path)
				}
			}
		})
	}
}
