package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/child"
	"github.com/elastic-training/terraform-provider-elastic/python"
)

// Times of a script's life.
const (
	// connectTimeout is how long it may take until it connects: to import a framework from a slow disk.
	connectTimeout = 5 * time.Minute
	// endTimeout is how long it may take to end when it is asked nothing more. It holds nothing that could be lost.
	endTimeout = 2 * time.Second
)

// maxSocketPath is what fits into the shortest sockaddr_un of the systems that this is built for, with a zero behind it.
const maxSocketPath = 103

// tailLines is how many of a script's last lines are told when it has died: a traceback's worth.
const tailLines = 12

// process is a running script and the connection to it. Its directory holds the socket, the script and the Python
// module, and is readable by this user alone.
type process struct {
	cmd    *exec.Cmd
	name   string
	dir    *workdir
	conn   *net.UnixConn
	output *lines
	ended  chan struct{} // closed when it has
	err    error         // how; set before ended is closed
}

// startProcess runs a script and waits until it has connected.
func startProcess(ctx context.Context, o Options) (_ *process, err error) {
	p := &process{name: o.Name, output: &lines{to: o.Output, prefix: o.Name + ": "}, ended: make(chan struct{})}
	if p.dir, err = newWorkdir(); err != nil {
		return nil, fmt.Errorf("make a directory for the socket to %s: %w", o.Name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	script := filepath.Join(p.dir.path, "script", filepath.Base(o.Name))
	if err := os.Mkdir(filepath.Dir(script), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(script, o.Script, 0o600); err != nil {
		return nil, err
	}
	modules := filepath.Join(p.dir.path, "python")
	if err := python.Install(modules); err != nil {
		return nil, err
	}
	socket := filepath.Join(p.dir.path, "socket")
	if len(socket) > maxSocketPath {
		return nil, fmt.Errorf("the path of the socket to %s, %s, has %d characters, and a socket's may have %d; set TMPDIR to a shorter one", o.Name, socket, len(socket), maxSocketPath)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", o.Name, err)
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	if err := p.start(append(slices.Clone(o.Command), script), o.environment(socket, modules)); err != nil {
		return nil, err
	}
	return p, p.accept(ctx, listener)
}

// start runs the command. The thread that starts a process must live as long as that, or the kernel takes the
// thread's end for the parent's.
func (p *process) start(command, env []string) error {
	p.cmd = exec.Command(command[0], command[1:]...) //nolint:noctx // it ends when it is asked nothing more, or is killed
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, p.output, p.output
	p.cmd.SysProcAttr = child.Attributes()
	p.cmd.WaitDelay = endTimeout // its own children may hold its output open
	started := make(chan error)
	go func() {
		defer close(p.ended)
		child.LockThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			p.output.flush()
		}
	}()
	if err := <-started; err != nil {
		p.cmd = nil
		return fmt.Errorf("start the job's command %q: %w", strings.Join(command, " "), err)
	}
	return nil
}

// accept waits for the script's connection, or its end.
func (p *process) accept(ctx context.Context, listener *net.UnixListener) error {
	type accepted struct {
		conn *net.UnixConn
		err  error
	}
	came := make(chan accepted, 1)
	if err := listener.SetDeadline(time.Now().Add(connectTimeout)); err != nil {
		return err
	}
	go func() {
		conn, err := listener.AcceptUnix()
		came <- accepted{conn, err}
	}()
	var why error
	select {
	case a := <-came:
		if a.err != nil {
			return fmt.Errorf("%s has not connected for %v: a script calls elastic_training's serve or run: %w", p.name, connectTimeout, a.err)
		}
		p.conn = a.conn
		return nil
	case <-p.ended:
		why = p.death(" before it had connected (a script calls elastic_training's serve or run)")
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	// The listener is its owner's to close: a deadline that has passed ends the waiting too.
	err := listener.SetDeadline(time.Now())
	if a := <-came; a.conn != nil {
		err = errors.Join(err, a.conn.Close())
	}
	return errors.Join(why, err)
}

// lost is why the connection has failed: the script's death, where it has died.
func (p *process) lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		select {
		case <-p.ended:
			return p.death("")
		case <-time.After(endTimeout):
			return fmt.Errorf("%s has closed its connection%s", p.name, p.output.lastWords())
		}
	}
	return fmt.Errorf("%s: %w", p.name, err)
}

// death says how the script has ended, at what point of its work, and what it said last.
func (p *process) death(when string) error {
	how := "ended with exit code 0"
	var exit *exec.ExitError
	switch {
	case errors.As(p.err, &exit):
		how = fmt.Sprintf("ended with exit code %d", exit.ExitCode())
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			how = fmt.Sprintf("was ended by signal %q", status.Signal())
			if status.Signal() == syscall.SIGKILL {
				how += " (for want of memory, perhaps)"
			}
		}
	case p.err != nil:
		how = "ended: " + p.err.Error()
	}
	return &DiedError{Reason: fmt.Sprintf("%s %s%s%s", p.name, how, when, p.output.lastWords())}
}

// DiedError is the end of a script that nobody had asked for.
type DiedError struct{ Reason string }

func (e *DiedError) Error() string { return e.Reason }

// close ends the script: the end of its connection is the end of its work. One that does not end is killed.
func (p *process) close() error {
	var err error
	if p.conn != nil {
		err = p.conn.Close()
	}
	if p.cmd != nil {
		patience := endTimeout
		if p.conn == nil {
			patience = 0 // it does not know yet that it works for somebody
		}
		select {
		case <-p.ended:
		case <-time.After(patience):
			child.Signal(p.cmd.Process, syscall.SIGKILL)
			<-p.ended
		}
	}
	return errors.Join(err, p.dir.remove())
}

// environment is that of this process, and where the script finds its work. What the user has set stays.
func (o Options) environment(socket, modules string) []string {
	defaults := map[string]string{
		"PYTHONUNBUFFERED": "1", // its last lines are told when it dies
		"PYTHONHASHSEED":   "0", // the order of sets, from which models are built, is the same in every process
	}
	if o.Threads > 0 {
		defaults["OMP_NUM_THREADS"] = strconv.Itoa(o.Threads)
	}
	env := os.Environ()
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if _, set := os.LookupEnv(name); !set {
			env = append(env, name+"="+defaults[name])
		}
	}
	path := []string{modules}
	if o.Beside != "" {
		path = append(path, o.Beside)
	}
	if before := os.Getenv("PYTHONPATH"); before != "" {
		path = append(path, before)
	}
	return append(env, "ELASTIC_SOCKET="+socket, "PYTHONPATH="+strings.Join(path, string(filepath.ListSeparator)))
}

