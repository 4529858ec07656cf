package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/tree"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/mail"
)

// This file stores the list of messages that a terminal showed last. Commands accept the list's row numbers instead of
// ids.

// rowNumber matches a row number. The list may have fewer rows.
var rowNumber = regexp.MustCompile(`^[0-9]{1,3}$`)

// maxNumbered is the largest number that a row can have.
const maxNumbered = 999

// oldList is the age at which a terminal's list is removed. Shells seldom live longer.
const oldList = 7 * 24 * time.Hour

// lastList is the list that a terminal showed last.
type lastList struct {
	Project string   `json:"project"` // its slug
	IDs     []string `json:"ids"`     // the ids of the rows, starting with row 1

	// Threads contains the ids of the threads if this is a list of threads. In that case, IDs contains each thread's
	// waiting message.
	Threads []string `json:"threads,omitempty"`

	// Projects contains the projects of the rows if this is a list of all projects. In that case, Project is "".
	Projects []string `json:"projects,omitempty"`
}

// projectOf returns the project of a row, counted from 0.
func (l *lastList) projectOf(row int) string {
	if row < len(l.Projects) {
		return l.Projects[row]
	}
	return l.Project
}

// stateFolder returns the folder for files that commands keep for their user, or "" if the environment does not say
// where it is.
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

// listFile returns the file for the last list of this terminal, or "" without a terminal. Each terminal device and
// login session has its own file. The file is below the user's XDG_STATE_HOME. The user need not be the OS user who
// runs the server.
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

// number returns the names for these messages in a list: row numbers if there is a terminal, and short ids otherwise.
// The numbers continue where the last call of the same command ended. In a list of threads, each message also has its
// thread in threads.
func (d *deskWork) number(ids []string, threads ...string) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = d.ShortID(id)
	}
	if d.listFile == "" || d.json {
		return names
	}
	begin := len(d.listed)
	d.listed = append(d.listed, ids[:min(len(ids), maxNumbered-begin)]...)
	data, err := json.Marshal(lastList{d.Slug, d.listed, threads, d.rowProjects})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(d.listFile), 0o700)
	}
	if err == nil {
		err = tree.WriteFile(d.listFile, data)
	}
	if err != nil { // for example, the disk is full: ids work too
		return names
	}
	removeOldLists(filepath.Dir(d.listFile))
	for i := range names[:len(d.listed)-begin] {
		names[i] = fmt.Sprintf("%2d", begin+i+1)
	}
	return names
}

// removeOldLists removes the lists of terminals that are most likely closed.
func removeOldLists(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > oldList {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// rowsToIDs replaces each row number with the id of that row in this terminal's last list. It returns the ids, each
// with its row's thread, or with "" if the row is not a thread. If there was a row number, it also returns the list's
// project. It returns an error for a number that is not in the list, and for any number if there is no terminal or no
// list.
func (p *program) rowsToIDs(args []string) (named lastList, err error) {
	file := p.listFile()
	last := readList(file)
	for _, arg := range args {
		thread := ""
		if rowNumber.MatchString(arg) {
			if file == "" {
				return named, &exitError{exitUsage, fmt.Errorf("%s is a row number, but row numbers work only in a terminal: "+
					"use the message id", arg)}
			}
			n, _ := strconv.Atoi(arg)
			switch {
			case len(last.IDs) == 0 && last.Project == "":
				return named, &exitError{exitNothing, fmt.Errorf("%s is a row number, but this terminal has not shown a list yet: "+
					"`mailtree` shows one", arg)}
			case n < 1 || n > len(last.IDs):
				return named, &exitError{exitNothing, fmt.Errorf("there is no row %s, because the last list has %s: use one of "+
					"its row numbers, or a message id",
					arg, count(len(last.IDs), "row"))}
			}
			of := last.projectOf(n - 1)
			if named.Project != "" && named.Project != of {
				return named, &exitError{exitUsage, fmt.Errorf("the rows are in the projects %s and %s: use one command for each project",
					named.Project, of)}
			}
			arg, named.Project = last.IDs[n-1], of
			if n <= len(last.Threads) {
				thread = last.Threads[n-1]
			}
		}
		named.IDs, named.Threads = append(named.IDs, arg), append(named.Threads, thread)
	}
	return named, nil
}

// messagesOf returns the ids of the messages in the argument at i. Usually that is one message. For a row in a list of
// threads, it is every message of the thread that was sent to the user, is not archived, and satisfies wanted. If there
// are none, messagesOf returns the row's own message.
func (d *deskWork) messagesOf(ctx context.Context, i int, wanted func(m *mail.Delivery) bool) (ids []string, err error) {
	ask := map[string]any{"project_key": d.Slug, "agent_name": d.Person, "thread_id": d.threads[i], "limit": maildir.MaxPage}
	for more := wanted != nil && d.threads[i] != ""; more; {
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

// atMessage is like atDesk, for the message or thread in args. Without an argument, it uses the first message that is
// waiting for the user.
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

// tellNext prints did, how to undo the last action, and what is waiting next.
func (p *program) tellNext(ctx context.Context, d *deskWork, did string) {
	text := did + "undo: "
	if me, err := p.me(); err == nil && d.Person != maildir.PersonName(me) { // sent with --from
		text += "MAILTREE_ME=" + d.Person + " "
	}
	text += "mailtree undo"
	if next, err := p.firstWaiting(ctx, d); err == nil { // on an error, say nothing: the action itself succeeded
		text += " · next: " + d.rowOf(next.Message) + " " + cli.Line(next.Subject)
	}
	d.Say(d.Faint, "%s", text)
}

// rowOf returns a message's number in this terminal's last list, or its short id if it is not in that list.
func (d *deskWork) rowOf(id string) string {
	last := readList(d.listFile)
	if row := slices.Index(last.IDs, id); row >= 0 && (d.Slug == "" || last.projectOf(row) == d.Slug) {
		return strconv.Itoa(row + 1)
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

// waitsOf asks what is waiting for the user, who may not be an agent of the project yet. If d has no project, it asks for
// all projects. If all is set, the answer lists all threads.
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
