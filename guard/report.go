package guard

import (
	"cmp"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/lazy"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
)

// mostPaths is the maximum number of claims in a report, and of files listed for each claim.
const mostPaths = 10

// report prints the result of a check. Names and other strings are untrusted, so it escapes characters that could
// control the terminal.
type report struct {
	w   io.Writer
	q   *Question
	who identity
}

func (r *report) say(format string, args ...any) { fmt.Fprintf(r.w, format+"\n", args...) }

// doing returns a verb for the action being checked.
func (q *Question) doing() string {
	switch {
	case len(q.Paths) > 0:
		return "change"
	case q.Hook == PrePush:
		return "push"
	case q.Hook == editing:
		return "edit"
	case q.Hook == PreMergeCommit:
		return "merge"
	}
	return "commit"
}

// unchecked reports that the check could not be completed, and whether the change passes anyway.
func (r *report) unchecked(err error, stops bool) {
	r.say("mailtree guard: NOT CHECKED: %s", format.Printable(r.q.Words.Explain(err)))
	mode, more := "GUARD_MODE", "mailtree guard status"
	if r.q.Hook == editing {
		mode, more = "CLAIM_MODE", "mailtree doctor"
	}
	if !stops {
		r.say("The %s continues without a check for other agents' claims. For details: `%s`", r.q.doing(), more)
	} else if !r.q.ByHand {
		r.say("%s is set to block, so the %s is refused. To override this once, set GUARD_BYPASS=1.", mode, r.q.doing())
	}
}

func (r *report) damaged(bad []format.Problem) {
	for _, p := range bad[:min(len(bad), mostPaths)] {
		where := safe(p.Path)
		if p.Line > 0 {
			where += ":" + strconv.Itoa(p.Line)
		}
		r.say("mailtree guard: ignoring the invalid file %s: %s", where, safe(p.Reason))
	}
	if len(bad) > mostPaths {
		r.say("mailtree guard: ignoring %d more invalid files; `mailtree doctor --all` lists them", len(bad)-mostPaths)
	}
}

func (r *report) blocked(all []Blocked, warn bool) {
	r.say("mailtree guard: this %s touches files that others have claimed.", r.q.doing())
	for _, b := range all[:min(len(all), mostPaths)] {
		r.claim(b)
	}
	if len(all) > mostPaths {
		r.say("\n  and %d more claims", len(all)-mostPaths)
	}
	r.say("")
	r.asker()
	if warn {
		r.say("This is only a warning: the %s continues.", r.q.doing())
		return
	}
	r.advise(all[:min(len(all), mostPaths)])
}

// advise prints what the caller can do about the claims, with each command on a separate line.
func (r *report) advise(all []Blocked) {
	asks := r.asks(all)
	ends, whom, means := "the claim ends or is released", "its holder", ""
	if len(all) > 1 {
		ends, whom = "the claims end or are released", "their holder"
	}
	if len(asks) > 1 {
		whom = "their holders"
	}
	if r.q.Hook == editing {
		means = " with your mail tool or this command"
		if len(asks) > 1 {
			means = " with your mail tool or these commands"
		}
	}
	r.say("Wait until %s and try again, or ask %s%s:", ends, whom, means)
	for _, command := range asks {
		r.say("  %s", command)
	}
	if r.q.Hook == editing {
		return
	}
	if r.who.person && r.who.hint == "" {
		r.say("Or release a claim (its holder is notified):")
		for _, b := range all {
			r.say("  %s", r.release(b.Claim, b.Project))
		}
	}
	r.override()
}

// override prints how to override the guard for one Git command.
func (r *report) override() {
	if len(r.q.Paths) == 0 {
		r.say("To override the guard once (or use git %s --no-verify):", r.q.doing())
		r.say("  GUARD_BYPASS=1 git %s …", r.q.doing())
	}
}

// asker prints which agent the guard believes the caller to be, if that belief may be wrong.
func (r *report) asker() {
	switch {
	case r.who.hint != "":
		r.say("%s", r.who.hint)
	case r.who.name == "" && r.q.Hook == editing:
		r.say("Your agent name is unknown, so every claim is treated as another agent's. Set AGENT_NAME in the client's environment.")
	case r.who.name == "":
		r.say("Your agent name is unknown, so every claim is treated as another agent's. If one of these claims is yours, specify your name:")
		command := "git " + r.q.doing()
		if r.q.ByHand {
			command = r.q.command() + " guard check"
		}
		r.say("  AGENT_NAME=YourName %s …", command)
	case r.q.Hook == editing:
		r.say("Your agent name here is %s.", safe(r.who.name))
	}
}

