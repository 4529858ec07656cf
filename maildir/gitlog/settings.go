package gitlog

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
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

func readSettings(b []byte) settings {
	s := settings{fileMode: true}
	c, err := parseConfig(b)
	if err != nil {
		if bytes.Contains(bytes.ToLower(b), []byte("sha256")) {
			s.format = "SHA-256 objects"
		}
		return s
	}
	core, ext := c.Section("core"), c.Section("extensions")
	s.fileMode = isTrue(core.Option("filemode"), true)
	switch {
	case strings.EqualFold(ext.Option("objectformat"), "sha256"):
		s.format = "SHA-256 objects"
	case ext.Option("refstorage") != "" && !strings.EqualFold(ext.Option("refstorage"), "files"):
		s.format = "another store of refs (" + oneLine(ext.Option("refstorage"), 40) + ")"
	}
	n, err := strconv.Atoi(c.Section("gc").Option("auto"))
	s.ours = err == nil && n == 0 && ext.Option("partialclone") == "" && !isTrue(ext.Option("preciousobjects"), false)
	user := c.Section("user")
	s.name, s.mail = user.Option("name"), user.Option("email")
	return s
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

func parseConfig(b []byte) (c *config.Config, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged configuration: %v", p)
		}
	}()
	c = config.New()
	return c, config.NewDecoder(bytes.NewReader(b)).Decode(c)
}

// person is the identity that Git would give to a commit made by hand here: the repository's, else
// the user's own. "" where none is configured. An error is transient.
func (s settings) person() (id string, err error) {
	name, mail := s.name, s.mail
	for _, file := range userConfigs() {
		b, err := readSmall(file)
		if transient(err) {
			return "", err
		}
		user := readSettings(b) // of a file that is none, nothing
		name, mail = cmp.Or(name, user.name), cmp.Or(mail, user.mail)
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
