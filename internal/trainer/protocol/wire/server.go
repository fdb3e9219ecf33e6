package wire

import (
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// handshakeTimeout bounds how long a connection may take to authenticate the server and to begin HTTP/2. gRPC's own
// limit of 120 s would let anybody who reaches the port hold as many connections for so long.
const handshakeTimeout = 10 * time.Second

// Server serves a job's streams, and ends in time whatever is connected to it. gRPC's own Stop waits for every
// connection whose handshake is not over.
type Server struct {
	grpc        *grpc.Server
	connections connections
}

// Serve accepts connections until Stop, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	return s.grpc.Serve(listener{l, &s.connections})
}

// Stop accepts no connections any more, closes those whose handshake is not over, gives the handlers of streams so much
// time to return, and then closes all connections. It returns when all of that is done. A second call waits for the
// first.
func (s *Server) Stop(timeout time.Duration) {
	s.connections.closeUnauthenticated()
	timer := time.AfterFunc(timeout, func() {
		s.connections.closeAll()
		s.grpc.Stop()
	})
	defer timer.Stop()
	s.grpc.GracefulStop()
}

// connections are those that a server has accepted and that are open.
type connections struct {
	mu      sync.Mutex
	open    map[*connection]bool // whether its handshake is over
	ending  bool                 // none is accepted any more
	closing bool                 // none is left open any more
}

// connection is a TCP connection that is known to its server.
type connection struct {
	net.Conn
	of *connections
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// add takes a new connection, which is closed at once where the server has ended.
func (c *connections) add(conn net.Conn) *connection {
	added := &connection{conn, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		_ = conn.Close() // its reader gets an error
		return added
	}
	if c.open == nil {
		c.open = map[*connection]bool{}
	}
	c.open[added] = false
	return added
}

// authenticated reports that a connection's handshake is over: what is on its way on it may be of worth.
func (c *connections) authenticated(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, is := c.open[conn]; is {
		c.open[conn] = true
	}
	if c.closing {
		_ = conn.Conn.Close()
	}
}

func (c *connections) closeUnauthenticated() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	for conn, over := range c.open {
		if !over {
			_ = conn.Conn.Close() // its handshake fails, and closes it
		}
	}
}

func (c *connections) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	for conn := range c.open {
		_ = conn.Conn.Close()
	}
}

// listener makes its connections known.
type listener struct {
	net.Listener
	connections *connections
}

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.connections.add(conn), nil
}

// handshakes are a server's credentials that say of a connection when its handshake is over.
type handshakes struct {
	credentials.TransportCredentials
	connections *connections
}

func (h handshakes) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ServerHandshake(raw)
	if of, is := raw.(*connection); is && err == nil {
		h.connections.authenticated(of)
	}
	return conn, info, err
}

func (h handshakes) Clone() credentials.TransportCredentials {
	return handshakes{h.TransportCredentials.Clone(), h.connections}
}
