package main

import (
	"context"
	"fmt"
	"net"
	"os/user"
	"strconv"
	"sync"

	"mailtree/gateway"
)

// takeMail starts a server that receives mail from other domains until ctx ends, if the settings allow it. It returns
// once the server is listening. If the server cannot listen, takeMail returns an error that contains the address. It
// sends later errors to failed.
func (a *app) takeMail(ctx context.Context, running *sync.WaitGroup, failed chan<- error) error {
	settings := &a.cfg.Gateway
	if a.cfg.background || len(settings.Listen) == 0 {
		return nil
	}
	incoming := &gateway.Incoming{Store: a.store, Spool: a.spool, Bounce: a.outgoing.Bounce, Log: a.log}
	missing, err := incoming.Missing(ctx, settings)
	if err != nil {
		a.log.Warn("cannot look up the mailboxes named in the settings", "error", err)
	}
	for _, name := range missing {
		a.log.Warn("a mailbox named in the settings does not exist; its mail is deferred until you create it", "mailbox", name)
	}
	server := incoming.Server(settings, groupOf(settings.MTAUser))
	listening, ended := make(chan struct{}), make(chan error, 1)
	running.Go(func() {
		err := server.Run(ctx, func(all []net.Listener) {
			for _, l := range all {
				a.log.Info("receiving mail from other domains", "at", l.Addr())
			}
			close(listening)
		})
		if err != nil {
			err = fmt.Errorf("GATEWAY_LISTEN: %w", err)
		}
		ended <- err
	})
	select {
	case <-listening:
	case err := <-ended:
		return err
	}
	running.Go(func() {
		if err := <-ended; err != nil {
			failed <- err
		}
	})
	return nil
}

// groupOf returns the primary group of the OS user with the given uid, or 0 if the user is unknown.
func groupOf(uid int) int {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return 0
	}
	gid, _ := strconv.Atoi(u.Gid) // group ids are numbers on all systems that this program supports
	return gid
}
