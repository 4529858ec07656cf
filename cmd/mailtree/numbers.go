package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/lazy"
	"mailtree/maildir/tree"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/mail"
)

// The code in this file stores the list of messages that a terminal showed last. Commands accept row numbers from that
// list instead of ids. If a thread was shown after the list, commands also accept the names of the thread's messages,
// such as 3a and 3b for the thread in row 3.

// rowNumber matches any possible row number, even if the list has fewer rows.
var rowNumber = lazy.Regexp(`^[0-9]{1,3}$`)

// rowLetter matches the name of a message in a thread: the number of the thread's row, if it has one, followed by
// letters.
var rowLetter = lazy.Regexp(`^([0-9]{0,3})[a-z]{1,2}$`)

// maxNumbered is the largest possible row number.
const maxNumbered = 999

// oldList is the age at which a terminal's list is removed. Few shells run longer than that.
const oldList = 7 * 24 * time.Hour

// lastList is the list that a terminal showed last.
type lastList struct {
	Project string   `json:"project"` // the project's slug
	IDs     []string `json:"ids"`     // the ids of the rows' messages, starting with row 1

	// Threads contains the rows' threads if plain `mailtree` printed this list. In that case, IDs contains each thread's
	// waiting message.
	Threads []rowThread `json:"threads,omitempty"`

	// Projects contains the projects of the rows if this is a list of all projects. In that case, Project is "".
	Projects []string `json:"projects,omitempty"`

	Opened []openedThread `json:"opened,omitempty"` // the threads that were shown after the list

	Next nextPage `json:"next,omitzero"` // position from which to continue the list that was shown last
}

// rowThread is the thread in a row of a list from plain `mailtree`.
type rowThread struct {
	ID string `json:"id"`

	// Waiting contains the ids of the messages that were waiting when the list was printed. Unread messages that are not
	// in it arrived later. It is empty if the server did not list all of them.
	Waiting []string `json:"waiting,omitempty"`
}

// isNewer reports whether a message in the thread arrived after the list was printed, and has not been read since.
func (t *rowThread) isNewer(m *mail.Delivery) bool {
	return len(t.Waiting) > 0 && !m.Read && !slices.Contains(t.Waiting, m.ID)
}

// projectOf returns the project of the row with a zero-based index.
func (l *lastList) projectOf(row int) string {
	if row < len(l.Projects) {
		return l.Projects[row]
	}
	return l.Project
}

// nextPage says where to continue a list that was too long for one page.
type nextPage struct {
	Command string `json:"command"`
	Project string `json:"project"`
	Cursor  string `json:"cursor"`
}

// addMoreFlags adds to c the flags that continue a list. The flags set cursor, and the project in f.
func (p *program) addMoreFlags(c *cobra.Command, f *deskFlags, cursor *string) {
	c.Flags().StringVar(cursor, "cursor", "", "for scripts: the next_cursor of the previous page")
	more := c.Flags().Bool("more", false, "show the next page of the last list in this terminal")
	c.MarkFlagsMutuallyExclusive("more", "cursor")
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if *more {
			next := readList(p.listFile()).Next
			if next.Command != c.Name() {
				return &exitError{exitNothing, fmt.Errorf("this terminal has no `mailtree %s` list to continue", c.Name())}
			}
			*cursor, f.project = next.Cursor, cmp.Or(f.project, next.Project)
		}
		if before == nil {
			return nil
		}
		return before(c, args)
	}
}

// tellMore returns a line that says how to continue the list that a command printed, or "" if cursor is "".
func (d *deskWork) tellMore(command, cursor string) string {
	if cursor == "" {
		return ""
	}
	if d.listFile != "" && !d.json {
		last := readList(d.listFile)
		last.Next = nextPage{command, d.Slug, cursor}
		if d.store(&last) {
			return d.Faint("for more, run the same command with --more")
		}
	}
	return d.Faint("for more: --cursor " + cursor)
}

// openedThread is a thread that the terminal has shown.
type openedThread struct {
	Project string   `json:"project"`
	Row     string   `json:"row,omitempty"` // number of the thread's row; empty if the thread was not in the list
	IDs     []string `json:"ids"`           // ids of the thread's messages, starting with message a
}

