//go:build linux

package main

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// operation is one kind of operation in TestFaultErrno.
type operation struct {
	name string
	// prepare brings the store into a state in which the operation has something to do. No fault is armed yet.
	prepare func(r *peril)
	// do performs the operation with the fault armed, and returns when there is a response. If a user performs the
	// operation, there is no response. In that case, do returns when the server has noticed the operation, or when the
	// fault has struck.
	do func(r *peril) error
	// after tries something that must still be impossible once the fault is over.
	after func(r *peril, err error)

	beside  bool   // a user or the server performs the operation, so there is no response
	history bool   // the history performs the operation, so calls for the history's files are counted too
	every   bool   // calls for files from earlier attempts are counted too
	slow    bool   // attempts are slow, or become slower, so there are fewer of them
	takes   string // text in the paths that the operation removes; empty if it removes none
}

// most returns the maximum number of times that a call at one site fails with the same errno.
func (op *operation) most() int {
	if op.slow {
		return extent(1, 2)
	}
	return extent(2, 8)
}

// share returns n such that one in n calls fails.
func (op *operation) share() int {
	if op.slow {
		return extent(9*slower, 1)
	}
	return extent(3*slower, 1)
}

func (op *operation) removes(path string) bool {
	return op.takes != "" && strings.Contains(path, op.takes)
}

// perilous lists the operations under test. Ann sends to Bob and Cid, and claims a path that Bob also wants. A user
// edits Dora's files.
var perilous = []operation{
	{name: "send", prepare: fresh, do: (*peril).mail, after: noMore},
	{name: "register", prepare: fresh, do: (*peril).register, after: noMore},
	{name: "first mail", prepare: newcomer, do: (*peril).welcomeMail, after: noMore, slow: true},
	{name: "acknowledge", prepare: delivered, do: (*peril).confirm, after: noMore},
	{name: "mark read", prepare: delivered, do: (*peril).readPage, after: noMore},
	{name: "pop", prepare: onlyOne, do: (*peril).checkMail, after: noMore},
	{name: "claim", prepare: fresh, do: (*peril).firstClaim, after: (*peril).secondClaim},
	{name: "renew", prepare: claimed, do: (*peril).firstClaim, after: (*peril).secondClaim},
	{name: "release", prepare: claimed, do: (*peril).giveBack, after: (*peril).secondClaim},
	{name: "edit", prepare: delivered, do: (*peril).editMessage, after: noMore, beside: true},
	{name: "edit of a profile", prepare: known, do: (*peril).editProfile, after: (*peril).stillThere, beside: true},
	{name: "claim by hand", prepare: fresh, do: (*peril).claimByHand, after: (*peril).secondClaim, beside: true},
	{name: "edit of a claim", prepare: claimed, do: (*peril).claimByHand, after: (*peril).secondClaim, beside: true},
	{name: "mark by hand", prepare: delivered, do: (*peril).markByHand, after: (*peril).touchAgain, beside: true, slow: true},
	{name: "removal", prepare: delivered, do: (*peril).removeCopy, after: (*peril).putBack, beside: true, takes: "agents/Cid/inbox/"},
	{name: "rest", prepare: delivered, do: (*peril).waitForRest, after: noMore, beside: true, slow: true},
	{name: "compare", prepare: delivered, do: (*peril).compareTree, after: noMore, every: true, slow: true},
	{name: "commit", prepare: changed, do: (*peril).flush, after: (*peril).committed, history: true, slow: true},
}

func noMore(*peril, error) {}

func fresh(*peril) {}

// newcomer registers an agent without mail. The agent's folders are created with its first message.
func newcomer(r *peril) {
	if err := r.register(); err != nil {
		r.d.t.Fatal(err)
	}
}

func known(r *peril) { r.before = true }

// delivered sends a message to Bob's and Cid's inboxes.
func delivered(r *peril) {
	r.d.t.Helper()
	until(r.d.t, "mail is sent", time.Minute, func() bool { return r.mail() == nil && r.id != "" })
	r.before = true
}

// onlyOne is like delivered, but leaves nothing else unread in Bob's inbox.
func onlyOne(r *peril) {
	r.d.t.Helper()
	until(r.d.t, "the inbox is read", time.Minute, func() bool { return r.checkMail() == nil && r.got == "" && r.unread("Bob") == 0 })
	delivered(r)
}

