package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir/claim"
	"mailtree/maildir/tree"
	"mailtree/mcp/mail"
)

// TestFaultClaims checks that exactly one agent gets a path if agents on three machines claim the path at the same
// time. It repeats this contest many times. Meanwhile, the machines are killed and lose access to the shared
// repository, and one clock is an hour off. In the end, the claim files on all machines show which agent won each path.
func TestFaultClaims(t *testing.T) {
	longer(t)
	t.Parallel()
	contests := extent(40, 1000) // each contest takes about three seconds
	bare, machines := threeMachines(t, func(m *machine, i int) []string {
		return []string{"SYNC_INTERVAL=10s", faultClockEnv + "=" + []string{"0s", "0s", "1h"}[i]}
	})
	var all []*claimer
	for _, m := range machines {
		all = append(all, &claimer{machine: m})
	}

	var winners []string
	killed := 0
	for n := range contests {
		pattern := fmt.Sprintf("path%d/**", n)
		if n%10 == 5 { // a partition: without HEAD, Git does not recognize the repository
			if err := os.Rename(bare+"/HEAD", bare+"/away"); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(rand.N(500*time.Millisecond), func() { _ = os.Rename(bare+"/away", bare+"/HEAD") })
		}
		var asking sync.WaitGroup
		for _, m := range all {
			kill := rand.N(60) == 0
			if kill {
				killed++
			}
			asking.Go(func() { m.claim(pattern, kill) })
		}
		asking.Wait()
		winner := ""
		for _, m := range all {
			if m.won {
				winner += m.agent
			}
		}
		for _, m := range all {
			if !m.won && m.holder != winner {
				t.Fatalf("contest %d: won by %q, but %s was told that %q won", n, winner, m.agent, m.holder)
			}
		}
		if winners = append(winners, winner+" "+pattern); len(winners) == 50 || n == contests-1 {
			sortOut(all, winners)
			winners = nil
		}
	}
	for _, m := range all {
		m.stop()
		for _, p := range storetest.CheckEdited(t.Context(), m.store) {
			t.Error(p)
		}
	}
	t.Logf("%d contested claims on three machines, each won once; %d kills", contests, killed)
}

// sortOut checks that the claim files on all machines match the claims that the agents have won. Then it releases all
// claims, and checks again.
func sortOut(all []*claimer, winners []string) {
	slices.Sort(winners)
	for _, want := range [][]string{winners, nil} {
		for range 2 {
			for _, m := range all {
				m.must(m.verb("sync", "project", faultKey))
			}
		}
		for _, m := range all {
			at, err := tree.Open(m.tree(), 0)
			m.must("", err)
			files, bad, err := claim.Files(at, func(r *claim.Row) bool { return r.Live(time.Now()) })
			at.Close()
			var held []string
			for _, f := range files {
				held = append(held, f.Agent+" "+f.Pattern)
			}
			slices.Sort(held)
			if err != nil || len(bad) > 0 || !slices.Equal(held, want) {
				m.t.Errorf("the files on %s's machine say %q, want %q (%v, %v)", m.agent, held, want, bad, err)
			}
			m.must("", m.call("release_claims", map[string]any{"project_key": faultKey, "agent_name": m.agent}, nil))
		}
	}
}

// claimer is one of the machines in TestFaultClaims.
type claimer struct {
	*machine
	won    bool   // this machine won the last contest
	holder string // the agent that won the last contest, if this machine did not
}

// claim claims a pattern, and repeats the call until it gets a response. If kill is set, the server is killed during
// the call.
func (m *claimer) claim(pattern string, kill bool) {
	var res mail.Claimed
	ask := func() error {
		return m.call("claim_paths", map[string]any{"project_key": faultKey, "agent_name": m.agent, "paths": []string{pattern},
			"ttl_seconds": 24 * 60 * 60}, &res)
	}
	killed := make(chan struct{})
	if kill {
		time.AfterFunc(rand.N(200*time.Millisecond), func() { m.kill(); close(killed) })
	}
	err := ask()
	if kill {
		<-killed
		m.start()
	}
	for deadline := time.Now().Add(2 * time.Minute); err != nil; err = ask() {
		if time.Now().After(deadline) {
			m.t.Errorf("%s: %v", m.agent, err)
			return
		}
		if !kill && !strings.Contains(err.Error(), "CLAIM_OFFLINE=local") {
			m.t.Errorf("%s: %v", m.agent, err)
			return
		}
	}
	m.won, m.holder = len(res.Granted) == 1, ""
	if len(res.Conflicts) > 0 {
		m.holder = res.Conflicts[0].Holder
	}
}

// onShared turns on sync for the project, although no other machine has joined yet. It then runs a sync, which brings
// the list of claims on this machine up to date. Without this sync, the sync at a server's start would take extra
// steps, and even more if the list were out of date.
func onShared(s *steps) {
	if _, err := os.Stat(s.bare()); err != nil {
		s.git(".", "init", "-q", "--bare", "-b", "main", s.bare())
		s.git(s.d.tree(), "remote", "add", "origin", s.bare())
	}
	_, err := s.d.verb("sync", "project", faultKey)
	s.must(err)
}
