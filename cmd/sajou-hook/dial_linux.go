package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// dial connects to an address of this machine or of another one whose address is a number.
// Package net would take as much time at the start of the program as the delivery itself.
func dial(ctx context.Context, network, address string) (io.ReadWriteCloser, error) {
	family, to, err := socketAddress(network, address)
	if err != nil {
		return nil, err
	}
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	c := &connection{fd: fd}
	if deadline, ok := ctx.Deadline(); ok {
		// It bounds connect, which a shutdown does not interrupt, and each read and write.
		// A timeout of 0 would be none at all.
		left := syscall.NsecToTimeval(int64(max(time.Until(deadline), time.Millisecond)))
		for _, option := range []int{syscall.SO_SNDTIMEO, syscall.SO_RCVTIMEO} {
			if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, option, &left); err != nil {
				return nil, errors.Join(os.NewSyscallError("setsockopt", err), c.Close())
			}
		}
	}
	if err := syscall.Connect(fd, to); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", address, err), c.Close())
	}
	return c, nil
}

func socketAddress(network, address string) (family int, to syscall.Sockaddr, err error) {
	if network == "unix" {
		return syscall.AF_UNIX, &syscall.SockaddrUnix{Name: address}, nil
	}
	if port, local := strings.CutPrefix(strings.ToLower(address), "localhost:"); local {
		address = "127.0.0.1:" + port
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return 0, nil, fmt.Errorf("%s is not an address in numbers, and this program does not resolve names; use sajou-replay hook", strconv.Quote(address))
	}
	ip := at.Addr().Unmap()
	switch {
	case ip.Zone() != "":
		return 0, nil, fmt.Errorf("%s has a zone; use sajou-replay hook", address)
	case ip.Is4():
		return syscall.AF_INET, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: ip.As4()}, nil
	}
	return syscall.AF_INET6, &syscall.SockaddrInet6{Port: int(at.Port()), Addr: ip.As16()}, nil
}

// connection is a connected socket that blocks.
type connection struct{ fd int }

func (c *connection) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(c.fd, p)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (c *connection) Write(p []byte) (sent int, err error) {
	for sent < len(p) {
		// Without the flag a server that is gone would end the process by SIGPIPE.
		n, err := syscall.SendmsgN(c.fd, p[sent:], nil, nil, syscall.MSG_NOSIGNAL)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return sent, os.NewSyscallError("write", err)
		}
		sent += max(n, 0)
	}
	return sent, nil
}

// Close wakes a reader, and leaves the descriptor to the end of the process: another
// thread may still use it.
func (c *connection) Close() error {
	err := syscall.Shutdown(c.fd, syscall.SHUT_RDWR)
	if errors.Is(err, syscall.ENOTCONN) {
		return nil
	}
	return err
}