func claimed(r *peril) {
	r.d.t.Helper()
	until(r.d.t, "a claim is granted", time.Minute, func() bool { return r.firstClaim() == nil && r.holder() != "" })
	r.before = true
}

// changed is like delivered, but the message has also been acknowledged, and edited by a user.
func changed(r *peril) {
	delivered(r)
	for _, err := range []error{r.confirm(), r.editMessage()} {
		if err != nil {
			r.d.t.Fatal(err)
		}
	}
}

// mail sends a message to Bob and Cid.
func (r *peril) mail() error {
	n := len(r.boxes["Bob"])
	err := r.send(r.from("Ann", []string{"Bob"}, "Cid"))
	if len(r.boxes["Bob"]) > n {
		r.id = r.boxes["Bob"][n]
	}
	return err
}

// welcomeMail sends a message to the newcomer.
func (r *peril) welcomeMail() error {
	to := r.newcomer()
	n := len(r.boxes[to])
	err := r.send(r.from("Ann", []string{to}))
	if len(r.boxes[to]) > n {
		r.id = r.boxes[to][n]
	}
	return err
}

// from returns a message from the agent. No other message has the same text.
func (r *peril) from(agent string, to []string, cc ...string) message {
	text := fmt.Sprintf("The text of %s, send %d.", r.word, r.serial.Add(1))
	return message{From: agent, To: to, CC: append([]string{}, cc...), BCC: []string{}, Subject: "s", Body: text, Project: faultKey}
}

func (r *peril) newcomer() string { return fmt.Sprintf("Agent%d", r.n) }

func (r *peril) register() error {
	args := map[string]string{"project_key": faultKey, "program": "p", "model": "m", "task_description": "t", "name_hint": r.newcomer()}
	return r.answer(r.d.call("create_agent", args, nil))
}

// confirm acknowledges the message.
func (r *peril) confirm() error {
	r.ledger.Ask("Bob", r.id)
	err := r.d.call("acknowledge_message", map[string]string{"project_key": faultKey, "agent_name": "Bob", "message_id": r.id}, nil)
	if err == nil {
		r.ledger.Ack("Bob", r.id)
	}
	return r.answer(err)
}

// readPage lists the message and marks it as read.
func (r *peril) readPage() error {
	r.ledger.Ask("Bob", r.id)
	var page struct{ Messages []struct{ ID string } }
	args := map[string]any{"project_key": faultKey, "agent_name": "Bob", "mark_read": true, "unread_only": true}
	err := r.d.call("check_my_messages", args, &page)
	if err == nil && !r.has("agents/Bob/inbox/*/*/*/"+r.id+".read") {
		r.bad("answered, but %s is not marked read (it was on the page: %v)", r.id, len(page.Messages) > 0)
	}
	return r.answer(err)
}

// checkMail pops a message.
func (r *peril) checkMail() error {
	var m struct{ ID string }
	r.ledger.AskPop("Bob")
	err := r.d.callAt("/agents/Bob/mcp?project="+faultKey, "check_mail", map[string]int{}, &m)
	if r.got = m.ID; err == nil || denied(err) {
		r.ledger.Pop("Bob", r.got)
	}
	if err == nil && r.got == "" && r.id != "" && r.machine() && !r.has("agents/Bob/inbox/*/*/*/"+r.id+".read") {
		r.bad("answered that there is no mail, but %s is in the inbox and unread", r.id)
	}
	return r.answer(err)
}

func (r *peril) firstClaim() error { return r.claim("Ann", strings.TrimPrefix(r.pattern, "Ann/")) }

// contest requests a claim on Ann's pattern for Bob.
func (r *peril) contest() error {
	held := r.holder()
	granted, _, err := r.askClaim("Bob", false)
	if granted && held != "" {
		r.bad("Bob was granted %s, which %s holds", r.pattern, held)
	}
	return r.answer(err)
}

// secondClaim is like contest, but runs after the fault. A claim file that cannot be read because of the file itself is
// a problem: the claim has no effect until the file is fixed. The call that fails may be the watcher's, which reads the
// file again after any operation, so the claim must be back first.
func (r *peril) secondClaim(error) {
	r.d.t.Helper()
	if !r.machine() {
		r.agree()
	}
	if err := r.contest(); err != nil {
		r.d.t.Fatal(err)
	}
}

