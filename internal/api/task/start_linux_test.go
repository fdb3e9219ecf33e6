package task

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// pod is start.sh with its files, as a container has them.
type pod struct {
	cmd     *exec.Cmd
	scratch string
	stderr  bytes.Buffer // of run only: a process that is left behind would keep it open
}

func newPod(t *testing.T, files map[string]string, supervisor ...string) *pod {
	t.Helper()
	dir, scratch := t.TempDir(), t.TempDir()
	if _, ok := files[startKey]; !ok {
		files[startKey] = start
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o555); err != nil {
			t.Fatal(err)
		}
	}
	p := &pod{cmd: exec.CommandContext(t.Context(), "/bin/sh", append([]string{filepath.Join(dir, startKey), dir, scratch}, supervisor...)...), scratch: scratch}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "ELASTIC_STOP_SECONDS=20"}
	// A process group of its own, so that nothing outlives a test.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	t.Cleanup(func() {
		if p.cmd.Process != nil {
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		}
	})
	return p
}

func (p *pod) run(t *testing.T) (stdout string, code int) {
	t.Helper()
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.Output()
	return string(out), exitCode(t, err)
}

// signalled starts the pod, asks it to stop when it has printed "ready", and is how it ends. What it leaves behind is
// killed, as it is with a container.
func (p *pod) signalled(t *testing.T) (stdout string, code int) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout = write
	err = p.cmd.Start()
	if closeErr := write.Close(); closeErr != nil {
		t.Fatal(closeErr)
	}
	if err != nil {
		t.Skipf("cannot start it here: %v", err)
	}
	output := make(chan string)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(read); lines.Scan(); {
			fmt.Fprintln(&all, lines.Text())
			if lines.Text() == "ready" {
				_ = p.cmd.Process.Signal(syscall.SIGTERM) // Wait says how it ended
			}
		}
		_ = read.Close()
		output <- all.String()
	}()
	err = p.cmd.Wait()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // there may be nothing left
	return <-output, exitCode(t, err)
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func TestStart(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		stdout string
		stderr string
		code   int
	}{
		"run's end is the pod's":                 {map[string]string{"run.sh": "echo hi; exit 7"}, "hi\n", "", 7},
		"run that succeeds":                      {map[string]string{"run.sh": "echo hi"}, "hi\n", "", 0},
		"setup goes first":                       {map[string]string{"setup.sh": "echo a", "run.sh": "echo b"}, "a\nb\n", "", 0},
		"a setup that fails is said, and no run": {map[string]string{"setup.sh": "echo a; exit 3", "run.sh": "echo b"}, "a\n", "elastic_task: setup ended with exit code 3\n", 3},
		"what setup makes is there for run": {
			map[string]string{"setup.sh": "echo x > made", "run.sh": "cat made"}, "x\n", "", 0,
		},
		"the workdir's files are where the scripts start, and may be changed": {
			map[string]string{"workdir/src/a.txt": "one\n", "run.sh": "echo two >> src/a.txt && cat src/a.txt"}, "one\ntwo\n", "", 0,
		},
		"a program of the workdir can be executed": {
			map[string]string{"workdir/hello": "#!/bin/sh\necho hello\n", "run.sh": "./hello"}, "hello\n", "", 0,
		},
		"bash is used where there is one": {map[string]string{"run.sh": "a=(x y); echo ${a[1]}"}, "y\n", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, c.files)
			stdout, code := p.run(t)
			if stdout != c.stdout || p.stderr.String() != c.stderr || code != c.code {
				t.Errorf("code %d, stdout %q, stderr %q", code, stdout, p.stderr.String())
			}
		})
	}
	t.Run("a supervisor is put before run, not before setup", func(t *testing.T) {
		p := newPod(t, map[string]string{"setup.sh": "echo setup", "run.sh": "exit 9"}, "/bin/sh", "-c", `echo "supervised ${2##*/}"; "$@"; exit $?`, "supervisor")
		stdout, code := p.run(t)
		if stdout != "setup\nsupervised run.sh\n" || code != 9 {
			t.Errorf("code %d, stdout %q, stderr %q", code, stdout, p.stderr.String())
		}
	})
}