// called returns the message with the given name, such as 3b, and its project.
func (l *lastList) called(name string) (project, id string, ok bool) {
	for _, t := range l.Opened {
		for i, id := range t.IDs {
			if t.Row+letters(i) == name {
				return t.Project, id, true
			}
		}
	}
	return "", "", false
}

// maxLettered is the maximum number of messages in a thread that can have a name.
const maxLettered = 26 + 26*26

// letters returns the letters of the message at index i of a thread: a to z, then aa to zz.
func letters(i int) string {
	const all = "abcdefghijklmnopqrstuvwxyz"
	if i < len(all) {
		return all[i : i+1]
	}
	i -= len(all)
	return all[i/len(all):i/len(all)+1] + all[i%len(all):i%len(all)+1]
}

// stateFolder returns the folder for files that commands store for their user, or "" if the environment does not
// specify one.
func (p *program) stateFolder() string {
	state := p.variable("XDG_STATE_HOME")
	if home := p.variable("HOME"); state == "" && home != "" {
		state = filepath.Join(home, ".local", "state")
	}
	if !filepath.IsAbs(state) {
		return ""
	}
	return filepath.Join(state, "mailtree")
}

// listFile returns the path of the file for the last list of this terminal, or "" if there is no terminal. Each
// combination of terminal device and login session has its own file. The file is below the user's XDG_STATE_HOME and
// not in the store, because the server may run as a different OS user.
func (p *program) listFile() string {
	state := p.stateFolder()
	if state == "" {
		return ""
	}
	session, err := unix.Getsid(0)
	for _, f := range []any{p.std.in, p.std.out, p.std.err} {
		var st unix.Stat_t
		if err == nil && cli.IsTerminal(f) && unix.Fstat(int(f.(*os.File).Fd()), &st) == nil {
			return filepath.Join(state, "lists", fmt.Sprintf("%x-%d", st.Rdev, session))
		}
	}
	return ""
}

// number returns a name for each of the given messages in a list. The names are row numbers if there is a terminal, and
// short ids otherwise. The numbers continue after those of the previous call in the same command. In a list of threads,
// threads contains the thread of each message.
func (d *deskWork) number(ids []string, threads ...rowThread) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = d.ShortID(id)
	}
	if d.listFile == "" || d.json {
		return names
	}
	begin := len(d.listed)
	d.listed = append(d.listed, ids[:min(len(ids), maxNumbered-begin)]...)
	if !d.store(&lastList{Project: d.Slug, IDs: d.listed, Threads: threads, Projects: d.rowProjects}) {
		return names
	}
	for i := range names[:len(d.listed)-begin] {
		names[i] = fmt.Sprintf("%2d", begin+i+1)
	}
	return names
}

// letter returns a name for each of the given messages in a thread. A name is the number of the thread's row in the
// last list, followed by letters. Without a terminal, the names are short ids. given is the argument that the user
// typed for the thread. The letters continue after those of the previous call in the same command.
func (d *deskWork) letter(given, thread string, ids []string) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = d.ShortID(id)
	}
	if d.listFile == "" || d.json {
		return names
	}
	begin, last := len(d.listed), readList(d.listFile)
	d.listed = append(d.listed, ids[:min(len(ids), maxLettered-begin)]...)
	opened := openedThread{Project: d.Slug, Row: rowOfThread(&last, given, d.Slug, thread, d.listed), IDs: d.listed}
	same := func(t openedThread) bool { return t.Row == opened.Row }
	last.Opened = append(slices.DeleteFunc(last.Opened, same), opened)
	if !d.store(&last) {
		return names
	}
	for i := range names[:len(d.listed)-begin] {
		names[i] = opened.Row + letters(begin+i)
	}
	return names
}

// rowOfThread returns the number of a thread's row in the last list, or "" if the thread is not in the list. given is
// the argument that the user typed. It may be the row number, or the name of a message in the thread.
func rowOfThread(last *lastList, given, project, thread string, ids []string) string {
	if n, err := strconv.Atoi(given); err == nil && rowNumber().MatchString(given) {
		return strconv.Itoa(n)
	}
	if parts := rowLetter().FindStringSubmatch(given); parts != nil {
		if _, id, ok := last.called(given); ok && slices.Contains(ids, id) {
			return parts[1]
		}
	}
	for row, id := range last.IDs {
		of := row < len(last.Threads) && last.Threads[row].ID == thread || slices.Contains(ids, id)
		if of && last.projectOf(row) == project {
			return strconv.Itoa(row + 1)
		}
	}
	return ""
}

