package simcluster_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// descendants returns the processes that a process started, and those that these started.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	parents := map[int]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil { // it has ended since
			continue
		}
		// proc_pid_stat(5): pid (name) state ppid …, and the name may contain anything.
		text := string(content)
		child, _, _ := strings.Cut(text, " ")
		fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
		if fields[0] == "Z" {
			continue
		}
		parents[number(t, child)] = number(t, fields[1])
	}
	var found []int
	for child := range parents {
		for ancestor := parents[child]; ancestor != 0; ancestor = parents[ancestor] {
			if ancestor == pid {
				found = append(found, child)
				break
			}
		}
	}
	return found
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// anyAlive names those of the processes that still run.
func anyAlive(pids []int) error {
	var alive []error
	for _, pid := range pids {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		// A zombie has ended; that nobody took notice is its new parent's business.
		text := string(content)
		if fields := strings.Fields(text[strings.LastIndex(text, ")")+1:]); fields[0] == "Z" {
			continue
		}
		if syscall.Kill(pid, 0) == nil {
			alive = append(alive, fmt.Errorf("%s is alive", text))
		}
	}
	return errors.Join(alive...)
}

// A listener is the local address of a socket that others can send to.
type listener struct{ netip.AddrPort }

// listeners returns the addresses at which any of the processes listens.
func listeners(t *testing.T, pids []int) []listener {
	t.Helper()
	sockets := map[string]bool{}
	for _, pid := range pids {
		descriptors, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, descriptor := range descriptors {
			target, err := os.Readlink(descriptor)
			if err != nil { // closed since
				continue
			}
			if inode, ok := strings.CutPrefix(target, "socket:["); ok {
				sockets[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	if len(sockets) == 0 {
		t.Fatal("the processes have no sockets at all")
	}
	var found []listener
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		content, err := os.ReadFile("/proc/net/" + table)
		if errors.Is(err, os.ErrNotExist) { // no IPv6 here
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(content)), "\n")[1:] {
			// proc_pid_net(5): sl local_address rem_address st … inode; 0A is TCP's LISTEN, 07 an unconnected UDP socket.
			fields := strings.Fields(line)
			if len(fields) > 9 && sockets[fields[9]] && (fields[3] == "0A" || fields[3] == "07") {
				found = append(found, listener{address(t, fields[1])})
			}
		}
	}
	return found
}

// address parses an address as the kernel prints it: groups of four bytes, each a little-endian number in hexadecimal.
func address(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	ip, ok := netip.AddrFromSlice(raw)
	number, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		t.Fatal(text, err)
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(number))
}
