package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A server that is no Kubernetes API server may answer anything to a request for an object: nginx answers 404, which
// would mean that the object does not exist, or its kind. So an answer that no API server would give is followed by a
// question that every API server answers, GET /version, before anybody believes it.

// NotAPIServerError reports that what answers at the configured address is no Kubernetes API server. It does not wrap
// the server's answer: a 404 of such a server says nothing about an object.
type NotAPIServerError struct {
	Host       string
	Configured string // where the address comes from: "attribute host (or KUBE_HOST)"
	Found      string // what the server answers to GET /version
}

func (e *NotAPIServerError) Error() string {
	return fmt.Sprintf("the server at %s, from %s, is not a Kubernetes API server: it answers GET /version with %s", e.Host, e.Configured, e.Found)
}

// identifyTimeout bounds the question. The server has answered another one just before.
const identifyTimeout = 10 * time.Second

// maxVersionBody bounds what is read of the answer; a version has less than a kilobyte.
const maxVersionBody = 64 << 10

// checked is the error, or a NotAPIServerError where no API server can have given this answer and none is there.
func (c *Client) checked(err error) error {
	if !isForeign(err) {
		return err
	}
	c.identity.Lock()
	defer c.identity.Unlock()
	if c.isAPIServer || c.http == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), identifyTimeout)
	defer cancel()
	found, isAPIServer, certain := c.askVersion(ctx)
	if isAPIServer || !certain {
		c.isAPIServer = isAPIServer
		return err
	}
	return &NotAPIServerError{Host: c.host, Configured: c.config.source(), Found: found}
}

// isForeign reports whether an error may come from a server that is no API server: a status that is in no API server's
// words, or an answer that cannot be read.
func isForeign(err error) bool {
	var status apierrors.APIStatus
	var noAnswer *NoAnswerError
	switch {
	case errors.As(err, &status):
		return apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	case errors.As(err, &noAnswer), neverSent(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	default:
		var wrong *WrongClusterError
		var recreated *RecreatedError
		return !errors.As(err, &wrong) && !errors.As(err, &recreated)
	}
}

// askVersion asks for the server's version. It is not certain where the server does not answer this time.
func (c *Client) askVersion(ctx context.Context) (found string, isAPIServer, certain bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.kube.Discovery().RESTClient().Get().AbsPath("/version").URL().String(), http.NoBody)
	if err != nil {
		return "", false, false
	}
	response, err := c.http.Do(request)
	if err != nil {
		var malformed *url.Error
		if errors.As(err, &malformed) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "malformed HTTP")) {
			return "no HTTP answer (" + malformed.Err.Error() + ")", false, true
		}
		return "", false, false
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxVersionBody))
	if err != nil {
		return "", false, false
	}
	if isKubernetesAnswer(body) {
		return "", true, true
	}
	return answerText(request, response, body), false, true
}

// isKubernetesAnswer reports whether the body is an API server's: its version, or a denial.
func isKubernetesAnswer(body []byte) bool {
	var answer struct{ GitVersion, Kind, APIVersion string }
	return json.Unmarshal(body, &answer) == nil && (answer.GitVersion != "" || answer.Kind == "Status" && answer.APIVersion == "v1")
}

// answerText describes an answer in a few words: its status, its type, the server's own name, and where it was led to.
func answerText(request *http.Request, response *http.Response, body []byte) string {
	var properties []string
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err == nil {
		properties = append(properties, kind)
	}
	if len(body) == 0 {
		properties = append(properties, "an empty body")
	}
	if server := response.Header.Get("Server"); server != "" {
		properties = append(properties, "server "+server)
	}
	text := response.Status
	if len(properties) > 0 {
		text += " (" + strings.Join(properties, ", ") + ")"
	}
	if to := response.Request.URL; to.Host != request.URL.Host || to.Path != request.URL.Path {
		text += fmt.Sprintf(", after a redirect to %s://%s%s", to.Scheme, to.Host, to.Path)
	}
	return text
}

// source reports where the address comes from, in the words of the provider's configuration.
func (c Config) source() string {
	switch {
	case c.Host != "":
		return "host (or KUBE_HOST)"
	case c.InCluster:
		return "in_cluster (KUBERNETES_SERVICE_HOST of this pod)"
	default:
		text := "the kubeconfig " + strings.Join(c.Kubeconfigs, ", ")
		if c.Context != "" {
			text += ", context " + c.Context
		}
		return text
	}
}