func TestStop(t *testing.T) {
	for name, script := range map[string]string{
		"a run that minds no signal":              "echo ready\nsleep 1000\n",
		"a run that ends in its own way":          "trap 'echo saved; exit 5' TERM\necho ready\nsleep 1000 & wait\n",
		"a run whose program is its last command": "echo ready\nexec sleep 1000\n",
	} {
		t.Run(name+" that is asked to stop ends with 143, which no Job counts", func(t *testing.T) {
			stdout, code := newPod(t, map[string]string{"run.sh": script}).signalled(t)
			if code != ExitStopped {
				t.Errorf("code %d", code)
			}
			if strings.Contains(script, "saved") && !strings.Contains(stdout, "saved") {
				t.Errorf("the script did not get the signal: %q", stdout)
			}
		})
	}
	t.Run("a run that will not stop is killed before the kubelet does it", func(t *testing.T) {
		p := newPod(t, map[string]string{"run.sh": "trap '' TERM\necho ready\nwhile :; do sleep 0.01; done\n"})
		p.cmd.Env = append(p.cmd.Env, "ELASTIC_STOP_SECONDS=0")
		if _, code := p.signalled(t); code != ExitStopped {
			t.Errorf("code %d", code)
		}
	})
	t.Run("setup is stopped too, and nothing runs after it", func(t *testing.T) {
		stdout, code := newPod(t, map[string]string{"setup.sh": "trap 'exit 0' TERM\necho ready\nsleep 1000 & wait\n", "run.sh": "echo run"}).signalled(t)
		if code != ExitStopped || strings.Contains(stdout, "run") {
			t.Errorf("code %d, %q", code, stdout)
		}
	})
	t.Run("as process 1 of a container it signals every process of the container, and waits for each", func(t *testing.T) {
		// The kernel would not even deliver the signal to a process 1 without a handler.
		p := newPod(t, map[string]string{"run.sh": "(trap 'sleep 0.3; echo child signalled; exit 0' TERM; echo ready; sleep 1000 & wait) &\nsleep 1000\n"})
		p.asProcess1()
		home := t.TempDir()
		p.cmd.Env = append(p.cmd.Env, "HOME="+home)
		stdout, code := p.signalled(t)
		if code == noProc {
			t.Skip("no /proc can be mounted here")
		}
		if code != ExitStopped || !strings.Contains(stdout, "child signalled") {
			t.Errorf("code %d, %q, %s", code, stdout, p.stderr.String())
		}
		if to, err := os.Readlink(filepath.Join(home, "sky_workdir")); err != nil || to != filepath.Join(p.scratch, workdirDir) {
			t.Errorf("~/sky_workdir: %q, %v", to, err)
		}
	})
	t.Run("a signal that comes before the shell knows the number of what it started reaches it all the same", func(t *testing.T) {
		const started = "\tchild=$!\n"
		early := strings.Replace(start, started, "\twhile [ ! -e \"$scratch/ready\" ]; do :; done; kill -TERM $$\n"+started, 1)
		if early == start {
			t.Fatalf("start.sh has no line %q", started)
		}
		for name, asProcess1 := range map[string]func(*pod){"in a container": (*pod).asProcess1, "on a simulated node": func(*pod) {}} {
			t.Run(name, func(t *testing.T) {
				p := newPod(t, map[string]string{startKey: early, "run.sh": "trap 'echo saved; exit 5' TERM\necho >../ready\nsleep 1000 & wait\n"})
				asProcess1(p)
				stdout, code := p.signalled(t) // by itself
				if code == noProc {
					t.Skip("no /proc can be mounted here")
				}
				if code != ExitStopped || stdout != "saved\n" {
					t.Errorf("code %d, stdout %q", code, stdout)
				}
			})
		}
	})
	t.Run("as process 1 it kills what will not stop", func(t *testing.T) {
		p := newPod(t, map[string]string{"run.sh": "(trap '' TERM; echo ready; while :; do sleep 0.01; done) &\nsleep 1000\n"})
		p.asProcess1()
		p.cmd.Env = append(p.cmd.Env, "ELASTIC_STOP_SECONDS=0")
		switch _, code := p.signalled(t); code {
		case noProc:
			t.Skip("no /proc can be mounted here")
		case ExitStopped:
		default:
			t.Errorf("code %d", code)
		}
	})
}

// noProc is what asProcess1 ends with where it cannot be.
const noProc = 99

// asProcess1 starts the pod's shell as a container's first process.
func (p *pod) asProcess1() {
	p.cmd.Args = append([]string{"/bin/sh", "-c", fmt.Sprintf(`mount -t proc proc /proc || exit %d; exec "$0" "$@"`, noProc)}, p.cmd.Args...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}
