package trainingjob

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
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

// SignatureKey of ConfigMap NAME-job has the signature of the other keys. The master makes pods of what it finds there,
// and runs it. Without a signature, who may change a ConfigMap of the namespace could make any pod and run any program.
const SignatureKey = "signature"

// SignedFlag of the master means that its ConfigMap has a signature. It is in the template of the Job, which nobody can
// change.
const SignedFlag = "--signed"

// Sign returns the signature (HMAC) of the ConfigMap's data. Only the creator of the job and its master can make it, as
// they may read Secret NAME-credentials. The key is the master's private one, which workers do not have.
func Sign(data map[string]string, c Credentials) string {
	mac := hmac.New(sha256.New, c.PrivateKey)
	for _, key := range []string{JobKey, WorkersKey, ModelKey, DefinitionKey} {
		text := data[key]
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		mac.Write([]byte(text))
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// ForgedError is a ConfigMap NAME-job that somebody has changed who is not the job's maker.
type ForgedError struct{ Namespace, Name string }

func (e *ForgedError) Error() string {
	return fmt.Sprintf("ConfigMap %s/%s is not as the job's maker wrote it: its signature does not match. Somebody has changed it otherwise than by Terraform; "+
		"terraform apply sets back what differs, and `kubectl get configmap -n %[1]s %[2]s -o yaml --show-managed-fields` says who it was", e.Namespace, e.Name)
}

// Verify is a ForgedError where the ConfigMap was not signed with these credentials.
func Verify(configMap *corev1.ConfigMap, c Credentials) error {
	if !hmac.Equal([]byte(configMap.Data[SignatureKey]), []byte(Sign(configMap.Data, c))) {
		return &ForgedError{configMap.Namespace, configMap.Name}
	}
	return nil
}
