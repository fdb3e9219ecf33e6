package kind

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/log"
)

// progress passes kind's own messages on, a line each.
type progress struct {
	logf func(format string, args ...any)
}

var (
	_ log.Logger     = progress{}
	_ log.InfoLogger = progress{}
)

// V discards kind's debug messages.
func (p progress) V(level log.Level) log.InfoLogger {
	if level > 0 {
		return log.NoopInfoLogger{}
	}
	return p
}

func (p progress) Info(message string) {
	if message = strings.TrimSpace(message); message != "" {
		p.logf("kind: %s", message)
	}
}

func (p progress) Infof(format string, args ...any)  { p.Info(fmt.Sprintf(format, args...)) }
func (p progress) Warn(message string)               { p.Info(message) }
func (p progress) Warnf(format string, args ...any)  { p.Infof(format, args...) }
func (p progress) Error(message string)              { p.Info(message) }
func (p progress) Errorf(format string, args ...any) { p.Infof(format, args...) }
func (p progress) Enabled() bool                     { return true }
