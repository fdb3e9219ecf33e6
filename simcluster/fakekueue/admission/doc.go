// Package admission is what Kueue's webhooks do to objects before the API server stores them: a Job that names a queue
// is suspended, a pod is gated, Kueue's own objects get their finalizer, and what Kueue would refuse is refused with
// its words.
//
// The decisions are functions from an object to a patch or to a list of errors (Kueue v0.19, pkg/controller/jobs/job
// and jobs/pod, *_webhook.go; pkg/webhooks). Handler serves them; which requests come here is said by the webhook
// configurations (package fakekueue, webhooks.go). It keeps nothing and writes nothing.
package admission
