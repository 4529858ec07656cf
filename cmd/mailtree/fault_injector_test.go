//go:build linux

package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"mailtree/fixtures/trap"
)

// This init lets the test binary launch a trapped program. It must run before the init in fault_main_test.go, which
// turns the process into the trapped program. The inits of a package run in the order of their file names.
func init() { trap.Enter() }

// callSite identifies a place where the program makes a file call: the name of the call, and the path below the tree.
// Ids in the path are replaced, so that the same call for the next message has the same site.
type callSite struct {
	call, path string
	changes    bool // as in trap.Call
}

func (at callSite) String() string { return at.call + " " + at.path }

// names lists the parts of paths that differ between messages, claims, agents and so on, with their placeholders.
var names = []struct {
	pattern *regexp.Regexp
	stands  string
}{
	{regexp.MustCompile(`msg_\d{8}_[0-9a-f]{16}`), "ID"},
	{regexp.MustCompile(`\d{4}/\d\d/\d\d\b`), "DAY"},
	{regexp.MustCompile(`objects/[0-9a-f]{2}/[0-9a-f]{38}`), "objects/OBJECT"},
	{regexp.MustCompile(`objects/[0-9a-f]{2}$`), "objects/FOLDER"},
	{regexp.MustCompile(`claims/[0-9a-f]{40}`), "claims/HASH"},
	{regexp.MustCompile(`pack-[0-9a-f]{40}`), "PACK"},
	{regexp.MustCompile(`Agent\d+`), "NEW"},
	{regexp.MustCompile(`\.mailtree/tmp/.+`), ".mailtree/tmp/STAGED"},
	{regexp.MustCompile(`\.git/(.*/)?[^/]*\d{6,}[^/]*$`), ".git/${1}TEMPORARY"},
}

// owned matches a part of a path that shows which try a call belongs to.
var owned = regexp.MustCompile(`msg_\d{8}_[0-9a-f]{16}|claims/[0-9a-f]{40}|Agent\d+`)

// shot is a call that should fail: the nth call at its site.
type shot struct {
	callSite
	nth   int
	errno syscall.Errno
}

func (s *shot) String() string {
	return fmt.Sprintf("%s at %s, time %d", unix.ErrnoName(s.errno), s.callSite, s.nth)
}

// injector counts the file calls below a project's tree by site, and makes one of them fail.
type injector struct {
	wait func() // waits until all trapped processes have ended

	mu    sync.Mutex
	tree  string         // the tree's folder; if empty, no calls are counted
	first map[string]int // the try in which an owned part first appeared
	try   int
	keep  string // an owned part of an earlier try that also belongs to this try
	every bool   // the owned parts of all earlier tries also belong to this try
	sites map[callSite]int
	order []callSite // the sites in the order of their first calls
	shot  *shot
	hit   *trap.Call // the call that was made to fail
}

// launch starts a program whose file calls the injector counts.
func (in *injector) launch(cmd *exec.Cmd) (err error) {
	in.wait, err = trap.Start(cmd, in.decide)
	return err
}

func (in *injector) decide(c trap.Call) syscall.Errno {
	in.mu.Lock()
	defer in.mu.Unlock()
	rel, ok := strings.CutPrefix(c.Path, in.tree)
	if in.tree == "" || !ok || rel != "" && rel[0] != '/' {
		return 0
	}
	part := owned.FindString(rel)
	if _, known := in.first[part]; !known && part != "" {
		in.first[part] = in.try
	}
	if in.sites == nil || part != "" && in.first[part] < in.try && !in.every && !strings.Contains(part, in.keep) {
		return 0
	}
	at := callSite{call: c.Name, path: strings.TrimPrefix(rel, "/"), changes: c.Changes}
	for _, n := range names {
		at.path = n.pattern.ReplaceAllString(at.path, n.stands)
	}
	if in.sites[at]++; in.sites[at] == 1 {
		in.order = append(in.order, at)
	}
	if s := in.shot; s != nil && in.hit == nil && s.callSite == at && s.nth == in.sites[at] {
		in.hit = &c
		return s.errno
	}
	return 0
}

// arm begins a try. After that, the injector counts calls and, unless s is nil, makes the shot's call fail. It does not
// count calls for paths of earlier tries, unless a path contains keep, or every is set.
func (in *injector) arm(s *shot, keep string, every bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.try++
	in.keep, in.every, in.shot, in.hit = keep, every, s, nil
	if keep == "" {
		in.keep = "\x00" // matches no path
	}
	in.sites, in.order = map[callSite]int{}, nil
}

// disarm ends a try. It returns the try's calls, and the call that failed, or nil if none failed.
func (in *injector) disarm() (sites map[callSite]int, order []callSite, hit *trap.Call) {
	in.mu.Lock()
	defer in.mu.Unlock()
	sites, order, hit = in.sites, in.order, in.hit
	in.sites, in.order, in.shot, in.hit = nil, nil, nil, nil
	return sites, order, hit
}

// struck reports whether the current try's shot was fired.
func (in *injector) struck() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.hit != nil
}

// made returns how many calls the program has made at a site in this try.
func (in *injector) made(at callSite) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.sites[at]
}
