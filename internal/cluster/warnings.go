package cluster

import (
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
)

// Warnings collects what the API server warns of (HTTP header Warning): a pod template that a namespace's Pod Security
// labels warn about, a deprecated field, a policy in its trial. It is safe for concurrent use.
type Warnings struct {
	mutex sync.Mutex
	texts []string
}

type warningsKey struct{}

// CollectWarnings returns a context for requests, and the warnings that the server answers them with.
func CollectWarnings(ctx context.Context) (context.Context, *Warnings) {
	w := &Warnings{}
	return context.WithValue(ctx, warningsKey{}, w), w
}

// Texts are the warnings so far, in the order of their arrival, each once.
func (w *Warnings) Texts() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.texts)
}

// warningHandler adds a warning to those of the request's context. A request without any, such as a read of a plan,
// leaves it to client-go, which logs it.
type warningHandler struct{}

// miscellaneousWarning is the only code that Kubernetes uses (RFC 7234, section 5.5).
const miscellaneousWarning = 299

func (warningHandler) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, text string) {
	w, ok := ctx.Value(warningsKey{}).(*Warnings)
	if !ok {
		rest.WarningLogger{}.HandleWarningHeaderWithContext(ctx, code, agent, text)
		return
	}
	if code != miscellaneousWarning || text == "" {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}