// askClaim requests a claim on Ann's pattern for the given agent.
func (r *peril) askClaim(agent string, dryRun bool) (granted, conflict bool, err error) {
	var res struct{ Granted, Conflicts []struct{} }
	err = r.d.call("claim_paths", r.claimArgs(agent, dryRun), &res)
	return len(res.Granted) > 0, len(res.Conflicts) > 0, err
}

func (r *peril) claimArgs(agent string, dryRun bool) map[string]any {
	return map[string]any{"project_key": faultKey, "agent_name": agent, "paths": []string{r.pattern}, "dry_run": dryRun}
}

func (r *peril) giveBack() error {
	r.ledger.Unclaim("Ann", r.pattern)
	args := map[string]any{"project_key": faultKey, "agent_name": "Ann", "paths": []string{r.pattern}}
	return r.answer(r.d.call("release_claims", args, nil))
}

// noticed waits until the server has noticed a user's change, or until the fault has struck.
func (r *peril) noticed(ok func() bool) {
	for began := time.Now(); !ok() && !r.struck() && time.Since(began) < differMost; time.Sleep(2 * time.Millisecond) {
	}
}

// save saves a file by renaming a new file over it, as some editors do.
func (r *peril) save(path string, data []byte) {
	r.d.t.Helper()
	file := filepath.Join(r.tree, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		r.d.t.Fatal(err)
	}
	if err := (&person{rename: true}).write(file, data); err != nil {
		r.d.t.Fatal(err)
	}
}

// editMessage adds another word to the canonical message.
func (r *peril) editMessage() error {
	path := r.one("messages/*/*/*/" + r.id + ".md")
	data, err := os.ReadFile(filepath.Join(r.tree, path))
	if err != nil {
		return err
	}
	word := fmt.Sprintf("edit%dx", r.n)
	data = append(data, "\n"+word+"\n"...)
	r.ledger.Save(path, data)
	r.save(path, data)
	r.word = word
	r.noticed(func() bool { return len(r.search()) > 0 })
	return nil
}

func (r *peril) editProfile() error {
	r.task = r.word
	r.saveProfile("Dora", r.task)
	r.noticed(func() bool { return r.agents()["Dora"] == r.task })
	return nil
}

func (r *peril) saveProfile(agent, task string) {
	r.d.t.Helper()
	data := fmt.Appendf(nil, `{"program": "p", "model": "m", "task": %q, "inception": "2026-01-01T00:00:00Z"}`+"\n", task)
	path := "agents/" + agent + "/profile.json"
	r.ledger.Save(path, data)
	r.save(path, data)
}

// passed waits until the server has finished the reads that were in progress when the fault struck. At that point, the
// server has also noticed every file that a user saved since the fault.
func (r *peril) passed() {
	r.d.t.Helper()
	task := fmt.Sprintf("after %d", r.n)
	r.saveProfile("Eve", task)
	until(r.d.t, "an edit after the fault is noticed", time.Minute, func() bool { return r.agents()["Eve"] == task })
}

// stillThere sends a message to Dora, who must still exist.
func (r *peril) stillThere(error) {
	r.d.t.Helper()
	if !r.machine() {
		r.agree()
	}
	if err := r.send(r.from("Ann", []string{"Dora"})); err != nil {
		r.d.t.Fatal(err)
	}
}

// claimByHand writes Ann's claim file as a user would, or replaces the claim with a longer one.
func (r *peril) claimByHand() error {
	now := time.Now().UTC()
	ends := now.Add(48 * time.Hour).Format(time.RFC3339)
	data := fmt.Appendf(nil, "{\"path\": %q, \"agent\": \"Ann\", \"exclusive\": true, \"reason\": %q, \"created\": %q, \"expires\": %q}\n",
		r.pattern, r.word, now.Format(time.RFC3339), ends)
	r.save("claims/"+claimHash(r.pattern)+"-Ann.json", data)
	r.noticed(func() bool {
		var res struct{ Conflicts []struct{ Reason string } }
		err := r.d.call("claim_paths", r.claimArgs("Eve", true), &res)
		return err == nil && len(res.Conflicts) > 0 && res.Conflicts[0].Reason == r.word
	})
	return nil
}

// claimHash returns the part of a claim file's name that depends on the pattern, not on the agent.
func claimHash(pattern string) string {
	sum := sha1.Sum([]byte(pattern))
	return hex.EncodeToString(sum[:])
}

