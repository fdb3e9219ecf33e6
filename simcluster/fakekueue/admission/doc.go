// Package admission implements Kueue's webhooks, which change or reject objects before the API server stores them: a
// Job that names a queue is suspended, a pod is gated, Kueue's own objects get their finalizer, and objects that Kueue
// would reject are rejected with Kueue's messages.
//
// The decisions are functions from an object to a patch or to a list of errors (Kueue v0.19, pkg/controller/jobs/job
// and jobs/pod, *_webhook.go; pkg/webhooks). Handler serves them; the webhook configurations (package fakekueue,
// webhooks.go) define which requests are sent here. The package keeps no state.
package admission
