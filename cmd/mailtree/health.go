package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// health serves GET /health.
type health struct {
	app   *app
	web   *web
	began time.Time
}

type healthReport struct {
	Status     string          `json:"status"` // ok, or degraded if the user needs to do something
	Version    string          `json:"version"`
	Store      string          `json:"store"`
	Background bool            `json:"background,omitempty"` // this is a background server, which listens over TCP only if URL is set
	URL        string          `json:"url,omitempty"`        // the server's URL over TCP
	Open       string          `json:"open,omitempty"`       // a warning if every OS user on this machine may use URL
	Sends      bool            `json:"sends,omitempty"`      // the server sends mail to other domains
	Uptime     float64         `json:"uptime_seconds"`
	Projects   int             `json:"projects"`
	Agents     int             `json:"agents"`
	Messages   int             `json:"messages"`
	Deliveries int             `json:"deliveries"`
	Unread     int             `json:"unread"`
	Problems   int             `json:"problems"`
	Watcher    watcherHealth   `json:"watcher"`
	IndexLag   float64         `json:"index_lag_seconds"`       // age of the oldest change that is not indexed yet
	LastCommit string          `json:"last_commit"`             // time of the last commit; empty if there was none since the server started
	BadFiles   []problem       `json:"problem_files,omitempty"` // invalid files, at most maxWaiting; Problems counts all of them
	Detail     []projectHealth `json:"detail"`
	Error      string          `json:"error,omitempty"`
}

type watcherHealth struct {
	Mode    string `json:"mode"` // starting, watching, polling (WATCH) or degraded
	Reason  string `json:"reason,omitempty"`
	Folders int    `json:"folders"`
}

type projectHealth struct {
	Project       string `json:"project"`
	HumanKey      string `json:"human_key"`
	History       string `json:"history"`
	HistoryReason string `json:"history_reason,omitempty"`
	Uncommitted   int    `json:"uncommitted"`

	Import *maildir.Import `json:"import,omitempty"` // set while a large number of changed files is being imported

	LastCommit string `json:"last_commit"`
	Disk       string `json:"disk,omitempty"` // set to the problem if the disk does not respond or operations fail

	Sync       *maildir.SyncState `json:"sync,omitempty"`        // set if the project is shared with other machines
	SyncReason string             `json:"sync_reason,omitempty"` // why the mail is not in sync with those machines; empty if it is in sync

	Unwoken []unwokenAgent `json:"unwoken,omitempty"` // at most maxWaiting agents

	Waiting      []waitingFile `json:"waiting,omitempty"`       // at most maxWaiting files and folders
	WaitingCount int           `json:"waiting_count,omitempty"` // number of files and folders that could not be read
}

// problem is an invalid file.
type problem struct {
	Project string `json:"project"`
	Path    string `json:"path"`
	Line    int    `json:"line,omitempty"`
	Text    string `json:"text"` // the error, and how to fix it
}

// waitingFile is a file or folder that the server cannot read because of a system error. The server tries again later.
type waitingFile struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// unwokenAgent is an agent that has had unread mail for a long time and has no client that can be woken.
type unwokenAgent struct {
	Agent  string `json:"agent"`
	Unread int    `json:"unread"`
	Since  string `json:"since"`
	Text   string `json:"text"`
}

// maxWaiting is the maximum number of problems that health lists. For each project, it is also the maximum number of
// waiting files and of unwoken agents.
const maxWaiting = 20

// Reasons returns a sentence for each problem in a project.
func (r *healthReport) Reasons() (out []string) {
	for _, d := range r.Detail {
		for _, why := range []string{d.Disk, d.HistoryReason, d.SyncReason} {
			if why != "" {
				out = append(out, d.Project+": "+why)
			}
		}
		if d.WaitingCount > 0 {
			w := d.Waiting[0]
			out = append(out, fmt.Sprintf("%s: %s could not be read, starting with %q (%s); the server will retry",
				d.Project, count(d.WaitingCount, "file"), w.Path, w.Error))
		}
	}
	return out
}

// Up returns how long the server has been running.
func (r *healthReport) Up() time.Duration { return time.Duration(r.Uptime * float64(time.Second)) }

// stalled is how long an operation may wait for the disk before health reports that the disk does not respond.
const stalled = 10 * time.Second

// verdict returns the report, and whether the status in the report is ok.
func (h *health) verdict(ctx context.Context) (report any, able bool) {
	r := h.report(ctx)
	return r, r.Status == "ok"
}

// readyWait is how long the index may take to respond before the server reports that it is not ready.
const readyWait = 2 * time.Second

