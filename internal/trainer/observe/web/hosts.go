package web

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
)

// HostsVariable names the further hosts, separated by commas, under which a page may be requested: those of an Ingress.
const HostsVariable = "ELASTIC_STATUS_HOSTS"

// hosts are the further names under which a page is served. A site can have its own name point to a private address,
// and its scripts then read what is there (DNS rebinding). It cannot do that to an address, to localhost, to a name
// without a dot, or to one that only the cluster's DNS has.
type hosts []string

func hostsFromEnvironment() hosts {
	var h hosts
	for name := range strings.SplitSeq(os.Getenv(HostsVariable), ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" {
			h = append(h, name)
		}
	}
	return h
}

// allow reports whether a request's Host is one that nobody outside can have taken. Without one it is no browser's.
func (h hosts) allow(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if address, _, _ := strings.Cut(host, "%"); net.ParseIP(address) != nil || !strings.Contains(host, ".") {
		return true
	}
	ours := func(domain string) bool { return strings.HasSuffix(host, domain) }
	return slices.ContainsFunc([]string{".localhost", ".svc", ".svc.cluster.local"}, ours) || slices.Contains(h, host)
}

func (hosts) refusal(host string) string {
	return fmt.Sprintf("this job's page is not served as %.100q: open it by an address, by localhost (kubectl port-forward) or by its Service (NAME-master.NAMESPACE.svc), "+
		"or set %s=NAME in the master's env, as for an Ingress", host, HostsVariable)
}
