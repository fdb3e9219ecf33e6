package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"time"
)

// limits bound what a request may take.
type limits struct {
	connect time.Duration // dialling, proxy and TLS handshake
	read    time.Duration // from the connection to the head of the answer to a read
	write   time.Duration // the same for a write
	budget  time.Duration // all repetitions of one request, where the context sets no earlier end
}

// defaultLimits make an unreachable or silent server known within 10 s. A write may take longer than a read, because
// the API server waits up to 30 s for an admission webhook.
func defaultLimits() limits {
	return limits{connect: 8 * time.Second, read: 9 * time.Second, write: 35 * time.Second, budget: time.Minute}
}

// maxErrorBody bounds what is read of a 500's body to see whether a webhook failed.
const maxErrorBody = 16 << 10

// transport bounds every attempt of a request, and repeats those that the server did not process. It sits below
// client-go's authentication, and above the connection pool.
type transport struct {
	next   http.RoundTripper
	limits limits
}

// NoAnswerError reports that the server did not answer in time. A write may have been processed.
type NoAnswerError struct {
	Connected bool // a connection was made
	After     time.Duration
}

func (e *NoAnswerError) Error() string {
	if e.Connected {
		return fmt.Sprintf("connected, but no answer within %s", e.After)
	}
	return fmt.Sprintf("no connection within %s", e.After)
}

// RoundTrip sends the request until it is processed, fails otherwise, or the budget is used up.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	deadline := time.Now().Add(t.limits.budget)
	for attempt := 0; ; attempt++ {
		response, err := t.attempt(request)
		if err != nil || !unprocessed(response) {
			return response, err
		}
		wait := retryAfter(response, attempt)
		again, ok := repeat(request)
		if !ok || time.Now().Add(wait).After(deadline) {
			response.Header.Del("Retry-After") // else client-go repeats it ten times more
			return response, nil
		}
		discard(response)
		select {
		case <-time.After(wait):
		case <-request.Context().Done():
			return nil, fmt.Errorf("waiting to repeat a request that was answered with %q: %w", response.Status, context.Cause(request.Context()))
		}
		request = again
	}
}

// attempt sends the request once. The time limit ends with the arrival of the answer's header, so that a watch may
// continue for hours.
func (t *transport) attempt(request *http.Request) (*http.Response, error) {
	limit := t.limits.write
	if request.Method == http.MethodGet {
		limit = t.limits.read
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(t.limits.connect, func() { cancel(&NoAnswerError{After: t.limits.connect}) })
	answer := time.AfterFunc(limit, func() { cancel(&NoAnswerError{Connected: true, After: limit}) })
	answer.Stop()
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if timer.Stop() {
			answer.Reset(limit)
		}
	}})
	response, err := t.next.RoundTrip(request.WithContext(traced))
	timer.Stop()
	answer.Stop()
	if err != nil {
		cause := context.Cause(ctx)
		cancel(nil)
		if noAnswer, ok := cause.(*NoAnswerError); ok { //nolint:errorlint // our own cause, never wrapped
			return nil, noAnswer
		}
		return nil, err
	}
	response.Body = &cancelOnClose{ReadCloser: response.Body, cancel: cancel}
	return response, nil
}

// unprocessed holds for answers after which the same request may be sent again: the server was too busy, or an
// admission webhook could not be reached (its pod may be starting). It leaves the body as it was.
func unprocessed(response *http.Response) bool {
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	case http.StatusInternalServerError:
		head, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
		rest := response.Body
		response.Body = &struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), rest), rest}
		return err == nil && bytes.Contains(head, []byte("failed calling webhook"))
	default:
		return false
	}
}

// retryAfter is what the server asks for, and otherwise doubles from 0.25 s to 5 s; a quarter of it is random, so that
// clients part.
func retryAfter(response *http.Response, attempt int) time.Duration {
	wait := min(250*time.Millisecond<<min(attempt, 10), 5*time.Second)
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		wait = max(time.Duration(seconds)*time.Second, 50*time.Millisecond)
	}
	return wait + rand.N(wait/4+1)
}

// repeat is the request with its body rewound; false when it cannot be.
func repeat(request *http.Request) (*http.Request, bool) {
	if request.Body == nil || request.Body == http.NoBody {
		return request, true
	}
	if request.GetBody == nil {
		return nil, false
	}
	body, err := request.GetBody()
	if err != nil {
		return nil, false
	}
	again := request.Clone(request.Context())
	again.Body = body
	return again, true
}

// discard reads the rest of a short answer, so that its connection is used again.
func discard(response *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxErrorBody)) // what remains only costs the connection
	_ = response.Body.Close()
}

// cancelOnClose frees an attempt's context when its body is closed.
type cancelOnClose struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *cancelOnClose) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
