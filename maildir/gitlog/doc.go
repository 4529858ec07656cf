// Package gitlog is the audit of a mail tree: it puts every operation of the server, and the edits
// of others, into commits of the tree's Git repository. It implements history.Log. Git does Git: it reads
// objects (cat-file), writes them (fast-import), makes the next index (update-index), moves the branch
// (update-ref), compares (status) and tells the history (log, diff-tree). go-git parses its
// configuration. This package knows when and what: queue, plan, publish, repair, heal, catch up, tidy, walk.
//
// # What holds
//
//   - Record and Edited only append to a queue. Run, Flush and Preserve commit, one at a time.
//   - A commit's tree is HEAD's tree with the named paths as they are on disk at that moment: a
//     regular file, an executable one, a link as a link, nothing where nothing is. FIFOs, devices
//     and sockets are left out; no link is followed, nothing blocks. Only the trees on changed
//     paths are rewritten.
//   - Where an operation tells what it wrote or removed, the commit has that, whatever is on disk by
//     then (loadWritten). What somebody else has made of the file since is an edit of its own, and
//     git status shows it until then; what somebody else has committed since stays. No edit is
//     committed where an operation is at work (leaveOutBusy).
//   - What a person has staged stays staged and is not in our commits, but for the very paths that
//     we commit.
//   - Branch and Git index move together under index.lock, held for some ten milliseconds
//     (publication). A person's command waits, fails with "locked" or "cannot lock ref", or sees
//     both moved. No commit of either side is lost; heal puts back what a race within Git itself
//     can still take away. nextRef keeps what is on its way from a prune.
//   - For ten seconds after a commit heal sees where a git command that ran beside it wrote an older
//     index back: entries follow the branch, and what a commit from that index dropped is handed
//     over as an edit. Files that a person unstages stay unstaged, but for one case: exactly what
//     our last commits added. What such a commit dropped while nobody looked, catchUp finds at the
//     next start like any other change. With External off it stays dropped, and git status shows it.
//   - All objects are durable before the branch moves, the move is durable before done is called.
//   - A kill at any instant leaves the old state, the new one, or one that Open or the next commit
//     repairs (repair). The lock of somebody else is never removed.
//   - Nothing is committed during a merge, rebase, cherry-pick or revert, with a detached HEAD, or
//     on another branch than the recorded one (.git/mailtree-branch). Work waits; State says why
//     and what to do.
//   - When Run begins, catchUp finds what was changed while nobody watched, with git status: what
//     differs from the Git index, is gone, or is new and not ignored. What is staged stays so.
//   - A round, which is what has queued when the branch moves, comes about once a second at most, and
//     as a rule so seldom that it takes a tenth of the time, more where the history would else be five
//     seconds behind. It writes index and branch once, however many commits it brings.
//   - Who reads the history has what waits committed first (tip).
//   - A search of a path reads few commits, once the commit graph is made, which notes what each
//     has touched (tidy). Any other reads the messages of all commits since its day. No answer depends
//     on the graph.
//   - Files of Git's configuration are read, never obeyed: no hook, filter or program of theirs runs
//     (ownFolder).
//   - Nothing of ours is in the work tree, where a pull of a hostile repository could plant it. What lies at
//     the place of a file of Git's that we read (a FIFO, a folder, far too much) does not make us wait: State
//     tells it. Among Git's objects it makes a command wait, which is ended after a time.
//
// # Commit layout
//
// One operation:
//
//	send: GreenCastle -> BlueLake: Plan for /api/users
//
//	Mail-Op: send
//	Mail-Id: msg_20251023_3a51c0f7b3dc3a7e
//	Agent: GreenCastle
//	Mail-Door: http
//
// A round of many operations has a commit for each agent, in the order in which the agents appear:
// a subject that counts, one line for people per operation (verb, agent or "-", id or "-",
// summary), and the trailers of all, in the same order. A path that several agents have changed is
// in the commit of the last:
//
//	send ×1, acknowledge ×1
//
//	send GreenCastle msg_20251023_3a51c0f7b3dc3a7e GreenCastle -> BlueLake: Plan
//	acknowledge GreenCastle msg_20251023_3a51c0f7c41b2d09 GreenCastle
//
//	Mail-Op: send
//	Mail-Id: msg_20251023_3a51c0f7b3dc3a7e
//	Agent: GreenCastle
//	Mail-Door: http
//	Mail-Op: acknowledge
//	Mail-Id: msg_20251023_3a51c0f7c41b2d09
//	Agent: GreenCastle
//	Mail-Door: http
//
// A program reads the trailers (the last paragraph): every "Mail-Op:" begins an operation,
// "Mail-Id:", "Agent:" and "Mail-Door:" after it belong to it and are left out where there is none.
// Each operation is in the trailers of the whole history exactly once. They hold our own fields
// only, flattened to one word; text of users is in subject and body, flattened to one line.
//
// Edits of others: "edit: path", or "edit: N files" and at most a hundred paths; their trailer is
// "Mail-Op: edit".
//
// The author is the agent, with address agent@Domain; of what the server does by itself, mailtree;
// of edits, whoever Git's configuration names. The committer is always mailtree.
//
// # Files below .git
//
//	mailtree-index, -lock         the next index and index.lock, before they are put into place
//	mailtree-mark                 what we are about to do under Git's locks (mark)
//	mailtree-branch               the recorded branch; remove it to record another one
//	mailtree-git                  what our git commands see as their repository (ownFolder)
//
// They are not in .mailtree, whose content somebody else may have put into the repository. A .git
// that is taken away and put back brings them along. Only a new repository grows in .git.new, before it is
// renamed (Init).
package gitlog
