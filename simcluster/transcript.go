package simcluster

import (
	"bytes"
	"sync"
)

// A transcript keeps what a supervisor says until somebody wants to read it. It is safe for concurrent use.
type transcript struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.text.Write(p)
}

// String returns everything so far, indented so that it stands out in a test's log.
func (t *transcript) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return indent(t.text.String())
}
