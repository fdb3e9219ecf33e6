package cloud

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/crypto/x509roots/fallback/bundle"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// endpoint is where a store is, and how it is spoken to.
type endpoint struct {
	host      string
	options   minio.Options
	transport *http.Transport
}

func endpointOf(ctx context.Context, scheme string) (endpoint, error) {
	if scheme == "gs" {
		return googleEndpoint(ctx)
	}
	return amazonEndpoint()
}

// metadataTimeout is how long a machine's role is looked for: away from the cloud nobody answers.
const metadataTimeout = 3 * time.Second

func amazonEndpoint() (endpoint, error) {
	text := os.Getenv("AWS_ENDPOINT_URL_S3")
	text = cmp.Or(text, os.Getenv("AWS_ENDPOINT_URL"))
	e, err := newEndpoint(text, "https://s3.amazonaws.com")
	if err != nil {
		return endpoint{}, fmt.Errorf("AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL: %w", err)
	}
	if text != "" { // of other stores neither the names of hosts nor regions are known
		e.options.BucketLookup = minio.BucketLookupPath
		e.options.Region = "us-east-1"
		for _, name := range []string{"AWS_DEFAULT_REGION", "AWS_REGION"} {
			if region := os.Getenv(name); region != "" {
				e.options.Region = region
			}
		}
	}
	e.options.Transport = e.transport
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if !strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") || os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE")+os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")+os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "" {
		providers = append(providers, &credentials.IAM{Client: &http.Client{Transport: e.transport, Timeout: metadataTimeout}})
	}
	e.options.Creds = credentials.NewChainCredentials(providers)
	return e, nil
}

// readOnly is the OAuth scope of what is done here.
const readOnly = "https://www.googleapis.com/auth/devstorage.read_only"

func googleEndpoint(ctx context.Context) (endpoint, error) {
	text := os.Getenv("STORAGE_EMULATOR_HOST")
	if text != "" && !strings.Contains(text, "://") {
		text = "http://" + text
	}
	e, err := newEndpoint(text, "https://storage.googleapis.com")
	if err != nil {
		return endpoint{}, fmt.Errorf("STORAGE_EMULATOR_HOST: %w", err)
	}
	e.options.Region = "auto"
	e.options.BucketLookup = minio.BucketLookupPath
	e.options.Creds = credentials.NewStatic("", "", "", credentials.SignatureAnonymous) // what signs is the token
	e.options.Transport = e.transport
	file := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS")
	if text != "" && file == "" {
		return e, nil // an emulator wants no credentials
	}
	// The tokens outlive the call that made them.
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, &http.Client{Transport: e.transport})
	found, err := google.FindDefaultCredentials(ctx, readOnly)
	switch {
	case err == nil:
		e.options.Transport = &oauth2.Transport{Source: found.TokenSource, Base: e.transport}
	case file != "":
		return endpoint{}, fmt.Errorf("GOOGLE_APPLICATION_CREDENTIALS: %w", err)
	}
	return e, nil
}

func newEndpoint(text, standard string) (endpoint, error) {
	text = cmp.Or(text, standard)
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return endpoint{}, errors.New("it is no URL of a host, as in https://minio.example.com:9000")
	}
	e := endpoint{host: u.Host, options: minio.Options{Secure: u.Scheme == "https"}}
	if e.transport, err = minio.DefaultTransport(e.options.Secure); err != nil {
		return endpoint{}, err
	}
	if e.options.Secure {
		roots, err := trusted()
		if err != nil {
			return endpoint{}, err
		}
		e.transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	}
	return e, nil
}

// trusted are the certificate authorities of the machine (SSL_CERT_FILE included), or Mozilla's where there are none,
// as in the trainer's image.
func trusted() (*x509.CertPool, error) {
	system, err := x509.SystemCertPool()
	if err == nil && !system.Equal(x509.NewCertPool()) {
		return system, nil
	}
	pool := x509.NewCertPool()
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate authorities in this program: %w", err)
		}
		if root.Constraint == nil {
			pool.AddCert(certificate)
		} else {
			pool.AddCertWithConstraint(certificate, root.Constraint)
		}
	}
	return pool, nil
}
