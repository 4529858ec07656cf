package guard

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// odd contains strings that might confuse a shell, a terminal or JSON.
var odd = []string{"plain", "with space", "it's", `"quoted"`, "$HOME `id` $(id) \\", "new\nline", "\ttab", "esc\x1b[31m",
	"größe 日本", "😀\u202eright", "@SUM@ @HOOK@ @GUARDS@", "\n# sum: x", "-rf", "*", "~", "a'\n'b"}

// TestShellQuote checks that a shell reads quoted strings back unchanged.
func TestShellQuote(t *testing.T) {
	for _, s := range odd {
		out, err := exec.Command("sh", "-c", "printf %s "+shellQuote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q became %q (%v)", s, out, err)
		}
	}
}

// TestHookIsReadBack checks hooks with odd strings in every field. parseHook must return the original hook and detect
// any change to the script, and a shell must accept the script.
func TestHookIsReadBack(t *testing.T) {
	for i, s := range odd {
		h := &hook{Name: PrePush, Program: "/p/" + s, Guards: [1]guarding{{"/s/" + s, "slug"}}}
		if i%3 == 0 {
			h.Shell = []string{"/usr/bin/env", "sh"}
		}
		text, err := h.render()
		if err != nil {
			t.Fatal(err)
		}
		got, changed := parseHook(text)
		if diff := cmp.Diff(h, got); diff != "" || changed {
			t.Errorf("%q: changed %v\n%s", s, changed, diff)
		}
		for _, at := range []int{30, len(text) / 2, len(text) - 3} {
			other := slices.Clone(text)
			other[at] ^= 1
			if h, changed := parseHook(other); h != nil && !changed {
				t.Errorf("%q: a change at %d was not noticed", s, at)
			}
		}
		c := exec.Command("sh", "-n")
		c.Stdin = bytes.NewReader(text)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%s\n%s", s, err, out, text)
		}
	}
}

// TestShellFor checks which shell, if any, shellFor returns for the hooks of several tools.
func TestShellFor(t *testing.T) {
	for script, want := range map[string]string{
		"#!/usr/bin/env sh\n. \"$(dirname \"$0\")/h\"":        "/usr/bin/env sh",
		"#!/bin/sh -e\necho ${0##*/}":                         "/bin/sh -e",
		"#! /bin/bash\necho $0":                               "/bin/bash",
		"echo $0":                                             "/bin/sh",
		"#!/bin/sh\necho $1":                                  "",
		"#!/usr/bin/env bash\n[ \"${BASH_SOURCE[0]}\" = $0 ]": "",
		"#!/usr/bin/env python3\n# $0":                        "",
		"#!/usr/bin/env -S bash -e\necho $0":                  "",
		"#!/usr/bin/ruby\n$0":                                 "",
		"\x7fELF\x00$0":                                       "",
		"":                                                    "",
	} {
		if got := strings.Join(shellFor([]byte(script)), " "); got != want {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
	}
}

// TestReportIsPlain checks a report that contains odd strings everywhere. The output must contain nothing that could
// control a terminal, and the suggested command must still be a single command.
func TestReportIsPlain(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, s := range append(slices.Clone(odd), "\xff", "\u009b31m") {
		var b bytes.Buffer
		r := report{w: &b, q: &Question{Now: now, Store: "/t/" + s, Program: "/p/" + s, Hook: PreCommit}, who: identity{name: s}}
		cl := claim.Row{Claim: format.Claim{Agent: s, Pattern: s, Reason: s, Expires: now.Add(90 * time.Minute)}}
		r.damaged([]format.Problem{{Path: s, Reason: s}})
		r.blocked([]Blocked{{Blocked: claim.Blocked{Claim: cl, Paths: []string{s}}, File: s, Project: s}}, false)
		text := b.String()
		if !strings.Contains(text, "for another 1h 30m, until 2026-01-01 01:30 UTC") {
			t.Errorf("%q: %s", s, text)
		}
		if i := strings.IndexFunc(text, func(c rune) bool { return c < ' ' && c != '\n' || c == 0x7f || c == 0x9b || c == 0x202e }); i >= 0 {
			t.Errorf("%q: %q", s, text[i:])
		}
		r.q.Program = ""
		out, err := exec.Command("sh", "-c", "mailtree() { printf '%s\\n' \"$MAILTREE_ME\" $# \"$1 $2\"; }; "+r.ask(cl.Agent, s, []string{cl.Pattern})).Output()
		if got := string(out); err != nil || !strings.HasSuffix(got, "\n8\nsend …\n") && !strings.HasSuffix(got, "\n8\nsend plain\n") {
			t.Errorf("%q: %s is run as %q (%v)", s, r.ask(cl.Agent, s, []string{cl.Pattern}), got, err)
		}
	}
}

// TestShellText checks that shellText returns a single shell word, in double quotes if they preserve every character.
func TestShellText(t *testing.T) {
	for s, want := range map[string]string{
		"May I have app/*.py?": `"May I have app/*.py?"`,
		"$HOME `id`":           "'$HOME `id`'",
		"it's!":                `'it'\''s!'`,
	} {
		if got := shellText(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

// TestInstallStops checks that between any two steps of an installation, the folder contains either the complete
// earlier hook or our hook.
func TestInstallStops(t *testing.T) {
	dir := t.TempDir()
	old := []byte("#!/bin/sh\nexit 0\n")
	if err := os.WriteFile(filepath.Join(dir, PreCommit), old, 0o750); err != nil {
		t.Fatal(err)
	}
	f, err := makeHooks(&repository{hooks: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	g := guarding{"/s", "slug"}
	check := func(step string, ours bool) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, PreCommit))
		if err != nil {
			t.Fatal(step, err)
		}
		if h, changed := parseHook(data); (h != nil) != ours || changed || h == nil && !bytes.Equal(data, old) {
			t.Fatalf("%s: %s", step, data)
		}
	}
	check("before", false)
	if err := f.copyAside(PreCommit); err != nil {
		t.Fatal(err)
	}
	check("kept aside", false)
	p, err := f.plan(PreCommit, "/p", g)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.write(p); err != nil {
		t.Fatal(err)
	}
	check("written", true)
	if _, err := f.remove(PreCommit, PreCommit); err != nil {
		t.Fatal(err)
	}
	check("removed", false)
	if fi, err := os.Stat(filepath.Join(dir, PreCommit)); err != nil || fi.Mode().Perm() != 0o750 {
		t.Error(fi.Mode(), err)
	}
}
