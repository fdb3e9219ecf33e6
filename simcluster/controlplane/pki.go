package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/addon"
)

// UserName is the name of the unprivileged user whose kubeconfig is made: no role is bound to it.
const UserName = "elastic-user"

const (
	// The authorities and the service accounts' key are made once and outlive every cluster's use, because tokens,
	// webhooks' CA bundles and copies of kubeconfigs refer to them.
	authorityLifetime   = 10 * 365 * 24 * time.Hour
	certificateLifetime = 365 * 24 * time.Hour
	// A certificate with less than this left is made anew at the next start.
	renewBefore = 30 * 24 * time.Hour
	// Clocks of containers and virtual machines may lag behind each other.
	clockSkew = time.Hour
)

// authorities are the certificate authorities: one for everything, and one whose only use is that a request's headers
// name its user (API aggregation), which must not be the one that signs users' certificates.
const (
	clusterCA    = "ca"
	frontProxyCA = "front-proxy-ca"
)

// A leaf is a certificate to be issued: a client's (commonName and organizations are its user and groups) or, where
// serving is set, a server's.
type leaf struct {
	file          string // base name below the PKI directory, without .crt and .key
	authority     string
	commonName    string
	organizations []string
	serving       bool
}

// clients are the identities that get a kubeconfig, which carries their certificate's base name.
func clients() []leaf {
	var addons []leaf
	for _, a := range addon.All() {
		name, groups := a.User()
		// Its ServiceAccount, of which this certificate is a permanent token.
		addons = append(addons, leaf{file: a.Name, authority: clusterCA, commonName: name, organizations: groups})
	}
	return append(addons, []leaf{
		{file: "admin", authority: clusterCA, commonName: "elastic-admin", organizations: []string{"system:masters"}},
		{file: "user", authority: clusterCA, commonName: UserName},
		{file: "controller-manager", authority: clusterCA, commonName: "system:kube-controller-manager"},
		{file: "scheduler", authority: clusterCA, commonName: "system:kube-scheduler"},
		// One agent speaks for all nodes, so it cannot be a system:node, which may touch only its own.
		{file: "node-agent", authority: clusterCA, commonName: "elastic-node-agent", organizations: []string{"system:masters"}},
	}...)
}

func leaves() []leaf {
	return append(clients(),
		leaf{file: "apiserver", authority: clusterCA, commonName: "kube-apiserver", serving: true},
		leaf{file: "scheduler-serving", authority: clusterCA, commonName: "kube-scheduler", serving: true},
		leaf{file: "webhooks", authority: clusterCA, commonName: "webhooks", serving: true},
		leaf{file: "kubelet", authority: clusterCA, commonName: "kubelet", serving: true},
		leaf{file: "apiserver-kubelet-client", authority: clusterCA, commonName: "kube-apiserver-kubelet-client", organizations: []string{"system:masters"}},
		leaf{file: "front-proxy-client", authority: frontProxyCA, commonName: "front-proxy-client"},
	)
}

// serverNames are the names under which every server of the cluster may be addressed: by pods through the Service of
// the API server, and by everyone else through loopback.
func serverNames() (dns []string, ips []net.IP) {
	return []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		[]net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(apiServerServiceIP)}
}

// writePKI makes what is missing in the PKI directory: authorities, certificates and the service accounts' key pair,
// and makes certificates anew that end soon or do not match. What is good is left alone.
func writePKI(layout Layout, now time.Time) error {
	authorities := map[string]*tls.Certificate{}
	for _, name := range []string{clusterCA, frontProxyCA} {
		authority, err := ensureAuthority(layout, name, now)
		if err != nil {
			return fmt.Errorf("certificate authority %q: %w", name, err)
		}
		authorities[name] = authority
	}
	for _, l := range leaves() {
		if err := ensureLeaf(layout, l, authorities[l.authority], now); err != nil {
			return fmt.Errorf("certificate %q: %w", l.file, err)
		}
	}
	if err := ensureServiceAccountKey(layout); err != nil {
		return fmt.Errorf("key pair of the service accounts: %w", err)
	}
	return nil
}

func ensureAuthority(layout Layout, name string, now time.Time) (*tls.Certificate, error) {
	have, err := readKeyPair(layout, name)
	if err == nil && now.Add(renewBefore).Before(have.Leaf.NotAfter) {
		return have, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "simcluster-" + name},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	return issue(layout, name, template, nil)
}

func ensureLeaf(layout Layout, l leaf, authority *tls.Certificate, now time.Time) error {
	template := l.template(now)
	have, err := readKeyPair(layout, l.file)
	if err == nil && l.satisfiedBy(have.Leaf, authority.Leaf, now) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = issue(layout, l.file, template, authority)
	return err
}

func (l leaf) template(now time.Time) *x509.Certificate {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: l.commonName, Organization: l.organizations},
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    now.Add(certificateLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if l.serving {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		template.DNSNames, template.IPAddresses = serverNames()
	}
	return template
}

// satisfiedBy reports whether an existing certificate still is what l asks for.
func (l leaf) satisfiedBy(have, authority *x509.Certificate, now time.Time) bool {
	if now.Before(have.NotBefore) || now.Add(renewBefore).After(have.NotAfter) || have.CheckSignatureFrom(authority) != nil {
		return false
	}
	want := l.template(now)
	return have.Subject.CommonName == want.Subject.CommonName &&
		slices.Equal(have.Subject.Organization, want.Subject.Organization) &&
		slices.Equal(have.ExtKeyUsage, want.ExtKeyUsage) &&
		slices.Equal(have.DNSNames, want.DNSNames) &&
		slices.EqualFunc(have.IPAddresses, want.IPAddresses, net.IP.Equal)
}

// issue makes a key, signs a certificate for it with the authority (nil: with itself) and writes both.
func issue(layout Layout, name string, template *x509.Certificate, authority *tls.Certificate) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, err
	}
	if authority == nil {
		authority = &tls.Certificate{Leaf: template, PrivateKey: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	// The key first: a certificate without its key is not found good at the next start, a key without certificate is
	// merely overwritten.
	if err := writeKey(layout.pki(name+".key"), key); err != nil {
		return nil, err
	}
	if err := writePEM(layout.pki(name+".crt"), "CERTIFICATE", der); err != nil {
		return nil, err
	}
	return &tls.Certificate{Leaf: certificate, PrivateKey: key}, nil
}

// ensureServiceAccountKey makes the key pair that signs service accounts' tokens.
func ensureServiceAccountKey(layout Layout) error {
	private, public := layout.pki("sa.key"), layout.pki("sa.pub")
	_, errPrivate := os.Stat(private)
	_, errPublic := os.Stat(public)
	if errPrivate == nil && errPublic == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return errors.Join(writeKey(private, key), writePEM(public, "PUBLIC KEY", der))
}

// readKeyPair reads NAME.crt and NAME.key and checks that they belong together. A pair that does not is reported as
// one that is not there.
func readKeyPair(layout Layout, name string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(layout.pki(name+".crt"), layout.pki(name+".key"))
	var unreadable *fs.PathError
	if err != nil && !errors.As(err, &unreadable) {
		err = fmt.Errorf("%s: %w: %w", layout.pki(name), err, fs.ErrNotExist)
	}
	return &pair, err
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, blockType string, der []byte) error {
	return writePrivate(path, pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der}))
}
