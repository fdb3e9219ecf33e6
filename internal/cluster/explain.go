package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Explain turns an error of this package into a summary of one line and a detail that says what was found and what to
// do. It never returns empty strings for an error.
func Explain(err error) (summary, detail string) {
	summary = "Request to the cluster failed"
	var failed *Error
	if errors.As(err, &failed) {
		summary = fmt.Sprintf("Cannot %s %s", failed.Verb, failed.Ref)
	}
	if errors.Is(err, ErrNoCluster) {
		return "No cluster is configured",
			"The provider needs one of config_path (or KUBE_CONFIG_PATH), host (or KUBE_HOST), or in_cluster = true. " +
				"It never reads ~/.kube/config unless config_path names it, and never assumes localhost."
	}
	var config *ConfigError
	if errors.As(err, &config) {
		return "Cannot connect as configured", explainConfig(config)
	}
	var wrong *WrongClusterError
	if errors.As(err, &wrong) {
		return "This is not the expected cluster",
			fmt.Sprintf("The UID of namespace kube-system at %s is %s, but expected_cluster_uid is %s. Nothing was changed. "+
				"Check host, config_path and config_context, or correct expected_cluster_uid.", wrong.Host, wrong.Got, wrong.Expected)
	}
	var foreign *NotAPIServerError
	if errors.As(err, &foreign) {
		return summary, explainNotAPIServer(foreign)
	}
	if detail = explainOwnership(err); detail != "" {
		return summary, detail
	}
	if failed != nil {
		if detail = explainConnection(failed.Host, failed.Err); detail != "" {
			return summary, detail
		}
	}
	if failed != nil && strings.HasPrefix(failed.Host, "http://") && apierrors.IsBadRequest(err) {
		return summary, fmt.Sprintf("The server at %s does not understand plain HTTP (400 Bad Request). API servers speak https; check host.", failed.Host)
	}
	if detail = explainStatus(err); detail != "" {
		return summary, detail
	}
	if failed != nil {
		return summary, sentence(failed.Err.Error())
	}
	return summary, sentence(err.Error())
}

func explainNotAPIServer(err *NotAPIServerError) string {
	advice := "Check the address: a path, the port and the scheme count, and a proxy (proxy_url) may answer in the server's place."
	if strings.HasPrefix(err.Host, "http://") {
		advice = "API servers speak https. " + advice
	}
	return fmt.Sprintf("The server at %s is not a Kubernetes API server: it answers GET /version with %s. The address comes from %s. %s Nothing was changed.",
		err.Host, err.Found, err.Configured, advice)
}

func explainConfig(err *ConfigError) string {
	if errors.Is(err, fs.ErrNotExist) {
		return sentence(err.Error()) + " Check config_path (or KUBE_CONFIG_PATH); where this configuration makes the file, it has to be made before this step."
	}
	return sentence(err.Error())
}

// explainOwnership covers what others did to the object.
func explainOwnership(err error) string {
	var exists *AlreadyExistsError
	if errors.As(err, &exists) && exists.Terminating != nil {
		return "An object of this name exists already, and is being deleted. " + exists.Terminating.String() +
			" Run terraform apply again when it is gone. " + exists.Terminating.Remedy()
	}
	if errors.As(err, &exists) {
		by := ""
		if len(exists.Managers) > 0 {
			by = " It was written by " + strings.Join(exists.Managers, ", ") + "."
		}
		return "An object of this name exists already, and creating does not adopt it." + by +
			" Import it, choose another name, or delete it first."
	}
	var lost *LostAnswerError
	if errors.As(err, &lost) {
		return fmt.Sprintf("It is not known whether the object was made: the answer was lost (%v), and looking for it failed too (%v). "+
			"Run terraform apply again when the API server can be reached; if it says then that the object exists, import it.", lost.Create, lost.Get)
	}
	var recreated *RecreatedError
	if errors.As(err, &recreated) {
		return fmt.Sprintf("The object was deleted and recreated by another client: its UID was %s and is %s. Nothing was changed. "+
			"Run terraform plan again to see what is there now.", recreated.Expected, recreated.Got)
	}
	var still *StillThereError
	if errors.As(err, &still) {
		switch {
		case len(still.Finalizers) > 0:
			terminating := Terminating{Ref: refOfError(err), Since: still.Since, Finalizers: still.Finalizers}
			return terminating.String() + " See what still uses it. " + terminating.Remedy()
		default:
			return "The object was still there when the time for deleting it had passed. Run terraform apply again to continue waiting."
		}
	}
	return ""
}