func (r *report) claim(b Blocked) {
	r.say("")
	for _, p := range b.Paths[:min(len(b.Paths), mostPaths)] {
		r.say("  %s", safe(p))
	}
	if n := len(b.Paths) - mostPaths; n > 0 {
		r.say("  and %d more", n)
	}
	reason := ""
	if b.Claim.Reason != "" {
		reason = " (" + safe(clip(b.Claim.Reason, 200)) + ")"
	}
	r.say("    %s holds %s%s for another %s, until %s", safe(b.Claim.Agent), safe(b.Claim.Pattern), reason,
		format.TimeLeft(max(time.Minute, b.Claim.Expires.Sub(r.q.Now))), b.Claim.Expires.UTC().Format("2006-01-02 15:04 MST"))
	r.say("    claim file: %s", safe(b.File))
}

// asks returns one command for each holder and project, quoted for the caller's shell. Each command sends a message
// that asks the holder for the claimed patterns.
func (r *report) asks(all []Blocked) (commands []string) {
	type holder struct{ agent, project string }
	patterns := map[holder][]string{}
	var order []holder
	for _, b := range all {
		h := holder{b.Claim.Agent, b.Project}
		if patterns[h] == nil {
			order = append(order, h)
		}
		if p := clip(b.Claim.Pattern, 200); !slices.Contains(patterns[h], p) {
			patterns[h] = append(patterns[h], p)
		}
	}
	for _, h := range order {
		commands = append(commands, r.ask(h.agent, h.project, patterns[h]))
	}
	return commands
}

// ask returns a command that sends a message asking an agent for the patterns that it has claimed.
func (r *report) ask(agent, project string, patterns []string) string {
	return r.message(agent, project, "May I have "+strings.Join(patterns, ", ")+"?")
}

// message returns a command that sends a message with the given text to an agent.
func (r *report) message(agent, project, text string) string {
	var b strings.Builder
	if r.who.name != "" && r.who.hint == "" && !r.who.person { // without this, `mailtree send` would send the message as the user
		b.WriteString("MAILTREE_ME=" + ShellWord(r.who.name) + " ")
	}
	holder := "…"
	if format.ValidName(agent) {
		holder = agent
	}
	b.WriteString(r.q.command() + " send " + holder + r.where(project) + " -m " + shellText(text))
	return b.String()
}

// release returns a command that releases the claim. A user can run it in any folder of the working tree.
func (r *report) release(c claim.Row, project string) string {
	at := c.Pattern
	if filepath.IsAbs(project) {
		at = project + "/" + at
	}
	return r.q.command() + " release --of " + ShellWord(c.Agent) + r.where(project) + " " + ShellWord(at)
}

// where returns the flags --store and --project for a command. It omits flags that the command does not need.
func (r *report) where(project string) (flags string) {
	if r.q.Store != r.q.Usual {
		flags += " --store " + ShellWord(r.q.Store)
	}
	if !r.q.isHere(project) {
		flags += " --project " + ShellWord(project)
	}
	return flags
}

// command returns the shell word that the user can type to run mailtree.
func (q *Question) command() string {
	if onPath, err := exec.LookPath("mailtree"); q.Program == "" || safe(q.Program) != q.Program || err == nil && onPath == q.Program {
		return "mailtree"
	}
	return ShellWord(q.Program)
}

// isHere reports whether mailtree, run in q.Dir without --project, would use the given project.
func (q *Question) isHere(project string) bool {
	dir, err := filepath.Abs(q.Dir)
	if err != nil {
		return false
	}
	top, err := repo.WorkTree(dir)
	if err != nil {
		return false
	}
	t, slug, err := storedir.OpenProject(q.Store, cmp.Or(top, dir), q.Scope)
	if err != nil {
		return false
	}
	defer t.Close()
	return project == cmp.Or(storedir.HumanKeyOf(t), slug)
}

// safe returns plain text unchanged. It quotes any other text, and escapes characters that could control a terminal.
func safe(s string) string {
	if s == "" || s[0] == ' ' || s[len(s)-1] == ' ' || strings.ContainsAny(s, `"\`) {
		return format.Literal(s)
	}
	return format.Printable(s)
}

var plainWord = lazy.Regexp(`^[A-Za-z0-9_./][A-Za-z0-9_./-]*$`)

// ShellWord returns s as a single shell word, for users to read. It quotes s only if necessary, and returns "…" for
// text that could control a terminal.
func ShellWord(s string) string {
	switch {
	case plainWord().MatchString(s):
		return s
	case !utf8.ValidString(s) || strings.ContainsFunc(s, format.Hidden):
		return "…"
	}
	return shellQuote(s)
}

// shellText returns s as a single shell word, in double quotes if they preserve every character.
func shellText(s string) string {
	s = format.Printable(s)
	if strings.ContainsAny(s, "\"$`\\!") {
		return shellQuote(s)
	}
	return `"` + s + `"`
}

// clip returns s, or the beginning of s with "…" if s is longer than n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return format.Cut(s, n) + "…"
}

// shellQuote returns s as a single POSIX shell word.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
