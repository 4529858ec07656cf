package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mailtree/cli"
	"mailtree/maildir/tree"
)

// compose returns the text of a message: the one given, else standard input, else what the person
// writes in an editor that begins with draft. Errors: where the text is empty.
func (p *program) compose(ctx context.Context, given *string, draft string) (text string, err error) {
	switch {
	case given != nil:
		text = *given
	case cli.IsTerminal(p.std.in):
		text, err = p.editText(ctx, "message.md", draft)
	default:
		var data []byte
		data, err = io.ReadAll(io.LimitReader(p.std.in, tree.MaxFile+1))
		text = string(data)
	}
	if err == nil && strings.TrimSpace(text) == "" {
		err = errors.New("nothing was sent: the text is empty")
	}
	return text, err
}

// editText has the person edit a text, in VISUAL, EDITOR or vi, and returns it. What was written
// stays in a file that the error names where the editor fails.
func (p *program) editText(ctx context.Context, name, text string) (string, error) {
	dir, err := os.MkdirTemp("", "mailtree-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	editor := cmp.Or(p.variable("VISUAL"), p.variable("EDITOR"), "vi")
	c := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", file)
	c.Stdin, c.Stdout, c.Stderr, c.Env = p.std.in, p.std.out, p.std.err, p.env
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("the editor %q ended with %w; what you wrote is in %s", editor, err, file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return string(data), os.RemoveAll(dir)
}