// refOfError is what the failed request was about.
func refOfError(err error) Ref {
	var failed *Error
	if errors.As(err, &failed) {
		return failed.Ref
	}
	return Ref{Kind: "object"}
}

// explainConnection covers what happens before the API server says anything.
func explainConnection(host string, err error) string {
	if problem := certificateProblem(err); problem != "" {
		return fmt.Sprintf("The API server at %s is not trusted: %s. Check cluster_ca_certificate (or the kubeconfig's certificate-authority), "+
			"and tls_server_name when the server is reached under another name than its certificate's.", host, problem)
	}
	if problem := credentialProblem(err); problem != "" {
		return "No credential for the API server at " + host + ": " + sentence(problem) +
			" Run the exec command of the provider's configuration (or of the kubeconfig's user) by hand to see what it says."
	}
	var resolve *net.DNSError
	if errors.As(err, &resolve) {
		return fmt.Sprintf("The API server at %s cannot be reached: the name %s cannot be resolved (%s). Check host, the network, and whether the cluster still exists.",
			host, resolve.Name, resolve.Err)
	}
	var noAnswer *NoAnswerError
	var operation *net.OpError
	switch {
	case errors.As(err, &noAnswer) && noAnswer.Connected:
		return fmt.Sprintf("The API server at %s does not answer: %v. Check that it is healthy, and that host and proxy_url lead to it.", host, noAnswer)
	case errors.As(err, &noAnswer):
		return fmt.Sprintf("The API server at %s cannot be reached: %v. %s", host, noAnswer, unreachableAdvice)
	case errors.As(err, &operation) && operation.Op == "dial":
		return fmt.Sprintf("The API server at %s cannot be reached: %v. %s", host, operation, unreachableAdvice)
	case errors.Is(err, context.DeadlineExceeded):
		return "The time for this operation had passed before it was done."
	case errors.Is(err, context.Canceled):
		return "The operation was interrupted."
	}
	return ""
}

const unreachableAdvice = "Check that the cluster runs, that host (or the kubeconfig's server) is its address, " +
	"and that a VPN, firewall or proxy between lets the connection through."

// certificateProblem is what is wrong with the server's certificate, or "" when nothing is known to be.
func certificateProblem(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		return "its certificate is signed by an unknown authority"
	case errors.As(err, &name):
		return "its certificate is for another name (" + name.Error() + ")"
	case errors.As(err, &invalid):
		return "its certificate is not valid (" + invalid.Error() + ")"
	case errors.As(err, &verification):
		return verification.Error()
	case errors.As(err, &record):
		return "it does not speak TLS (" + record.Error() + ")"
	default:
		return ""
	}
}

// credentialProblem is why an exec command gave no credential, or "". Client-go has no type for it.
func credentialProblem(err error) string {
	_, problem, _ := strings.Cut(err.Error(), "getting credentials: ")
	return problem
}

// explainStatus covers what the API server says in words that need more.
func explainStatus(err error) string {
	switch {
	case IsNotServed(err):
		return "The API server does not know objects of this kind (404 Not Found): what defines them is not installed in this cluster, or only in other versions. " +
			"Kueue's kinds come with Kueue 0.19 or later, whose API version is kueue.x-k8s.io/v1beta2; see https://kueue.sigs.k8s.io/docs/installation."
	case apierrors.IsUnauthorized(err):
		return "The API server does not accept the credentials (401 Unauthorized). A token may have expired; check token, client_certificate and client_key, " +
			"or that the exec command prints a credential for this cluster."
	case apierrors.IsForbidden(err):
		if d, ok := denialOf(err); ok {
			var missing []string
			if refusal := (*DeniedError)(nil); errors.As(err, &refusal) {
				missing = refusal.Missing
			}
			return explainDenied(d, missing)
		}
	case apierrors.IsConflict(err):
		return "Others changed the object again and again while it was updated (409 Conflict). Run terraform apply again."
	case apierrors.IsTooManyRequests(err):
		return "The API server was too busy and refused the request again and again (429 Too Many Requests). Try later, with a smaller -parallelism."
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	return "The API server refused the request: " + sentence(status.Status().Message)
}

// sentence ends a message with a full stop.
func sentence(message string) string {
	message = strings.TrimSpace(message)
	if message == "" || strings.HasSuffix(message, ".") {
		return message
	}
	return message + "."
}
