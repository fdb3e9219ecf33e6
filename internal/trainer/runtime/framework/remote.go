package framework

import (
	"context"
	"encoding/json"
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

// The names of the sockets in the directory that a master's container shares with its script's. The master makes both;
// the other container sees the directory read-only, so that a script cannot put anything else in their place.
const (
	controlSocket = "control" // Host connects to it, and is sent a launch
	scriptSocket  = "script"  // the script connects to it: what is a child's connection otherwise
)

// maxReport bounds what is read of a script's end, which anything in its container may have written.
const maxReport = 64 << 10

// redial is the time between two attempts to reach a master.
const redial = 100 * time.Millisecond

// outcome is the one message that Host sends: the script could not be started, or how it has ended.
type outcome struct {
	Refused string `json:"refused,omitempty"`
	ending
}

// remote is a script in another container, which Host runs there. It ends when the control connection is closed.
type remote struct {
	control *net.UnixConn
	ended   chan struct{} // closed when the outcome has come, or the connection has ended without one
	outcome outcome       // set before ended is closed
}

// startRemote starts the script in the container that shares a directory with this one.
func (p *process) startRemote(ctx context.Context, l launch, shared string) (err error) {
	l.Socket = filepath.Join(shared, scriptSocket)
	connections, err := listen(l.Socket, p.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, connections.Close()) }()
	hosts, err := listen(filepath.Join(shared, controlSocket), p.name)
	if err != nil {
		return err
	}
	control, err := acceptOne(ctx, hosts, nil)
	if err = errors.Join(err, hosts.Close()); err != nil {
		return fmt.Errorf("the container in which %s is to run does not answer: %w", p.name, err)
	}
	r := &remote{control: control, ended: make(chan struct{})}
	p.script = r
	go r.listen()
	if err := json.NewEncoder(control).Encode(l); err != nil {
		return fmt.Errorf("have %s started: %w", p.name, err)
	}
	err = p.accept(ctx, connections)
	if died := (*DiedError)(nil); errors.As(err, &died) && r.outcome.Refused != "" {
		return errors.New(r.outcome.Refused) // a restart would not help
	}
	return err
}

// listen receives the outcome.
func (r *remote) listen() {
	defer close(r.ended)
	if err := json.NewDecoder(io.LimitReader(r.control, maxReport)).Decode(&r.outcome); err != nil || r.outcome.How == "" {
		r.outcome.How = "ended together with its container (perhaps out of memory)"
	}
}

func (r *remote) done() <-chan struct{} { return r.ended }

func (r *remote) ending() ending { return r.outcome.ending }

// lastLines is empty: the last lines are in the log of the script's container.
func (r *remote) lastLines() string { return "" }

// end closes the connection, on which the script's container ends the script, within its own timeout.
func (r *remote) end(time.Duration) error {
	err := r.control.Close()
	<-r.ended
	return err
}

// Host runs the scripts of a master in another container, one after the other, until ctx ends. The containers share
// the directory. A script must not see the master's credentials or
// processes, and this container has neither.
func Host(ctx context.Context, shared string, output io.Writer) error {
	address := &net.UnixAddr{Name: filepath.Join(shared, controlSocket), Net: "unix"}
	for {
		control, err := net.DialUnix("unix", nil, address)
		if err == nil {
			err = host(ctx, control, output)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("run the script of the master: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(redial):
		}
	}
}

// host runs one script: until it ends, the master closes the connection, or ctx ends.
func host(ctx context.Context, control *net.UnixConn, output io.Writer) (err error) {
	defer func() { err = errors.Join(err, control.Close()) }()
	released := context.AfterFunc(ctx, func() { _ = control.SetReadDeadline(time.Now()) })
	defer released()
	var l launch
	requests := json.NewDecoder(control)
	if requests.Decode(&l) != nil {
		return nil // the master has ended, or ctx
	}
	dir, err := child.NewWorkdir()
	if err != nil {
		return err
	}
	script, err := startCommand(l, dir, output)
	if err != nil {
		_ = json.NewEncoder(control).Encode(outcome{Refused: err.Error()}) // the master may have ended
		return nil
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, control) // ends with the connection, or with ctx
	}()
	select {
	case <-script.done():
		_ = json.NewEncoder(control).Encode(outcome{ending: script.ending()})
		_ = control.CloseRead()
		<-gone
		return script.end(0)
	case <-gone:
		return script.end(endTimeout)
	}
}