// holder returns the agent that holds the pattern according to the files, or "" if no agent does.
func (r *peril) holder() string {
	for _, path := range r.glob("claims/" + claimHash(r.pattern) + "-*.json") {
		if _, err := os.Lstat(filepath.Join(r.tree, strings.TrimSuffix(path, ".json")+".released")); errors.Is(err, fs.ErrNotExist) {
			_, agent, _ := strings.Cut(strings.TrimSuffix(path, ".json"), "-")
			return agent
		}
	}
	return ""
}

// markByHand creates an empty mark, as touch does. The server then writes the time into the mark.
func (r *peril) markByHand() error {
	r.ledger.Ask("Bob", r.id)
	if err := os.WriteFile(r.readMark(), nil, 0o600); err != nil {
		return err
	}
	r.noticed(r.stamped)
	return nil
}

func (r *peril) readMark() string {
	return filepath.Join(r.tree, strings.TrimSuffix(r.one("agents/Bob/inbox/*/*/*/"+r.id+".md"), ".md")+".read")
}

// stamped reports whether the mark contains the time.
func (r *peril) stamped() bool {
	st, err := os.Stat(r.readMark())
	return err == nil && st.Size() > 0
}

// touchAgain creates the mark again if the server could not write the time because of the fault.
func (r *peril) touchAgain(error) {
	r.d.t.Helper()
	if r.agree(); r.stamped() {
		return
	}
	if err := os.Remove(r.readMark()); err != nil {
		r.d.t.Fatal(err)
	}
	r.agree()
	if err := os.WriteFile(r.readMark(), nil, 0o600); err != nil {
		r.d.t.Fatal(err)
	}
	until(r.d.t, "the time to be written into a mark", time.Minute, r.stamped)
}

// removeCopy removes Cid's copy, as git checkout does.
func (r *peril) removeCopy() error {
	r.away = r.one("agents/Cid/inbox/*/*/*/" + r.id + ".md")
	var err error
	if r.copy, err = os.ReadFile(filepath.Join(r.tree, r.away)); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(r.tree, r.away)); err != nil {
		return err
	}
	r.noticed(func() bool { return len(r.differing()) == 0 })
	return nil
}

func (r *peril) putBack(error) {
	r.d.t.Helper()
	r.agree()
	r.save(r.away, r.copy)
}

// waitForRest waits until the server reads back the files that it has written, which happens after a second without
// activity.
func (r *peril) waitForRest() error {
	r.noticed(func() bool {
		for _, box := range []string{"messages", "agents/Ann/outbox", "agents/Bob/inbox", "agents/Cid/inbox"} {
			if r.made(callSite{call: "read", path: box + "/DAY/ID.md"}) == 0 {
				return false
			}
		}
		return true
	})
	return nil
}

// compareTree makes the server compare the whole tree with the index, as it does every hour and after it has lost
// events.
func (r *peril) compareTree() error {
	_, err := r.d.verb("compare", "project", faultKey)
	return r.answer(err)
}

// flush makes the server commit everything.
func (r *peril) flush() error {
	_, err := r.d.verb("flush", "project", faultKey)
	return r.answer(err)
}

// committed waits until the history is up to date. If a file could not be read, the history omits it until the file is
// saved again.
func (r *peril) committed(error) {
	r.d.t.Helper()
	limit := time.Minute // the history retries with backoff
	if !r.machine() {
		limit = differMost
	}
	if out := r.uncommitted(limit); out != "" {
		if r.machine() {
			r.bad("not committed: %s", out)
		}
		if err := r.editMessage(); err != nil {
			r.d.t.Fatal(err)
		}
		r.restored++
		if out := r.uncommitted(time.Minute); out != "" {
			r.bad("not committed when it was saved again: %s", out)
		}
	}
}

// uncommitted waits until git status reports nothing. After limit, it returns the output of git status instead.
func (r *peril) uncommitted(limit time.Duration) (text string) {
	for began := time.Now(); time.Since(began) < limit; time.Sleep(20 * time.Millisecond) {
		if _, err := r.d.verb("flush", "project", faultKey); err != nil {
			text = err.Error()
			continue
		}
		out, err := exec.Command("git", "--no-optional-locks", "-C", r.tree, "status", "--porcelain").CombinedOutput()
		if text = string(out); err == nil && text == "" {
			return ""
		}
	}
	return text
}
