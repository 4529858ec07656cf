package gitlog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// settings is what counts for us of Git's configuration. It is parsed, never obeyed: no include, no
// command.
type settings struct {
	fileMode bool   // the executable bit on disk means something
	ours     bool   // gc.auto is 0: packs are put together by us, or by nobody
	format   string // why the repository cannot be written; "" when it can
	name     string // user.name
	mail     string // user.email
}

// readSettings reads the text of a configuration. Where that is damaged, little counts. An error is
// transient, or a *hold.
func readSettings(git func() (string, error), text []byte) (settings, error) {
	s := settings{fileMode: true}
	says, err := parseConfig(git, text)
	if err != nil || says == nil {
		if says == nil && bytes.Contains(bytes.ToLower(text), []byte("sha256")) {
			s.format = "SHA-256 objects"
		}
		return s, err
	}
	s.fileMode = isTrue(says["core.filemode"], true)
	switch format, refs := says["extensions.objectformat"], says["extensions.refstorage"]; {
	case strings.EqualFold(format, "sha256"):
		s.format = "SHA-256 objects"
	case refs != "" && !strings.EqualFold(refs, "files"):
		s.format = "another store of refs (" + oneLine(refs, 40) + ")"
	}
	n, err := strconv.Atoi(says["gc.auto"])
	s.ours = err == nil && n == 0 && says["extensions.partialclone"] == "" && !isTrue(says["extensions.preciousobjects"], false)
	s.name, s.mail = says["user.name"], says["user.email"]
	return s, nil
}

// parsed is a configuration that was read.
type parsed struct {
	text string
	settings
}

func isTrue(value string, empty bool) bool {
	switch strings.ToLower(value) {
	case "":
		return empty
	case "false", "no", "off", "0", "never":
		return false
	}
	return true
}

// parseConfig tells what a configuration says, of each key the last; nil where it is damaged. Git reads no
// file for it. An error is transient, or a *hold.
func parseConfig(git func() (string, error), text []byte) (map[string]string, error) {
	program, err := git()
	if err != nil {
		return nil, err
	}
	c := gitCommand(context.Background(), program, os.TempDir(), "config", "--file", "-", "--no-includes", "--list", "-z")
	c.Stdin = bytes.NewReader(text)
	out, err := c.Output()
	if errors.As(err, new(*exec.ExitError)) {
		return nil, nil
	}
	says := map[string]string{}
	for record := range strings.SplitSeq(string(out), "\x00") {
		key, value, given := strings.Cut(record, "\n")
		if !given {
			value = "true"
		}
		says[key] = value
	}
	return says, err
}

// person is the identity that Git would give to a commit made by hand here: the repository's, else
// the user's own. "" where none is configured. An error is transient.
func (s settings) person(git func() (string, error)) (id string, err error) {
	name, mail := s.name, s.mail
	for _, file := range userConfigs() {
		if name != "" && mail != "" {
			break
		}
		b, err := readSmall(file)
		if transient(err) {
			return "", err
		}
		if err != nil {
			continue
		}
		says, err := parseConfig(git, b)
		if err != nil {
			return "", err
		}
		name, mail = cmp.Or(name, says["user.name"]), cmp.Or(mail, says["user.email"])
	}
	if identityPart(name) == "" {
		return "", nil
	}
	return identity(name, mail), nil
}

// userConfigs lists the user's configuration files, the strongest first.
func userConfigs() []string {
	if f, ok := os.LookupEnv("GIT_CONFIG_GLOBAL"); ok {
		return []string{f}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	xdg := os.Getenv("XDG_CONFIG_HOME")
	if xdg == "" {
		xdg = filepath.Join(home, ".config")
	}
	return []string{filepath.Join(home, ".gitconfig"), filepath.Join(xdg, "git", "config")}
}
