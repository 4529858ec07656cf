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

// takeMail takes mail of other domains, if the settings say so, until ctx ends. It returns when the server
// listens. It returns the errors of listening, which name the address; later ones go to failed.
func (a *app) takeMail(ctx context.Context, running *sync.WaitGroup, failed chan<- error) error {
	settings := &a.cfg.Gateway
	if a.cfg.background || len(settings.Listen) == 0 {
		return nil
	}
	incoming := &gateway.Incoming{Store: a.store, Spool: a.spool, Bounce: a.outgoing.Bounce, Log: a.log}
	missing, err := incoming.Missing(ctx, settings)
	if err != nil {
		a.log.Warn("cannot look up the mailboxes in the settings now", "error", err)
	}
	for _, name := range missing {
		a.log.Warn("a mailbox in the settings does not exist: mail for it is deferred until the mailbox is created", "mailbox", name)
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

// groupOf returns the group of the user uid; 0 if there is none.
func groupOf(uid int) int {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return 0
	}
	gid, _ := strconv.Atoi(u.Gid) // on the systems that this runs on it is a number
	return gid
}