// store saves the terminal's last list, and reports whether it succeeded. If store fails, for example because the disk
// is full, the user has to use ids instead of row numbers.
func (d *deskWork) store(last *lastList) bool {
	data, err := json.Marshal(last)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(d.listFile), 0o700)
	}
	if err == nil {
		err = tree.WriteFile(d.listFile, data)
	}
	if err == nil {
		removeOldLists(filepath.Dir(d.listFile))
	}
	return err == nil
}

// removeOldLists removes the lists of terminals that have probably been closed.
func removeOldLists(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > oldList {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// shortestID is the minimum length of an abbreviated id.
const shortestID = 4

// namedRows contains the messages that a command line specifies.
type namedRows struct {
	IDs     []string    // full or abbreviated ids
	Threads []rowThread // for each id that is a row of a list from plain `mailtree`, the row's thread; empty for other ids
	Project string      // the project of the rows; empty if no argument is a row
	Unsure  bool        // an argument is a row, and the last list was not printed by plain `mailtree`
}

// rowsToIDs replaces each row number, and each name of a message in a thread, with the message's id. It returns an
// error for a row number that is not in this terminal's last list. If there is no terminal or no list, it returns an
// error for every row number.
func (p *program) rowsToIDs(args []string) (named namedRows, err error) {
	file := p.listFile()
	last := readList(file)
	for _, arg := range args {
		thread, project := rowThread{}, ""
		switch {
		case rowNumber().MatchString(arg):
			n, err := last.row(file, arg)
			if err != nil {
				return named, err
			}
			arg, project = last.IDs[n-1], last.projectOf(n-1)
			if n <= len(last.Threads) {
				thread = last.Threads[n-1]
			}
		case rowLetter().MatchString(arg) && file != "":
			of, id, ok := last.called(arg)
			if ok {
				arg, project = id, of
			} else if row := rowLetter().FindStringSubmatch(arg)[1]; row != "" && len(arg) < shortestID {
				return named, &exitError{exitNothing, fmt.Errorf("this terminal has not shown a message labeled %s. To show the "+
					"thread in that row: `mailtree thread %s`", arg, row)}
			}
		}
		if project != "" && named.Project != "" && project != named.Project {
			return named, &exitError{exitUsage, fmt.Errorf("the rows are in different projects, %s and %s: use a separate command for each",
				named.Project, project)}
		}
		named.Unsure = named.Unsure || project != "" && len(last.Threads) == 0
		named.Project = cmp.Or(named.Project, project)
		named.IDs, named.Threads = append(named.IDs, arg), append(named.Threads, thread)
	}
	return named, nil
}

// row returns the number in arg. It returns an error if the list has no such row. file is the file that contains the
// list.
func (l *lastList) row(file, arg string) (int, error) {
	n, _ := strconv.Atoi(arg)
	switch {
	case file == "":
		return 0, &exitError{exitUsage, fmt.Errorf("%s is a row number, but row numbers work only in a terminal: "+
			"use the message id", arg)}
	case len(l.IDs) == 0 && l.Project == "":
		return 0, &exitError{exitNothing, fmt.Errorf("%s is a row number, but this terminal has not shown a list yet: "+
			"`mailtree` shows one", arg)}
	case len(l.IDs) == 0:
		return 0, &exitError{exitNothing, fmt.Errorf("there is no row %s, because the last list is empty: use a message id", arg)}
	case n < 1 || n > len(l.IDs):
		return 0, &exitError{exitNothing, fmt.Errorf("there is no row %s: the last list has only %s. Use one of "+
			"its row numbers or a message id", arg, count(len(l.IDs), "row"))}
	}
	return n, nil
}

// messagesOf returns the ids of the messages that the argument at index i specifies. Usually, this is one message. For
// a row in a list of threads, messagesOf returns every message of the thread that was sent to the user, is not
// archived, and satisfies wanted. If there is no such message, it returns the row's own message.
func (d *deskWork) messagesOf(ctx context.Context, i int, wanted func(m *mail.Delivery) bool) (ids []string, err error) {
	ask := map[string]any{"project_key": d.Slug, "agent_name": d.Person, "thread_id": d.threads[i].ID, "limit": maildir.MaxPage}
	for more := wanted != nil && d.threads[i].ID != ""; more; {
		var page mail.Inbox
		if err := d.Call(ctx, "check_my_messages", ask, &page); err != nil {
			return nil, err
		}
		for j := range page.Messages {
			m := &page.Messages[j]
			if got := []string{"to", "cc", "bcc"}; slices.Contains(got, m.Kind) && !m.Archived && wanted(m) {
				ids = append(ids, m.ID)
			}
		}
		ask["cursor"], more = page.Next, page.Next != ""
	}
	if len(ids) == 0 {
		ids = []string{d.IDs[i]}
	}
	return ids, nil
}

// atMessage is like atDesk, but for the message or thread in args. Without an argument, it uses the first message that
// is waiting for the user.
func (p *program) atMessage(
	ctx context.Context, f *deskFlags, who whose, args []string, do func(ctx context.Context, d *deskWork, id string) error,
) error {
	return p.atDesk(ctx, f, who, args, func(ctx context.Context, d *deskWork) error {
		if len(d.IDs) > 0 {
			return do(ctx, d, d.IDs[0])
		}
		first, err := p.firstWaiting(ctx, d)
		if err != nil {
			return err
		}
		return do(ctx, d, first.Message)
	})
}

// tellNext prints the text in did, which says what the command has done. It then prints the command that undoes the
// last action, and the next waiting message.
func (p *program) tellNext(ctx context.Context, d *deskWork, did string) {
	text := did + "undo: " + d.undoing()
	if next, err := p.firstWaiting(ctx, d); err == nil { // ignore an error here, because the action itself succeeded
		text += " · next: " + d.rowOf(next.Message) + " " + cli.Line(next.Subject)
	}
	d.Say(d.Faint, "%s", text)
}

// rowOf returns the number of a message in this terminal's last list, or the name of the message in a thread that was
// shown after the list. If the message has neither, rowOf returns its short id.
func (d *deskWork) rowOf(id string) string {
	last := readList(d.listFile)
	if row := slices.Index(last.IDs, id); row >= 0 && (d.Slug == "" || last.projectOf(row) == d.Slug) {
		return strconv.Itoa(row + 1)
	}
	for _, t := range last.Opened {
		if i := slices.Index(t.IDs, id); i >= 0 && t.Project == d.Slug {
			return t.Row + letters(i)
		}
	}
	return d.ShortID(id)
}

// readList reads a terminal's last list. A missing or damaged list has no rows.
func readList(file string) (last lastList) {
	if st, err := os.Lstat(file); err != nil || !st.Mode().IsRegular() { // never block on a pipe
		return last
	}
	if data, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(data, &last)
	}
	return last
}

// waitsOf asks the server for the items that are waiting for the user. The user does not have to be an agent of the
// project. If d has no project, the request covers all projects. If all is set, the response lists all threads.
func (p *program) waitsOf(ctx context.Context, d *deskWork, all bool, answer any) error {
	me, err := p.me()
	if err != nil {
		return err
	}
	ask := mcpserver.WaitingAsk{Agent: maildir.PersonName(me), All: all}
	if d.Slug == "" {
		return d.Ask(ctx, "waiting-all", ask, answer)
	}
	return d.Ask(ctx, cli.Of(d.Slug, "waiting"), ask, answer)
}

// firstWaiting returns the thread that the user should read first.
func (p *program) firstWaiting(ctx context.Context, d *deskWork) (*maildir.WaitingThread, error) {
	var w maildir.Waits
	if err := p.waitsOf(ctx, d, false, &w); err != nil {
		return nil, err
	}
	if mail := w.Mail(); len(mail) > 0 {
		return &mail[0], nil
	}
	return nil, &exitError{exitNothing, fmt.Errorf("no mail is waiting for %s in %s: specify a message id", w.Agent, d.Slug)}
}