// lines passes output on line by line, each with a prefix, and keeps the last ones.
type lines struct {
	to     io.Writer // nil for nobody
	prefix string

	mu   sync.Mutex
	open []byte
	tail []string
}

// maxLine is where a line without an end is broken: progress bars write such.
const maxLine = 8 << 10

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, b...)
	for {
		end := bytes.IndexByte(l.open, '\n')
		if end < 0 && len(l.open) < maxLine {
			return len(b), nil
		}
		if end < 0 {
			l.line(l.open[:maxLine])
			l.open = l.open[maxLine:]
			continue
		}
		l.line(l.open[:end])
		l.open = l.open[end+1:]
	}
}

func (l *lines) line(b []byte) {
	text := string(bytes.TrimRight(b, "\r"))
	if len(l.tail) == tailLines {
		l.tail = slices.Delete(l.tail, 0, 1)
	}
	l.tail = append(l.tail, text)
	if l.to != nil {
		_, _ = fmt.Fprintln(l.to, l.prefix+text) // there is nobody to tell when the log cannot be written
	}
}

// flush ends a line that has no end.
func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) > 0 {
		l.line(l.open)
		l.open = nil
	}
}

// lastWords are the last lines, quoted, for the end of a message.
func (l *lines) lastWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tail) == 0 {
		return ", and said nothing"
	}
	return "; its last lines:\n  > " + strings.Join(l.tail, "\n  > ")
}
