package wire

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

const (
	serviceName = "elastic.trainer.v1.Trainer"
	methodName  = "/" + serviceName + "/Work"
	tokenHeader = "authorization"
)

const (
	// A connection whose machine has vanished is ended, and its streams with it; heartbeats keep all others busy.
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 5 * time.Second
	// connectTimeout bounds an attempt to connect to an address that does not answer at all.
	connectTimeout = 3 * time.Second
	// windowBytes is what a peer that does not read takes off our hands: one frame, beside what a Queue holds. Without it
	// gRPC measures the connection and takes up to 16 MiB, which would be as many updates more that nobody has requested.
	windowBytes = 1 << 20
)

var workStream = grpc.StreamDesc{StreamName: "Work", ServerStreams: true, ClientStreams: true}

// Credentials are what master and workers of one job know each other by; a worker's hold no private key.
type Credentials trainingjob.Credentials

// LoadCredentials reads the files of Secret NAME-credentials below dir. A missing private key is no error.
func LoadCredentials(dir string) (Credentials, error) {
	var c Credentials
	var token []byte
	for name, into := range map[string]*[]byte{
		trainingjob.TLSCertificateKey: &c.Certificate, trainingjob.TLSPrivateKey: &c.PrivateKey, trainingjob.TokenKey: &token,
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && (name != trainingjob.TLSPrivateKey || !errors.Is(err, os.ErrNotExist)) {
			return Credentials{}, fmt.Errorf("read the job's credentials: %w", err)
		}
		*into = b
	}
	c.Token = strings.TrimSpace(string(token))
	return c, nil
}

// Save writes the files that LoadCredentials reads, readable by the owner alone.
func (c Credentials) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, b := range map[string][]byte{
		trainingjob.TLSCertificateKey: c.Certificate, trainingjob.TLSPrivateKey: c.PrivateKey,
		trainingjob.TokenKey: []byte(c.Token),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// NewServer returns a server that calls handle for every worker that knows the job's token. Others are refused,
// and logged.
func NewServer(c Credentials, log *slog.Logger, handle func(grpc.ServerStream) error, options ...grpc.ServerOption) (*Server, error) {
	pair, err := tls.X509KeyPair(c.Certificate, c.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("the job's certificate: %w", err)
	}
	s := &Server{}
	secure := credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	s.grpc = grpc.NewServer(append([]grpc.ServerOption{
		grpc.Creds(handshakes{secure, &s.connections}),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxRecvMsgSize(maxFrameBytes),
		grpc.MaxSendMsgSize(maxFrameBytes),
		grpc.StaticStreamWindowSize(windowBytes),
		grpc.StaticConnWindowSize(windowBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
	}, options...)...)
	stream := workStream
	stream.Handler = func(_ any, stream grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(stream.Context())
		if tokens := md.Get(tokenHeader); len(tokens) != 1 || subtle.ConstantTimeCompare([]byte(tokens[0]), []byte("Bearer "+c.Token)) != 1 {
			from := "an unknown address"
			if p, ok := peer.FromContext(stream.Context()); ok {
				from = p.Addr.String()
			}
			log.Warn("rejected a worker with a wrong token", "from", from)
			return status.Error(codes.Unauthenticated, "the token is not this job's: the worker belongs to another job, or to an earlier run of this one")
		}
		return handle(stream)
	}
	s.grpc.RegisterService(&grpc.ServiceDesc{ServiceName: serviceName, HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{stream}}, nil)
	return s, nil
}

// Dial prepares a connection to a master; it connects when a stream is opened.
func Dial(address string, c Credentials, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.Certificate) {
		return nil, errors.New("the job's certificate is not PEM")
	}
	serverName, err := c.serverName()
	if err != nil {
		return nil, err
	}
	return grpc.NewClient("passthrough:///"+address, append([]grpc.DialOption{
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: serverName, MinVersion: tls.VersionTLS13})),
		grpc.WithPerRPCCredentials(bearer(c.Token)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: connectTimeout}),
		grpc.WithStaticStreamWindowSize(windowBytes),
		grpc.WithStaticConnWindowSize(windowBytes),
		grpc.WithNoProxy(), // workers reach their master directly, whatever the environment says
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(maxFrameBytes), grpc.MaxCallSendMsgSize(maxFrameBytes)),
	}, options...)...)
}

// Open opens the one stream of a worker.
func Open(ctx context.Context, conn *grpc.ClientConn) (grpc.ClientStream, error) {
	return conn.NewStream(ctx, &workStream, methodName)
}

// serverName is the name in the job's certificate: the worker trusts exactly this one, under whatever address the
// master is reached.
func (c Credentials) serverName() (string, error) {
	certificate, err := parseCertificate(c.Certificate)
	if err != nil {
		return "", err
	}
	if len(certificate.DNSNames) == 0 {
		return "", errors.New("the job's certificate names no server")
	}
	return certificate.DNSNames[0], nil
}

type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{tokenHeader: "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }

func parseCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the job's certificate is not PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}
