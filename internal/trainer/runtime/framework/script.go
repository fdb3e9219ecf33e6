package framework

import (
	"context"
	"errors"
	"net"
	"os/exec"
)

// Script is a running script that this package only starts and ends: what is said on the connection is the caller's.
type Script struct{ process *process }

// StartScript runs a script as a child and waits until it has connected, or ctx ends. Of the options it uses Command,
// Name, Script, Beside, Threads, LocalRank, LocalWorld and Output.
func StartScript(ctx context.Context, o Options) (*Script, error) {
	o.Shared = "" // only a master's script runs in another container
	p, err := startProcess(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Script{p}, nil
}

// Conn is the connection that the script has opened.
func (s *Script) Conn() net.Conn { return s.process.conn }

// Ended is closed when the script has ended.
func (s *Script) Ended() <-chan struct{} { return s.process.script.done() }

// Err explains how a script that has ended did so, with its last lines; it is nil for exit code 0.
func (s *Script) Err() error {
	if c, ok := s.process.script.(*command); ok {
		<-c.ended
		if exit := (*exec.ExitError)(nil); c.err == nil || (!errors.As(c.err, &exit) && c.cmd.ProcessState.Success()) {
			return nil
		}
	}
	return s.process.death("")
}

// Close closes the connection, on which the script ends. A script that does not end is killed.
func (s *Script) Close() error { return s.process.close() }
