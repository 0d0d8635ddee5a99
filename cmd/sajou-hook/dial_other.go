//go:build !linux

package main

import (
	"context"
	"io"
	"net"
)

func dial(ctx context.Context, network, address string) (io.ReadWriteCloser, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}
