package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// listen opens the TCP port. Errors say what to do.
func listen(ctx context.Context, cfg *config) (net.Listener, error) {
	addr := net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.Port))
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w. Is another server there? Choose another with PORT or --port, or "+
			"--port 0 for any free one", addr, errors.Unwrap(err))
	}
	return ln, nil
}
