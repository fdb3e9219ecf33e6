package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Error reports what was attempted on what, and where. Every error of this package that comes from the cluster is one.
type Error struct {
	Verb string // "get", "create", "update", "delete", "list", "watch"
	Ref  Ref
	Host string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s at %s: %v", e.Verb, e.Ref, e.Host, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// ConfigError reports that no client can be made of the configuration: a kubeconfig is missing or damaged, or a
// certificate does not fit. No request was sent.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// AlreadyExistsError reports that Create found an object of that name.
type AlreadyExistsError struct {
	UID      types.UID // "" when it may not be read
	Managers []string  // who wrote it
	// Terminating is set of an object that is being deleted: it goes by itself, and cannot be imported.
	Terminating *Terminating
}

func (e *AlreadyExistsError) Error() string {
	if e.Terminating != nil {
		return "it exists already, and is being deleted"
	}
	if len(e.Managers) == 0 {
		return "it exists already"
	}
	return "it exists already (written by " + strings.Join(e.Managers, ", ") + ")"
}

// LostAnswerError reports that a create may or may not have been processed, and that it could not be found out.
type LostAnswerError struct {
	Create error // why the answer was lost
	Get    error // why the object could not be looked up
}

func (e *LostAnswerError) Error() string {
	return fmt.Sprintf("the answer was lost (%v), and whether the object was made could not be seen (%v)", e.Create, e.Get)
}
func (e *LostAnswerError) Unwrap() []error { return []error{e.Create, e.Get} }

// RecreatedError reports that the name belongs to another object than before.
type RecreatedError struct{ Expected, Got types.UID }

func (e *RecreatedError) Error() string {
	return fmt.Sprintf("it was deleted and recreated by another client: expected UID %s, found %s", e.Expected, e.Got)
}

// StillThereError reports that a deleted object did not go in time.
type StillThereError struct {
	Finalizers []string
	Deleting   bool      // it is marked for deletion
	Since      time.Time // when it was
	Err        error
}

func (e *StillThereError) Error() string {
	switch {
	case len(e.Finalizers) > 0:
		return "it is still there, held by finalizers " + strings.Join(e.Finalizers, ", ") + ": " + e.Err.Error()
	case e.Deleting:
		return "it is marked for deletion but still there: " + e.Err.Error()
	default:
		return "it is still there: " + e.Err.Error()
	}
}
func (e *StillThereError) Unwrap() error { return e.Err }

// WrongClusterError reports that the cluster is not the expected one.
type WrongClusterError struct{ Host, Expected, Got string }

func (e *WrongClusterError) Error() string {
	return fmt.Sprintf("the cluster at %s is not the expected one: the UID of its namespace kube-system is %s, expected %s", e.Host, e.Got, e.Expected)
}

// IsNotServed holds when the API server does not know the kind of objects at all, or not in the version that is asked
// for: its CustomResourceDefinition is not installed. A missing object of a kind that it knows is another matter.
func IsNotServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// neverSent holds for errors that came before the request could reach the server.
func neverSent(err error) bool {
	var noAnswer *NoAnswerError
	if errors.As(err, &noAnswer) {
		return !noAnswer.Connected
	}
	var operation *net.OpError
	if errors.As(err, &operation) && (operation.Op == "dial" || operation.Op == "proxyconnect") {
		return true
	}
	return certificateProblem(err) != "" || credentialProblem(err) != "" || errors.Is(err, http.ErrSchemeMismatch)
}