// ready implements mcp.Config.Ready for GET /readyz.
func (h *health) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	if _, err := h.app.store.Stats(ctx); err != nil {
		return errors.New("the index is not responding")
	}
	for _, p := range h.app.store.Projects() {
		if p.Stalled() > stalled {
			return errors.New("the disk is not responding")
		}
	}
	return nil
}

// report collects the current state. It does not wait for the disk or for Git.
func (h *health) report(ctx context.Context) *healthReport {
	r := &healthReport{
		Status:     "ok",
		Version:    version(),
		Store:      h.app.store.Root(),
		Background: h.app.cfg.background,
		URL:        h.web.address(),
		Sends:      len(h.app.cfg.Gateway.Allow) > 0,
		Uptime:     time.Since(h.began).Truncate(time.Second).Seconds(),
		Detail:     []projectHealth{},
	}
	if r.URL != "" {
		r.Open = h.web.open
	}
	stats, err := h.app.store.Stats(ctx)
	if err != nil {
		r.Status, r.Error = "degraded", "the index is not responding; see the server's log"
	}
	r.Projects, r.Agents, r.Messages, r.Deliveries, r.Problems = stats.Projects, stats.Agents, stats.Messages, stats.Deliveries, stats.Problems
	r.Unread = stats.Unread
	r.BadFiles = h.problems(ctx)
	w := h.app.watcher.State()
	r.Watcher = watcherHealth{w.Mode, w.Reason, w.Folders}
	if w.Mode == "degraded" {
		r.Status = "degraded"
	}
	if !w.Oldest.IsZero() {
		r.IndexLag = time.Since(w.Oldest).Seconds()
	}
	var last time.Time
	for _, p := range h.app.store.Projects() {
		d, commit := h.app.projectHealth(ctx, p)
		if d.HistoryReason != "" || d.Disk != "" || d.SyncReason != "" || d.WaitingCount > 0 {
			r.Status = "degraded"
		}
		if commit.After(last) {
			last = commit
			r.LastCommit = d.LastCommit
		}
		r.Detail = append(r.Detail, d)
	}
	for slug, err := range h.app.store.LeftOut() {
		r.Status = "degraded"
		r.Detail = append(r.Detail, projectHealth{Project: slug, Disk: "The project could not be opened: " + words.Explain(err)})
	}
	return r
}

// problems returns up to maxWaiting invalid files.
func (h *health) problems(ctx context.Context) (first []problem) {
	all, err := h.app.store.Problems(ctx, "", maxWaiting)
	if err != nil {
		h.app.log.Debug("cannot list the problems", "error", err)
	}
	for _, p := range all {
		first = append(first, problem{p.Project, p.Path, p.Line, p.Reason})
	}
	return first
}

func (a *app) projectHealth(ctx context.Context, p *maildir.Project) (d projectHealth, commit time.Time) {
	hs := p.HistoryState()
	d = projectHealth{
		Project:       p.Slug,
		HumanKey:      p.HumanKey(),
		History:       hs.Mode,
		HistoryReason: hs.Reason,
		Uncommitted:   hs.Pending,
		Import:        p.Importing(hs.Import),
	}
	if !hs.LastCommit.IsZero() {
		d.LastCommit = format.FormatTime(hs.LastCommit)
	}
	if s := p.Sync.State(); s.On {
		d.Sync, d.SyncReason = &s, s.String()
	}
	if wait := p.Stalled(); wait > stalled {
		d.Disk = fmt.Sprintf("The disk has not responded for %s, so operations are waiting.", wait.Round(time.Second))
	}
	if err := p.Failing(); err != nil {
		d.Disk = "The last operation failed: " + words.Explain(err)
	}
	unwoken, err := p.Sessions.Unwoken(ctx)
	if err != nil {
		a.log.Debug("cannot list the agents that could not be woken", "project", p.Slug, "error", err)
	}
	for i := range unwoken[:min(len(unwoken), maxWaiting)] {
		u := &unwoken[i]
		d.Unwoken = append(d.Unwoken, unwokenAgent{u.Agent, u.Unread, format.FormatTime(u.Since), u.String()})
	}
	unread := p.Unreadable()
	d.WaitingCount = len(unread)
	for _, u := range unread[:min(len(unread), maxWaiting)] {
		d.Waiting = append(d.Waiting, waitingFile{u.Path, u.Err.Error()})
	}
	return d, hs.LastCommit
}

// summary returns a short description of the store's content.
func (a *app) summary(ctx context.Context) string {
	s, err := a.store.Stats(ctx)
	if err != nil {
		return "index not readable"
	}
	text := fmt.Sprintf("%s, %s", count(s.Projects, "project"), count(s.Messages, "message"))
	if s.Problems > 0 {
		text += fmt.Sprintf(", %s: see `mailtree doctor`", count(s.Problems, "problem"))
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
