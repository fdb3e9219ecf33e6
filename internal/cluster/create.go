package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// creatorSeparator stands between the field manager's name and a random token in the name under which Create writes.
// The token distinguishes our own object from another one of the same name when the response to the POST is lost; the
// first Apply turns "NAME/TOKEN" into "NAME", and the object itself carries no mark.
const creatorSeparator = "/"

// askAgainTimeout bounds the question whether a lost POST was processed.
const askAgainTimeout = 20 * time.Second

// Create makes an object that does not exist yet. One that exists already is an AlreadyExistsError: adopting
// is import's work. A POST whose answer was lost is looked up, and is a success if it was processed.
func Create[T Object](ctx context.Context, c *Client, resource Resource[T], object T) (T, error) {
	var none T
	if err := c.Verify(ctx); err != nil {
		return none, err
	}
	ref := refOf[T](resource, object.GetName())
	creator := c.FieldManager() + creatorSeparator + newToken()
	created, err := resource.Create(ctx, object, metav1.CreateOptions{FieldManager: creator})
	if err == nil {
		return created, nil
	}
	// AlreadyExists may be the answer to a repetition of our own request.
	if !ambiguous(err) && !apierrors.IsAlreadyExists(err) {
		return none, c.Wrap("create", ref, err)
	}
	again, cancel := context.WithTimeout(context.WithoutCancel(ctx), askAgainTimeout)
	defer cancel()
	found, getErr := resource.Get(again, object.GetName(), metav1.GetOptions{})
	switch {
	case getErr == nil && writtenBy(found, creator):
		return found, nil
	case getErr == nil:
		return none, c.Wrap("create", ref, &AlreadyExistsError{UID: found.GetUID(), Managers: managers(found), Terminating: TerminatingOf(ref, found)})
	case apierrors.IsAlreadyExists(err):
		return none, c.Wrap("create", ref, &AlreadyExistsError{}) // exists, but we may not read it
	case apierrors.IsNotFound(getErr):
		return none, c.Wrap("create", ref, err)
	default:
		return none, c.Wrap("create", ref, &LostAnswerError{Create: err, Get: getErr})
	}
}

// ambiguous holds for a failed write that the server may nevertheless have processed.
func ambiguous(err error) bool {
	if apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) {
		return true
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return false
	}
	return !neverSent(err)
}

// newToken is unique among the creations of one object.
func newToken() string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// isOurs holds for the field manager's own name and for the names under which it creates.
func isOurs(manager, fieldManager string) bool {
	return manager == fieldManager || strings.HasPrefix(manager, fieldManager+creatorSeparator)
}

func writtenBy(object metav1.Object, manager string) bool {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == manager {
			return true
		}
	}
	return false
}

// managers are the names of those who own fields of the object, without repetition.
func managers(object metav1.Object) []string {
	var names []string
	seen := map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		if !seen[entry.Manager] {
			seen[entry.Manager] = true
			names = append(names, entry.Manager)
		}
	}
	return names
}
