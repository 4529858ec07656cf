package claimlist

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// In these tests, this machine's key has the id "here". The machine's monotonic clock shows now, and its wall clock
// shows at.
var (
	now  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at   = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	made = at.Add(-time.Hour) // creation time of claims without "created=NAME"
)

// options contains the options (NAME=VALUE) at the end of a line. An option without a value has the value "yes".
type options map[string]string

func split(line string, n int) (fields []string, o options) {
	all := strings.Fields(line)
	o = options{}
	for _, word := range all[n:] {
		name, value, found := strings.Cut(word, "=")
		if !found {
			value = "yes"
		}
		o[name] = value
	}
	return all[:n], o
}

func (o options) duration(t testing.TB, name string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(o[name])
	if err != nil && o[name] != "" {
		t.Fatal(err)
	}
	return d
}

func left(t testing.TB, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// entries reads lines of the form "PATH AGENT PATTERN MACHINE LEFT [shared] [blob=B] [inception=D] [created=D]
// [wall=D]". The claim expires after LEFT on the monotonic clock and, if wall is given, after wall on the wall clock.
func entries(t testing.TB, lines []string) map[string]*Entry {
	t.Helper()
	list := map[string]*Entry{}
	for _, line := range lines {
		f, o := split(line, 5)
		e := &Entry{Blob: f[0], Lease: format.Lease{Machine: f[3], Claim: format.Claim{
			Agent: f[1], Pattern: f[2], Exclusive: o["shared"] == "", Created: made.Add(o.duration(t, "created")),
		}}}
		if o["blob"] != "" {
			e.Blob = o["blob"]
		}
		if o["inception"] != "" {
			e.Inception = made.Add(o.duration(t, "inception"))
		}
		e.Length = left(t, f[4])
		e.Until, e.Expires = now.Add(e.Length), at.Add(e.Length)
		if o["wall"] != "" {
			e.Expires = at.Add(o.duration(t, "wall"))
		}
		list[f[0]] = e
	}
	return list
}

// rows reads lines of the form "PATH AGENT PATTERN LEFT [shared] [released] [created=D] [reason=R]".
func rows(t testing.TB, lines []string) (all []claim.Row) {
	t.Helper()
	for _, line := range lines {
		f, o := split(line, 4)
		all = append(all, claim.Row{Path: f[0], Released: o["released"] != "", Claim: format.Claim{
			Agent: f[1], Pattern: f[2], Exclusive: o["shared"] == "", Reason: o["reason"],
			Created: made.Add(o.duration(t, "created")), Expires: at.Add(left(t, f[3])),
		}})
	}
	return all
}

// name returns a short name for the path of a claim file. For a file that Next creates, the name is "new:" followed
// by the pattern.
func (n *Next) name(path string) string {
	if strings.HasPrefix(path, format.ClaimsDir+"/") {
		return "new:" + n.List[path].Pattern
	}
	return path
}

// shown formats a round's decisions as lines.
func shown(n *Next, res *claim.Result) (lines []string) {
	for path, e := range n.Followed() {
		line := fmt.Sprintf("%s %s %s %s %v", n.name(path), e.Agent, e.Pattern, e.Machine, e.Until.Sub(now))
		if e.Renewal > 0 {
			line += fmt.Sprint(" renewal=", e.Renewal)
		}
		if wall := e.Expires.Sub(at); wall != e.Until.Sub(now) {
			line += fmt.Sprint(" wall=", wall)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	for _, f := range n.Ended() {
		line := "ended " + f.Path
		if held, lost := n.Lost[f.Path]; lost {
			line += " lost to " + held.Agent
		}
		if n.IsNews(&f) {
			line += ", told"
		}
		lines = append(lines, line)
	}
	if res != nil {
		for _, c := range res.Conflicts {
			lines = append(lines, fmt.Sprintf("refused %s: %s has %s", c.Pattern, c.Held.Agent, c.Held.Pattern))
		}
		for _, g := range res.Granted {
			lines = append(lines, fmt.Sprintf("granted %s until %v", g.Pattern, g.Expires.Sub(at)))
		}
	}
	return lines
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                   string
		there, followed, files []string
		reset                  bool
		removed                []string
		ask                    string // "AGENT PATTERN [shared] [dry]"
		want                   []string
	}{
		{name: "nothing"},
		{
			name:  "a file that was created here is added to the list",
			files: []string{"f Ann app 30m"},
			want:  []string{"f Ann app here 30m0s"},
		},
		{
			name:  "a claim file that is too long is shortened",
			files: []string{"f Ann app 1000h"},
			want:  []string{"f Ann app here 720h0m0s"},
		},
		{
			name:  "the earlier of two files is added to the list",
			files: []string{"f Ann app 30m", "g Bob app/x 30m"},
			want:  []string{"f Ann app here 30m0s", "ended g lost to Ann, told"},
		},
		{
			name:  "two shared claims coexist",
			there: []string{"1 Eve app there 30m shared"},
			files: []string{"f Ann app/x 30m shared"},
			want:  []string{"1 Eve app there 30m0s", "f Ann app/x here 30m0s"},
		},
		{
			name:  "a file whose path the list gave to another agent loses",
			there: []string{"1 Eve app/** there 30m"},
			files: []string{"f Ann app/x 30m"},
			want:  []string{"1 Eve app/** there 30m0s", "ended f lost to Eve, told"},
		},
		{
			name:  "paths that differ only in case conflict",
			there: []string{"1 Eve App there 30m"},
			files: []string{"f Ann app 30m"},
			want:  []string{"1 Eve App there 30m0s", "ended f lost to Eve, told"},
		},
		{
			name:  "an expired claim conflicts with no other claim",
			there: []string{"1 Eve app there 0s"},
			files: []string{"f Ann app 30m"},
			want:  []string{"f Ann app here 30m0s"},
		},
		{
			name:  "the file of another machine's agent is not a request",
			files: []string{"f Far app 30m"},
			want:  []string{"ended f"},
		},
		{
			name:     "released here",
			there:    []string{"1 Ann app here 30m", "2 Eve doc there 30m"},
			followed: []string{"1 Ann app here 30m", "2 Eve doc there 30m"},
			files:    []string{"1 Ann app 30m released", "2 Eve doc 30m released"},
		},
		{
			name:  "released here before the list was followed: own claim is removed, another's is not",
			there: []string{"1 Ann app here 30m", "2 Eve doc there 30m"},
			files: []string{"1 Ann app 30m released", "2 Eve doc 30m released"},
			want:  []string{"2 Eve doc there 30m0s"},
		},
		{
			name:     "the mark belongs to an earlier claim",
			there:    []string{"1 Eve app there 30m created=5m"},
			followed: []string{"1 Eve app there 30m created=5m"},
			files:    []string{"1 Eve app 30m released"},
			want:     []string{"1 Eve app there 30m0s"},
		},
		{
			name:     "renewed there in the meantime",
			there:    []string{"1 Eve app there 30m blob=b"},
			followed: []string{"1 Eve app there 10m blob=a"},
			files:    []string{"1 Eve app 10m released"},
			want:     []string{"1 Eve app there 30m0s"},
		},
		{
			name:     "files that were removed: own claim is treated as released",
			there:    []string{"1 Ann app here 30m", "2 Eve doc there 30m"},
			followed: []string{"1 Ann app here 30m", "2 Eve doc there 30m"},
			removed:  []string{"1", "2"},
			want:     []string{"2 Eve doc there 30m0s"},
		},
		{
			name:     "a file that has not followed the list was removed",
			there:    []string{"1 Ann app here 30m blob=b"},
			followed: []string{"1 Ann app here 10m blob=a"},
			removed:  []string{"1"},
			want:     []string{"1 Ann app here 30m0s"},
		},
		{
			name:     "a request does not depend on whether the file was removed",
			there:    []string{"1 Ann app here 30m"},
			followed: []string{"1 Ann app here 30m"},
			removed:  []string{"1"},
			ask:      "Bob app",
			want:     []string{"1 Ann app here 30m0s", "refused app: Ann has app"},
		},
		{
			name:     "ended by hand",
			there:    []string{"1 Ann app here 30m"},
			followed: []string{"1 Ann app here 30m"},
			files:    []string{"1 Ann app -1m"},
		},
		{
			name:     "extended by hand",
			there:    []string{"1 Ann app here 30m"},
			followed: []string{"1 Ann app here 30m"},
			files:    []string{"1 Ann app 90m"},
			want:     []string{"1 Ann app here 1h30m0s renewal=1"},
		},
		{
			name:     "another's extended by hand: the file is restored",
			there:    []string{"1 Eve app there 30m"},
			followed: []string{"1 Eve app there 30m"},
			files:    []string{"1 Eve app 90m"},
			want:     []string{"1 Eve app there 30m0s"},
		},
		{
			name:     "removed from the list before expiry",
			followed: []string{"1 Ann app here 30m", "2 Eve doc there 30m"},
			files:    []string{"1 Ann app 30m", "2 Eve doc 30m"},
			want:     []string{"ended 1, told", "ended 2"},
		},
		{
			name:     "expired",
			there:    []string{"1 Ann app here 0s wall=1s"},
			followed: []string{"1 Ann app here 0s wall=1s"},
			files:    []string{"1 Ann app 1s"},
			want:     []string{"ended 1"},
		},
		{
			name:     "the list was lost: it is restored from what the files have followed",
			reset:    true,
			there:    []string{"2 Bob lib there 30m"},
			followed: []string{"1 Ann app here 30m", "3 Eve doc there 30m"},
			files:    []string{"1 Ann app 30m", "3 Eve doc 30m"},
			want:     []string{"1 Ann app here 30m0s", "2 Bob lib there 30m0s", "3 Eve doc there 30m0s"},
		},
		{
			name: "granted",
			ask:  "Ann app",
			want: []string{"new:app Ann app here 1h0m0s", "granted app until 1h0m0s"},
		},
		{
			name:     "renewed",
			there:    []string{"1 Ann app here 30m"},
			followed: []string{"1 Ann app here 30m"},
			files:    []string{"1 Ann app 30m"},
			ask:      "Ann app",
			want:     []string{"1 Ann app here 1h0m0s renewal=1", "granted app until 1h0m0s"},
		},
		{
			name:  "a dry run changes nothing",
			there: []string{"1 Eve doc there 30m"},
			ask:   "Ann app dry",
			want:  []string{"1 Eve doc there 30m0s", "granted app until 1h0m0s"},
		},
		{
			name:  "refused",
			there: []string{"1 Eve app/** there 30m"},
			ask:   "Ann app/x",
			want:  []string{"1 Eve app/** there 30m0s", "refused app/x: Eve has app/**"},
		},
		{
			name:  "another agent of the same name",
			there: []string{"1 Twin app there 30m inception=5m"},
			ask:   "Twin app",
			want:  []string{"1 Twin app there 30m0s", "refused app: Twin has app"},
		},
		{
			name:  "a user's agent is the same on all machines",
			there: []string{"1 pat app there 30m inception=5m"},
			ask:   "pat app",
			want:  []string{"1 pat app here 1h0m0s renewal=1", "granted app until 1h0m0s"},
		},
		{
			name:     "the wall clock jumped forward: the claim is valid, and its file says until when",
			there:    []string{"1 Eve app there 30m wall=-2h"},
			followed: []string{"1 Eve app there 30m wall=-2h"},
			files:    []string{"1 Eve app -2h"},
			ask:      "Ann app",
			want:     []string{"1 Eve app there 30m0s", "refused app: Eve has app"},
		},
		{
			name:     "the wall clock is a little ahead: the claim is valid",
			there:    []string{"1 Eve app there 30s wall=-10s"},
			followed: []string{"1 Eve app there 30s wall=-10s"},
			files:    []string{"1 Eve app -10s"},
			ask:      "Ann app",
			want:     []string{"1 Eve app there 30s wall=-10s", "refused app: Eve has app"},
		},
		{
			name:     "own claim was lost to a namesake and edited by hand: it is the agent's own again",
			there:    []string{"1 Twin app there 1h shared blob=b inception=5m created=1m"},
			followed: []string{"1 Twin app here 1h shared blob=a inception=0s"},
			files:    []string{"1 Twin app 2h shared"},
			ask:      "Twin app",
			want:     []string{"1 Twin app here 1h0m0s renewal=2", "granted app until 1h0m0s"},
		},
		{
			name:     "the wall clock is a little off: the file is not changed",
			there:    []string{"1 Eve app there 30m wall=30m50s"},
			followed: []string{"1 Eve app there 30m wall=30m50s"},
			files:    []string{"1 Eve app 30m50s"},
			want:     []string{"1 Eve app there 30m0s wall=30m50s"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &Round{
				Remote: entries(t, c.there), Base: entries(t, c.followed), Reset: c.reset, Files: rows(t, c.files),
				Removed: map[string]bool{}, Machine: "here", Now: now, At: at, IsFile: func(string) bool { return false },
				Agents: map[string]*Agent{
					"Ann": {Inception: made}, "Bob": {Inception: made}, "Twin": {Inception: made},
					"pat": {Inception: made, Person: true}, "Far": {Elsewhere: true},
				},
			}
			for _, path := range c.removed {
				r.Removed[path] = true
			}
			before := []map[string]*Entry{maps.Clone(r.Remote), maps.Clone(r.Base)}
			var ask *claim.Request
			if c.ask != "" {
				f, o := split(c.ask, 2)
				ask = &claim.Request{Agent: f[0], Patterns: f[1:], Shared: o["shared"] != "", DryRun: o["dry"] != "", TTL: time.Hour}
			}
			n, res, err := r.Next(ask)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, shown(n, res)); d != "" {
				t.Error(d)
			}
			if !maps.Equal(before[0], r.Remote) || !maps.Equal(before[1], r.Base) {
				t.Error("Next has changed its input")
			}
			files := ByPath(r.Files)
			maps.Copy(files, ByPath(n.Granted)) // granted claims are written first
			write, ended, ok := n.Follow(files)
			if !ok || slices.ContainsFunc(write, func(w claim.Row) bool { return slices.Contains(n.Granted, w) }) {
				t.Fatalf("write %v, %v: no file has changed, and granted claims are written", write, ok)
			}
			// Once the files have been written, the next round changes nothing.
			after := files
			for _, row := range write {
				after[row.Path] = row
			}
			for _, row := range ended {
				row.Released = true
				after[row.Path] = row
			}
			again := *r
			again.own, again.Remote, again.Base, again.Reset, again.Removed = nil, written(n.Followed()), written(n.Followed()), false, nil
			again.Files = slices.SortedFunc(maps.Values(after), func(a, b claim.Row) int { return strings.Compare(a.Path, b.Path) })
			if n, _, err = again.Next(nil); err != nil {
				t.Fatal(err)
			}
			write, ended, ok = n.Follow(after)
			if len(write) > 0 || len(ended) > 0 || !ok || !maps.EqualFunc(again.Remote, n.List, func(a, b *Entry) bool { return a.Blob == b.Blob }) {
				t.Errorf("the next round writes %v, ends %v, %v:\n%q", write, ended, ok, shown(n, nil))
			}
		})
	}
}

// written returns the list as it appears after a push.
func written(list map[string]*Entry) map[string]*Entry {
	is := map[string]*Entry{}
	for path, e := range list {
		w := *e
		w.Blob = fmt.Sprint("written ", path, e.Renewal)
		is[path] = &w
	}
	return is
}

// TestNewEntry checks that another machine's lease is counted from now, with Grace added, and that this machine's lease
// expires at the time in its file.
func TestNewEntry(t *testing.T) {
	t.Parallel()
	r := &Round{Machine: "here", Now: now, At: at, Files: rows(t, []string{"1 Ann app 10m"})}
	for _, c := range []struct {
		path, machine string
		followed      bool
		want          time.Duration
	}{
		{"1", "there", true, time.Hour + Grace},
		{"1", "here", true, 10 * time.Minute},
		{"1", "here", false, time.Hour},
		{"2", "here", true, time.Hour},
	} {
		lease := format.Lease{Machine: c.machine, Length: time.Hour, Claim: format.Claim{Created: made}}
		e := r.NewEntry(c.path, "b", lease, c.followed)
		if e.Until.Sub(now) != c.want || e.Expires.Sub(at) != c.want {
			t.Errorf("%+v: %v, %v", c, e.Until.Sub(now), e.Expires.Sub(at))
		}
	}
}

// TestFollowLater checks that, if the files could not be written, the next round makes the same decisions even if the
// wall clock was changed between the rounds.
func TestFollowLater(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		list := entries(t, []string{"1 Ann app here 1h"})
		for range 2 {
			r := &Round{
				Remote: list, Base: list, Files: rows(t, []string{"1 Ann app 1h"}), Agents: map[string]*Agent{"Ann": {Inception: made}},
				Machine: "here", Now: now, At: at.Add(step), IsFile: func(string) bool { return false },
			}
			n, _, err := r.Next(nil)
			if err != nil {
				t.Fatal(err)
			}
			if e := n.List["1"]; e == nil || e.Blob == "" {
				t.Errorf("the clock was set by %v: %v", step, shown(n, nil))
			}
			list = n.List
		}
	}
}

// TestFollow checks that Follow reports a file that has changed since the round began, instead of writing or releasing
// its claim.
func TestFollow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ was, is, there string }{
		{"1 Eve app 10m", "1 Eve app 20m", "1 Eve app there 30m"}, // Follow would write this file
		{"1 Ann app 10m", "1 Ann app 20m", ""},                    // Follow would release this claim
	} {
		r := &Round{Machine: "here", Now: now, At: at, Files: rows(t, []string{c.was}), IsFile: func(string) bool { return false }}
		r.Base = entries(t, []string{"1 Eve app there 10m"})
		if c.there != "" {
			r.Remote = entries(t, []string{c.there})
		}
		n, _, err := r.Next(nil)
		if err != nil {
			t.Fatal(err)
		}
		if write, ended, ok := n.Follow(ByPath(r.Files)); !ok || len(write)+len(ended) != 1 {
			t.Errorf("%q: write %v, end %v, %v", c.was, write, ended, ok)
		}
		if _, _, ok := n.Follow(ByPath(rows(t, []string{c.is}))); ok {
			t.Errorf("%q was changed to %q, but the list was followed", c.was, c.is)
		}
	}
}
