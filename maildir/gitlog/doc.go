// Package gitlog is the audit log of a mail tree. It commits every operation of the server, and edits made by users
// and other programs, to the tree's Git repository. It implements history.Log. The git program does the work on the
// repository: it reads objects (cat-file), writes them (fast-import), builds the next index (update-index), finds
// changed files (status) and reads the history (log, diff-tree). go-git parses Git's configuration. Package embedded
// moves the branch, under Git's own locks. This package decides when to do each of these. Its main parts are queue,
// plan, publish, repair, heal, catchup, tidy and walk, each in a file of that name.
//
// If there is no git program when a Log is opened, package embedded does all this work (engine). The repository then
// has no Git index, so the statements about the index below do not apply, and nothing is healed, repacked or
// synchronized.
//
// # Guarantees
//
//   - Record and RecordEdits only append to a queue. Run, Flush and Preserve commit, one at a time.
//   - A commit's tree is HEAD's tree, with the named paths as they are on disk at that moment. Regular files,
//     executable files and links are committed as such. A missing file is removed. FIFOs, devices and sockets are
//     left out. No link is followed, and no read blocks. Only the trees along the changed paths are rewritten.
//   - If an operation recorded what it wrote or removed, the commit contains exactly that, whatever is on disk by
//     then (loadWritten). A user's later change to the file is a separate edit, and git status shows it until it is
//     committed. A user's later commit is kept. No edit is committed at a path that an operation is writing
//     (leaveOutBusy).
//   - The branch and the Git index move together under index.lock, which is held for about ten milliseconds
//     (publication). A user's command waits, fails with "locked" or "cannot lock ref", or sees both moves. No commit
//     is lost, neither ours nor a user's. A race within Git itself can still undo a commit; heal detects and repairs
//     this. nextRef protects the new commits from a prune until the branch moves.
//   - For ten seconds after a commit, heal checks whether a concurrent git command has written back an older index.
//     If so, the index entries are brought back in line with the branch. Files that a commit from such an older
//     index dropped are recorded as edits. Files that a user unstages stay unstaged, unless they are exactly the
//     paths that our last commits added. If such a commit dropped files while the server was not running, catchUp
//     finds them at the next start like any other change. If External is off, they stay dropped, and git status
//     shows them.
//   - All objects are durable before the branch moves, and the move is durable before done is called.
//   - A kill at any moment leaves the old state, the new state, or a state that Open or the next commit repairs
//     (repair). Another program's lock is never removed.
//   - Nothing is committed during a merge, rebase, cherry-pick or revert, with a detached HEAD, or on a branch other
//     than the recorded one (.git/mailtree-branch). Operations wait, and State says why and what to do.
//   - When Run begins, catchUp asks git status for the changes made while no Run was active: files that differ from
//     the Git index, are gone, or are new and not ignored. Staged files stay staged.
//   - A round commits the operations in the queue. Rounds start at most about once a second, and take up about a
//     tenth of the time, or more if the history would otherwise fall five seconds behind. A round writes the index
//     and the branch once, no matter how many commits it makes.
//   - An operation that merges another machine's commit (writer.Merge) makes that commit a parent of its own commit.
//     If the operation changes nothing else, the branch moves to the other machine's commit (forward). If a file
//     that such an operation wrote is gone from the disk, the file stays out of the commit, and the commit does not
//     merge anything (findIncompleteMerge).
//   - Before the history is read, the waiting operations are committed (tip).
//   - The commit graph records the paths that each commit touched (tidy), so that a search for a path reads few
//     commits. Without the graph, a search reads the messages of all commits since its starting date. The results
//     are the same with or without the graph.
//   - We read a few settings from the repository's configuration (settings), but our git commands ignore Git's
//     configuration files, so they run none of the hooks, filters and programs that these files specify (ownFolder).
//     Only git fetch and git push use the files, but without hooks (remoteCommand).
//   - None of our own files is in the work tree, because a pull from a hostile repository could plant such a file
//     there. If a FIFO, a folder or a huge file replaces one of Git's files that we read, we do not block on it, and
//     State reports the problem. If it replaces one of Git's objects, a git command blocks on it and is killed after
//     a time limit.
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
// A round with many operations has one commit for each agent, in the order in which the agents first appear. The
// message of such a commit begins with a subject that contains counts. After that, the message contains a readable line
// for each operation (verb, agent or "-", id or "-", summary) and the trailers of all operations in the same order. If
// several agents have changed a path, the path is in the commit of the agent that changed it last:
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
// Programs read the trailers, which are the last paragraph. Every "Mail-Op:" begins an operation. The following
// "Mail-Id:", "Mail-Marks:" (the message that a reply answers and marks), "Agent:", "Mail-Door:" and "Mail-Step:"
// (equal for the operations of one command, which a single undo reverts) belong to that operation. Each of them is
// omitted if it has no value. Each operation appears in the trailers of the whole history exactly once. Trailers
// contain only our own fields, flattened to one word. Text from senders appears in the subject and body, flattened to
// one line.
//
// The subject of a commit of edits is "edit: path", or "edit: N files" followed by at most a hundred paths in the
// body. If every file was removed, the verb is "remove". The trailer is "Mail-Op: edit".
//
// The author of an operation is the agent, with address agent@Domain, or mailtree for the server's own operations.
// The author of edits is the user from Git's configuration. The committer is always mailtree.
//
// # Files below .git
//
//	mailtree-index, -lock         the next index and index.lock, before they are moved into place
//	mailtree-mark                 what we are about to do while holding Git's locks (mark)
//	mailtree-branch               the recorded branch; remove the file to record another branch
//	mailtree-git                  the repository as our git commands see it (ownFolder)
//
// These files are not in .mailtree, because another repository can contain its own .mailtree. If .git is moved away
// and back, they move along with it. A new repository is created in .git.new and then renamed (Init).
package gitlog
