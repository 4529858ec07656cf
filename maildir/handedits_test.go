package maildir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// edited is a store in which a user edits files by hand.
type edited struct {
	t *testing.T
	*storetest.Store
	p *maildir.Project
}

// write writes a file in the store's folder, or removes the file if text is "".
func (e *edited) write(path, text string) {
	e.t.Helper()
	file := filepath.Join(e.Root(), path)
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if text == "" {
		err = os.RemoveAll(file)
	} else if err == nil {
		err = os.WriteFile(file, []byte(text), 0o600)
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// inTree is like write, for a file in the project's tree.
func (e *edited) inTree(path, text string) { e.write("projects/"+e.p.Slug+"/repo/"+path, text) }

// beside is like write, for a file next to the project's tree.
func (e *edited) beside(path, text string) { e.write("projects/"+e.p.Slug+"/"+path, text) }

// means reports whether a key identifies the project with the given slug. If slug is "", it reports whether the key
// identifies no project at all.
func (e *edited) means(key, slug string) bool {
	p, err := e.Project(e.t.Context(), key)
	if slug == "" {
		return errors.Is(err, maildir.ErrNotFound)
	}
	return err == nil && p.Slug == slug
}

// ann returns what Whois returns for the agent Ann, or nil if there is no such agent.
func (e *edited) ann() *maildir.AgentInfo {
	a, err := e.p.Agents.Whois(e.t.Context(), "Ann")
	if err != nil && !errors.Is(err, maildir.ErrNotFound) {
		e.t.Fatal(err)
	}
	return a
}

// mailbox returns Ann's mailbox for the user root.
func (e *edited) mailbox() *maildir.UserBox {
	e.t.Helper()
	box, err := e.p.As(maildir.Caller{Root: true}, format.Origin{}).Box(e.t.Context(), "Ann")
	if err != nil {
		e.t.Fatal(err)
	}
	return box
}

// TestHandEdits checks, for each kind of file that a user may edit while a server is running, that the server notices
// an edit. When the test ends, storetest checks that a restarted server returns the same results.
func TestHandEdits(t *testing.T) {
	t.Parallel()
	identity := func(key string) string {
		return fmt.Sprintf(`{"human_key": %q, "slug": "s", "created": "2026-01-01T00:00:00Z"}`+"\n", key)
	}
	claim := `{"path": "app/*.go", "agent": "Ann", "created": "2026-01-02T15:22:14Z", "expires": "2099-01-01T00:00:00Z"}`
	for name, c := range map[string]struct {
		edit func(e *edited)
		is   func(e *edited) bool
	}{
		"the project's path": {
			func(e *edited) { e.inTree("project.json", identity("/abs/moved")) },
			func(e *edited) bool {
				_, verified := e.VerifiedIn(&inbox(t, e.p, "Ann").Messages[0].MessageRow)
				return e.p.HumanKey() == "/abs/moved" && e.means("/abs/moved", e.p.Slug) && e.means("/abs/moved/below", "") && verified
			},
		},
		"the project's time": {
			func(e *edited) {
				second, err := e.EnsureProject(t.Context(), "/abs/second")
				if err != nil || !e.means("/abs/second", second.Slug) {
					e.t.Fatal(err)
				}
				e.inTree("project.json", identity("/abs/second"))
			},
			func(e *edited) bool { return e.means("/abs/second", e.p.Slug) }, // the path belongs to the older project
		},
		"an invalid project.json": {
			func(e *edited) { e.inTree("project.json", `{"human_key": "relative"}`) },
			func(e *edited) bool { return e.p.HumanKey() == "" },
		},
		"no project.json": {
			func(e *edited) { e.inTree("project.json", "") },
			func(e *edited) bool { return e.p.HumanKey() == "" && e.p.Created().IsZero() },
		},
		"the path beside the tree": {
			func(e *edited) { e.beside("shared.json", `{"on": false, "human_key": "/abs/here"}`) },
			func(e *edited) bool { return e.p.HumanKey() == "/abs/here" && e.means("/abs/here", e.p.Slug) },
		},
		"the sync": {
			func(e *edited) { e.beside("shared.json", `{"on": true, "human_key": "/abs/path/shop"}`) },
			func(e *edited) bool { return e.p.Sync.State().On },
		},
		"an agent's profile": {
			func(e *edited) { e.inTree("agents/Ann/profile.json", `{"name": "Ann", "task": "another"}`) },
			func(e *edited) bool { return e.ann().Task == "another" },
		},
		"an agent's status": {
			func(e *edited) { e.inTree("agents/Ann/status", "work\n") },
			func(e *edited) bool { return e.ann().Status == format.Work },
		},
		"an agent's folder": {
			func(e *edited) { e.inTree("agents/Ann", "") },
			func(e *edited) bool { return e.ann() == nil },
		},
		"a claim": {
			func(e *edited) { e.inTree("claims/a.json", claim) },
			func(e *edited) bool { return len(e.ann().Claims) == 1 },
		},
		"a released claim": {
			func(e *edited) {
				e.inTree("claims/a.json", claim)
				until(e.t, "there is a claim", func() bool { return len(e.ann().Claims) == 1 })
				e.inTree("claims/a.released", "2026-01-03T00:00:00Z\n")
			},
			func(e *edited) bool {
				all, err := e.p.Claims.List(t.Context(), true)
				return err == nil && len(all) == 1 && all[0].Released
			},
		},
		"the owners": {
			func(e *edited) { e.write("owners.json", fmt.Sprintf(`{"%s/Ann": 4711}`, e.p.Slug)) },
			func(e *edited) bool {
				m, err := e.p.As(maildir.Caller{Root: true}, format.Origin{}).Mailbox(t.Context(), "Ann")
				return err == nil && m.Owner == 4711
			},
		},
		"the hooks": {
			func(e *edited) {
				e.write("hooks.json", fmt.Sprintf(`[{"project": %q, "mailbox": "Ann", "name": "x", "event": "on_receive",`+
					` "cmd": ["/bin/true"], "created": "2026-01-01T00:00:00Z"}]`, e.p.Slug))
			},
			func(e *edited) bool {
				hooks, err := e.p.As(maildir.Caller{Root: true}, format.Origin{}).Hooks(t.Context(), "Ann")
				return err == nil && len(hooks) == 1
			},
		},
		"the trusted senders": {
			func(e *edited) {
				e.write("trusted_senders.json", fmt.Sprintf(`{"%s/Ann": ["@example.org"]}`, e.p.Slug))
			},
			func(e *edited) bool {
				trusted, err := e.mailbox().TrustedSenders()
				return err == nil && len(trusted) == 1
			},
		},
		"damaged owners": {
			func(e *edited) { e.write("owners.json", "{") },
			func(e *edited) bool {
				_, err := e.p.As(maildir.Caller{Root: true}, format.Origin{}).Mailbox(t.Context(), "Ann")
				return errors.Is(err, maildir.ErrUnavailable)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := newHandClock().now // the clock is stopped, so that no cached value expires
			e := &edited{t: t, Store: storetest.Open(t, storetest.Config{Sync: onlyAsked, Now: now})}
			e.p = projectIn(t, e.Store.Store, "Ann")
			send(t, e.p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b"})
			if !e.means(shop, e.p.Slug) || c.is(e) {
				t.Fatal("the edit was noticed before it was made")
			}
			c.edit(e)
			until(t, "the edit counts", func() bool { return c.is(e) })
		})
	}
}
