// Package gitlog is the audit log of a mail tree. It commits every operation of the server, and the edits of
// others, to the tree's Git repository. It implements history.Log. The git program does Git's part: it reads
// objects (cat-file), writes them (fast-import), builds the next index (update-index), moves the branch
// (update-ref), compares (status) and reads the history (log, diff-tree). go-git parses Git's configuration. This
// package decides when to do which of these: queue, plan, publish, repair, heal, catch up, tidy, walk.
//
// # Guarantees
//
//   - Record and RecordEdits only append to a queue. Run, Flush and Preserve commit, one at a time.
//   - A commit's tree is HEAD's tree with the named paths as they are on disk at that moment:
//     regular files, executable files, links as links; a missing file is removed. FIFOs, devices
//     and sockets are left out; no link is followed, no read blocks. Only the trees on changed
//     paths are rewritten.
//   - If an operation recorded what it wrote or removed, the commit has exactly that, whatever is on disk by then
//     (loadWritten). A user's later change of the file is a separate edit, and git status shows it until it is
//     committed; a user's later commit stays. No edit is committed at a path that an operation is writing
//     (leaveOutBusy).
//   - Changes that a user has staged stay staged and are not in our commits, except at the paths that we commit.
//   - Branch and Git index move together under index.lock, which is held for some ten milliseconds (publication). A
//     user's command waits, fails with "locked" or "cannot lock ref", or sees both moved. No commit of either side
//     is lost; heal restores what a race within Git itself can still remove. nextRef protects the new commits from
//     a prune until the branch moves.
//   - For ten seconds after a commit, heal looks for an older index that a concurrent git command has written back.
//     The index entries follow the branch again. Files that a commit from such an older index dropped are recorded
//     as edits. Files that a user unstages stay unstaged, with one exception: exactly the paths that our last
//     commits added. If such a commit dropped files while the server was not running, catchUp finds them at the
//     next start like any other change. If External is off, they stay dropped, and git status shows them.
//   - All objects are durable before the branch moves; the move is durable before done is called.
//   - A kill at any instant leaves the old state, the new state, or a state that Open or the next
//     commit repairs (repair). Another program's lock is never removed.
//   - Nothing is committed during a merge, rebase, cherry-pick or revert, with a detached HEAD, or on a branch
//     other than the recorded one (.git/mailtree-branch). Operations wait; State says why and what to do.
//   - When Run begins, catchUp asks git status for the changes made in the meantime: files that differ from the Git
//     index, are gone, or are new and not ignored. Staged files stay staged.
//   - A round commits the operations in the queue. Rounds come at most about once a second and take about a tenth
//     of the time, or more if the history would otherwise fall five seconds behind. A round writes index and branch
//     once, however many commits it makes.
//   - An operation that merges another machine's commit (writer.Merge) makes that commit a parent of its own. If
//     the operation changes nothing else, the branch moves to the other commit (forward). A file that such an
//     operation wrote and that is gone from the disk stays out of the commit, and the commit then merges nothing
//     (findIncompleteMerge).
//   - Before the history is read, the waiting operations are committed (tip).
//   - The commit graph records the paths that each commit touched (tidy), so that a search for a path reads few
//     commits. Without the graph, a search reads the messages of all commits since its day. The answers are the
//     same with or without the graph.
//   - Git's configuration files are read, never obeyed: none of their hooks, filters or programs runs
//     (ownFolder). Only git fetch and git push obey them, without hooks (remoteCommand).
//   - None of our files is in the work tree, because a pull from a hostile repository could plant one there. If a
//     FIFO, a folder or a huge file replaces one of Git's files that we read, we do not block on it, and State
//     reports it. If it is among Git's objects, a git command blocks on it and is ended after a time limit.
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
// A round of many operations has a commit for each agent, in the order in which the agents appear. The message of
// such a commit is a subject with counts, a readable line per operation (verb, agent or "-", id or "-", summary),
// and the trailers of all operations, in the same order. A path that several agents have changed is in the commit
// of the agent that changed it last:
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
// A program reads the trailers (the last paragraph): every "Mail-Op:" begins an operation; the "Mail-Id:",
// "Mail-Marks:" (the message that a reply answers and marks), "Agent:", "Mail-Door:" and "Mail-Step:" (equal for
// the operations of one command, which a single undo reverts) after it belong to that operation, and each is left
// out if it has no value. Each operation is in the trailers of the whole history exactly once. Trailers contain
// only our own fields, flattened to one word. Text from senders is in subject and body, flattened to one line.
//
// The subject of a commit of edits is "edit: path", or "edit: N files" followed by at most a hundred
// paths, with "remove" if every file was removed; its trailer is "Mail-Op: edit".
//
// The author of an operation is the agent, with address agent@Domain, or mailtree for the server's own operations.
// The author of edits is the user in Git's configuration. The committer is always mailtree.
//
// # Files below .git
//
//	mailtree-index, -lock         the next index and index.lock, before they are moved into place
//	mailtree-mark                 what we are about to do under Git's locks (mark)
//	mailtree-branch               the recorded branch; remove the file to record another branch
//	mailtree-git                  the repository that our git commands see (ownFolder)
//
// These files are not in .mailtree, because a repository can bring a .mailtree of its own. If .git is moved away
// and back, they move along with it. Only a new repository is created in .git.new, and then renamed (Init).
package gitlog
