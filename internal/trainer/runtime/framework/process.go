package framework

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/child"
)

// Timeouts of a script.
const (
	// connectTimeout is how long a script may take to connect: importing a framework from a slow disk takes time.
	connectTimeout = 5 * time.Minute
	// endTimeout is how long a script may take to end after its connection is closed. It holds no data that could be
	// lost.
	endTimeout = 2 * time.Second
)

// maxSocketPath is the longest path in the shortest sockaddr_un of the supported systems, with its terminating
// zero.
const maxSocketPath = 103

// running is a script's process: a child of this one (command), or one in another container (remote).
type running interface {
	done() <-chan struct{} // closed when it has ended
	ending() ending        // how it has ended, once done is closed
	lastLines() string     // its last lines, where its output is available here
	end(timeout time.Duration) error
}

// ending is how a script has ended, as the end of a sentence, and its last lines.
type ending struct {
	How       string `json:"how"`
	LastWords string `json:"last_words"`
}

// process is a running script and the connection to it.
type process struct {
	name   string
	script running
	conn   *net.UnixConn
}

// startProcess runs a script and waits until it has connected.
func startProcess(ctx context.Context, o Options) (_ *process, err error) {
	p := &process{name: o.Name}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	l := launch{Command: o.Command, Name: o.Name, Script: o.Script, Threads: o.Threads, Beside: o.Beside, LocalRank: o.LocalRank, LocalWorld: o.LocalWorld}
	if o.Shared != "" {
		return p, p.startRemote(ctx, l, o.Shared)
	}
	// The directory also holds the socket, and only this user can read it.
	dir, err := child.NewWorkdir()
	if err != nil {
		return nil, fmt.Errorf("make a directory for the socket to %s: %w", o.Name, err)
	}
	l.Socket = filepath.Join(dir.Path, "socket")
	listener, err := listen(l.Socket, o.Name)
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	c, err := startCommand(l, dir, o.Output)
	if err != nil {
		return nil, err
	}
	p.script = c
	return p, p.accept(ctx, listener)
}

// listen makes a socket, and replaces one that a killed process has left.
func listen(path, script string) (*net.UnixListener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the socket to %s, %s, has %d characters, and a socket's may have %d; set TMPDIR to a shorter one", script, path, len(path), maxSocketPath)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", script, err)
	}
	return listener, nil
}

// accept waits for the script's connection, or its end.
func (p *process) accept(ctx context.Context, listener *net.UnixListener) error {
	conn, err := acceptOne(ctx, listener, p.script.done())
	switch {
	case errors.Is(err, errEnded):
		return p.death(" before it had connected (a script calls init, run or serve of elastic_training)")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s has not connected for %v: a script calls init, run or serve of elastic_training: %w", p.name, connectTimeout, err)
	}
	p.conn = conn
	return err
}

// errEnded is acceptOne's error when the script ended before it connected.
var errEnded = errors.New("ended before it had connected")

// acceptOne waits for one connection, for connectTimeout at most.
func acceptOne(ctx context.Context, listener *net.UnixListener, ended <-chan struct{}) (*net.UnixConn, error) {
	type accepted struct {
		conn *net.UnixConn
		err  error
	}
	came := make(chan accepted, 1)
	if err := listener.SetDeadline(time.Now().Add(connectTimeout)); err != nil {
		return nil, err
	}
	go func() {
		conn, err := listener.AcceptUnix()
		came <- accepted{conn, err}
	}()
	var why error
	select {
	case a := <-came:
		return a.conn, a.err
	case <-ended:
		why = errEnded
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	// The listener is closed by its owner: a deadline in the past ends Accept too.
	err := listener.SetDeadline(time.Now())
	if a := <-came; a.conn != nil {
		err = errors.Join(err, a.conn.Close())
	}
	return nil, errors.Join(why, err)
}

// lost explains why the connection has failed: the script's death, if it has died.
func (p *process) lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		select {
		case <-p.script.done():
			return p.death("")
		case <-time.After(endTimeout):
			return fmt.Errorf("%s has closed its connection%s", p.name, p.script.lastLines())
		}
	}
	return fmt.Errorf("%s: %w", p.name, err)
}

// death describes how the script has ended, at what point of its work, and its last lines.
func (p *process) death(when string) error {
	end := p.script.ending()
	return &DiedError{Reason: fmt.Sprintf("%s %s%s%s", p.name, end.How, when, end.LastWords)}
}

// DiedError is the unexpected end of a script.
type DiedError struct{ Reason string }

func (e *DiedError) Error() string { return e.Reason }

// close closes the connection, on which the script ends. A script that does not end is killed.
func (p *process) close() error {
	var err error
	timeout := time.Duration(0) // without a connection the script has not noticed us, and would not notice its end
	if p.conn != nil {
		err, timeout = p.conn.Close(), endTimeout
	}
	if p.script != nil {
		err = errors.Join(err, p.script.end(timeout))
	}
	return err
}
