package gitlog

import (
	"fmt"
	"testing"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/writer"
)

// TestDoneInSharedCommit checks which changes LastDone attributes to operations that share a commit. The changed files
// distinguish an operation on claims from an operation on a hold, but cannot distinguish two operations on claims.
func TestDoneInSharedCommit(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	hold, claim, other := format.HoldPath("B"), "claims/c1.json", "claims/c2.json"
	n := 0
	changes := func(want string, ops ...writer.Op) {
		t.Helper()
		verb := ops[0].Verb
		for len(ops) <= singles { // enough operations for one commit per agent
			n++
			id := fmt.Sprint("m", n)
			ops = append(ops, op("send", "A", id, "messages/"+id))
		}
		for _, o := range ops {
			for _, p := range o.Paths {
				tr.write(p, fmt.Sprint(o.Verb, n))
			}
		}
		tr.log.Record(ops, nil)
		tr.flush()
		all, err := tr.log.LastDone(t.Context(), history.DoneQuery{Agent: "A", Wants: func(v string) bool { return v == verb }, Most: 1})
		tr.check(err)
		got := ""
		for _, done := range all {
			for _, v := range done.Changes {
				got += v.Path + " "
			}
		}
		tr.equal("the changes of "+verb, got, want)
	}
	changes(hold+" ", op(history.VerbHold, "A", "h1", hold), op(history.VerbClaim, "A", "", claim), op(history.VerbRegister, "A", "", "agents/A/profile.json"))
	changes(claim+" ", op(history.VerbRenew, "A", "", claim), op(history.VerbGo, "A", "h2", hold))
	changes("", op(history.VerbClaim, "A", "", claim), op(history.VerbRelease, "A", "", other))
	changes("", op(history.VerbHold, "A", "h3", hold), op("rename", "A", "", "agents/A/claims.json"))
}
