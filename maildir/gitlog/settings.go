package gitlog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// settings is the part of Git's configuration that we use. We parse the configuration ourselves, without following
// includes or running commands.
type settings struct {
	fileMode bool   // the executable bit on disk is significant
	ours     bool   // gc.auto is 0 or not set, so we repack and Git does not
	format   string // why we cannot write to the repository; empty if we can
}

func readSettings(b []byte) settings {
	s := settings{fileMode: true}
	c, err := parseConfig(b)
	if err != nil {
		return s
	}
	core, ext := c.Section("core"), c.Section("extensions")
	s.fileMode = isTrue(core.Option("filemode"), true)
	switch {
	case strings.EqualFold(ext.Option("objectformat"), "sha256"):
		s.format = "SHA-256 objects"
	case ext.Option("refstorage") != "" && !strings.EqualFold(ext.Option("refstorage"), "files"):
		s.format = "a different ref storage format (" + oneLine(ext.Option("refstorage"), 40) + ")"
	}
	n, err := strconv.Atoi(cmp.Or(c.Section("gc").Option("auto"), "0"))
	s.ours = err == nil && n == 0 && ext.Option("partialclone") == "" && !isTrue(ext.Option("preciousobjects"), false)
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

func (g *gitProgram) person() (id string, err error) {
	program, err := g.program()
	if err != nil {
		return "", err
	}
	c := gitCommand(g.ctx, program, g.git, "config", "--null", "--get-regexp", `^user\.(name|email)$`)
	c.Env = append(os.Environ(), "GIT_DIR="+g.git) // git reads the user's own configuration
	out, err := c.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() == 1 {
		return "", nil
	}
	is := map[string]string{} // the last value of a key takes precedence
	for record := range strings.SplitSeq(string(out), "\x00") {
		key, value, _ := strings.Cut(record, "\n")
		is[key] = value
	}
	if identityPart(is["user.name"]) == "" {
		return "", err
	}
	return identity(is["user.name"], is["user.email"]), err
}
