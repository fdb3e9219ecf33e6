package trainingjob

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys of Secret NAME-credentials, and the names of its files in CredentialsDir. Workers get no TLSPrivateKey.
const (
	TLSCertificateKey = "tls.crt" // PEM; the workers' only root
	TLSPrivateKey     = "tls.key" // PEM, PKCS #8
	TokenKey          = "token"   // 64 hexadecimal digits
)

// credentialsYears is longer than any job: nothing renews the certificate while it runs.
const credentialsYears = 10

// Credentials are what master and workers of one job know each other by. They live in a Secret and nowhere else.
type Credentials struct {
	Certificate []byte // PEM
	PrivateKey  []byte // PEM
	Token       string // 256 bits as hexadecimal digits
}

// NewCredentials makes a self-signed ECDSA P-256 certificate for the given server names, valid for ten years from
// now, and a token. A worker trusts exactly this certificate, and asks for names[0].
func NewCredentials(random io.Reader, now time.Time, names ...string) (Credentials, error) {
	if len(names) == 0 {
		return Credentials{}, errors.New("make the job's certificate: it needs a server name")
	}
	token := make([]byte, 32)
	serial := make([]byte, 16)
	for _, b := range [][]byte{token, serial} {
		if _, err := io.ReadFull(random, b); err != nil {
			return Credentials{}, fmt.Errorf("make the job's token: %w", err)
		}
	}
	serial[0] &= 0x7f // RFC 5280: positive
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return Credentials{}, fmt.Errorf("make the job's key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          new(big.Int).SetBytes(serial),
		Subject:               pkix.Name{CommonName: names[0]},
		DNSNames:              names,
		NotBefore:             now.Add(-time.Hour), // clocks of nodes differ
		NotAfter:              now.AddDate(credentialsYears, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(random, template, template, key.Public(), key)
	if err != nil {
		return Credentials{}, fmt.Errorf("make the job's certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Credentials{}, fmt.Errorf("encode the job's key: %w", err)
	}
	return Credentials{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		PrivateKey:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		Token:       hex.EncodeToString(token),
	}, nil
}

// CredentialsOf are those of Secret NAME-credentials.
func CredentialsOf(secret *corev1.Secret) Credentials {
	return Credentials{Certificate: secret.Data[TLSCertificateKey], PrivateKey: secret.Data[TLSPrivateKey], Token: string(secret.Data[TokenKey])}
}
