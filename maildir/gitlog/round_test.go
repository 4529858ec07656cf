package gitlog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mailtree/maildir/writer"
)

// busy records operations that send messages from several agents in turn. Each operation also overwrites the agent's
// status. All operations wait for the same round.
func (t *repoTree) busy(agents, from, to int) (done *int) {
	t.Helper()
	done = new(int)
	for i := from; i < to; i++ {
		agent, id := fmt.Sprint("A", i%agents), fmt.Sprintf("m%04d", i)
		o := t.deliver(id, "messages/"+id, "text of "+id+"\n")
		mark := t.deliver(id, "agents/status", agent+"\n")
		o.Agent, o.Summary = agent, agent+" writes "+id
		o.Paths = append(o.Paths, mark.Paths...)
		o.Written[mark.Paths[0]] = mark.Written[mark.Paths[0]]
		t.log.Record([]writer.Op{o}, func() { *done++ })
	}
	return done
}

// moves returns how often the branch has moved.
func (t *repoTree) moves() int {
	t.Helper()
	return strings.Count(string(t.file(".git/logs/refs/heads/main")), "\n")
}

// TestBusySecond checks that if there are several operations within a second, git log shows each operation with its
// author, and a revert undoes only one operation. The branch and the index must move only once.
func TestBusySecond(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{Domain: "mail.example"})
	before := tr.moves()
	done := tr.busy(4, 0, singles)
	tr.flush()
	tr.equal("moves", fmt.Sprint(tr.moves()-before), "1")
	tr.equal("done", fmt.Sprint(*done), fmt.Sprint(singles))
	tr.sound()
	tr.equal("of one agent", tr.git("log", "--author=A2@mail.example", "--format=%an <%ae>, %cn: %s"), strings.Join([]string{
		"A2 <A2@mail.example>, mailtree: send: A2 writes m0014",
		"A2 <A2@mail.example>, mailtree: send: A2 writes m0010",
		"A2 <A2@mail.example>, mailtree: send: A2 writes m0006",
		"A2 <A2@mail.example>, mailtree: send: A2 writes m0002",
	}, "\n"))
	tr.equal("changes of one", tr.git("show", "--name-status", "--format=%(trailers)", "HEAD~8"),
		"Mail-Op: send\nMail-Id: m0007\nAgent: A3\n\n\nM\tagents/status\nA\tmessages/m0007")
	tr.equal("what it wrote", tr.git("show", "HEAD~8:agents/status"), "A3")
	tr.git("revert", "--no-edit", tr.git("log", "--format=%H", "--grep=m0015", "-1"))
	tr.equal("taken back", tr.git("show", "--name-status", "--format="), "M\tagents/status\nD\tmessages/m0015")
	tr.sound()
}

// TestCrowdedSecond checks that a round with more operations than singles has one commit for each agent. A path that
// two agents wrote must be in the commit of the agent that wrote it last.
func TestCrowdedSecond(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	before := tr.moves()
	done := tr.busy(3, 0, singles+1)
	tr.record(writer.Op{Verb: "presence", Agent: "A0", Summary: "two\nlines\x00and <b> a\u2028control\x1b[1m"})
	tr.flush()
	tr.equal("moves", fmt.Sprint(tr.moves()-before), "1")
	tr.equal("done", fmt.Sprint(*done), fmt.Sprint(singles+1))
	tr.sound()
	tr.equal("subjects", tr.git("log", "-3", "--format=%an: %s"), "A2: send ×5\nA1: send ×6\nA0: send ×6, presence ×1")
	tr.equal("message", tr.git("log", "--author=A0", "--format=%B"), `send ×6, presence ×1

send A0 m0000 A0 writes m0000
send A0 m0003 A0 writes m0003
send A0 m0006 A0 writes m0006
send A0 m0009 A0 writes m0009
send A0 m0012 A0 writes m0012
send A0 m0015 A0 writes m0015
presence A0 - two lines and <b> a control [1m

Mail-Op: send
Mail-Id: m0000
Agent: A0
Mail-Op: send
Mail-Id: m0003
Agent: A0
Mail-Op: send
Mail-Id: m0006
Agent: A0
Mail-Op: send
Mail-Id: m0009
Agent: A0
Mail-Op: send
Mail-Id: m0012
Agent: A0
Mail-Op: send
Mail-Id: m0015
Agent: A0
Mail-Op: presence
Agent: A0`)
	tr.equal("trailers seen by git", tr.git("log", "--author=A0", "--format=%(trailers:key=Mail-Op,valueonly,separator=%x2C)"),
		"send,send,send,send,send,send,presence")
	tr.equal("who wrote the status", tr.git("log", "--format=%an", "--", "agents/status"), "A1")
	tr.equal("status", tr.git("show", "HEAD:agents/status"), "A1")
	if ids := tr.ids(); len(slices.Compact(slices.Sorted(slices.Values(ids)))) != singles+1 || len(ids) != singles+1 {
		t.Errorf("ids in the log: %v", ids)
	}
}

// TestSinglesAreBounded checks that each agent gets only one commit if a folder is so large that the total size of the
// tree objects reaches the limit, even if there are only a few operations.
func TestSinglesAreBounded(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	var paths []string
	for i := range singleTrees / (singles - 1) / 270 { // slightly too many files to rewrite their folder sixteen times
		p := fmt.Sprintf("messages/%0240d", i)
		tr.write(p, "")
		paths = append(paths, p)
	}
	tr.record(op("send", "A", "many", paths...))
	tr.flush()
	tr.busy(2, 0, singles/2)
	tr.flush()
	tr.equal("half as many", tr.git("rev-list", "--count", "HEAD"), fmt.Sprint(2+singles/2))
	tr.busy(2, singles, 2*singles)
	tr.flush()
	tr.equal("all", tr.git("log", "-2", "--format=%an: %s"), "A1: send ×8\nA0: send ×8")
	tr.sound()
}

// TestRecoveredAndEdited checks what happens if a recovered operation has already been committed and a user has since
// changed the operation's file. The change must be committed as an edit, and not as part of the next operation.
func TestRecoveredAndEdited(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.send("m1", "m1")
	tr.flush()
	tr.write("m1", "by hand\n")
	was := op("send", "A", "m1", "m1")
	was.Recovered = true
	tr.record(was, tr.deliver("m2", "m2", "x\n"))
	tr.commitOps()
	tr.equal("commit", tr.git("show", "--name-status", "--format=%s"), "send: A -> B: about m2\n\nA\tm2")
	tr.equal("status", tr.git("status", "--porcelain"), " M m1")
	tr.flush()
	tr.equal("edit", tr.git("show", "--name-status", "--format=%an: %s"), "mailtree: edit: m1\n\nM\tm1")
	tr.sound()
}
