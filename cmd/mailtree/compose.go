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

// written is a text, and the file in which a person wrote it, or "" for a text from elsewhere.
type written struct {
	text, file string
}

// settle removes the file if the text was sent. Otherwise it adds the file's name to the error.
func (w *written) settle(err error) error {
	switch {
	case w.file == "":
		return err
	case err == nil:
		return os.RemoveAll(filepath.Dir(w.file))
	}
	if e, ok := err.(*exitError); ok && e.err != nil {
		return &exitError{e.code, fmt.Errorf("%w\nwhat you wrote is in %s", e.err, w.file)}
	}
	return fmt.Errorf("%w\nwhat you wrote is in %s", err, w.file)
}

// compose returns the text of a message: the given text, else standard input, else the text that the
// person writes in an editor that opens with draft. An empty text is an error.
func (p *program) compose(ctx context.Context, given *string, draft string) (w *written, err error) {
	switch {
	case given != nil:
		w = &written{text: *given}
	case cli.IsTerminal(p.std.in):
		w, err = p.editText(ctx, "message.md", draft)
	default:
		w, err = p.readText()
	}
	if err == nil && strings.TrimSpace(w.text) == "" {
		_ = w.settle(nil)
		err = errors.New("nothing was sent: the text is empty")
	}
	return w, err
}

// readText reads standard input.
func (p *program) readText() (*written, error) {
	data, err := io.ReadAll(io.LimitReader(p.std.in, tree.MaxFile+1))
	return &written{text: string(data)}, err
}

// editText opens a text in VISUAL, EDITOR or vi, and returns the edited text. The caller settles it. If
// the editor fails, the text stays in a file that the error names.
func (p *program) editText(ctx context.Context, name, text string) (*written, error) {
	dir, err := os.MkdirTemp("", "mailtree-")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	editor := cmp.Or(p.variable("VISUAL"), p.variable("EDITOR"), "vi")
	c := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", file)
	c.Stdin, c.Stdout, c.Stderr, c.Env = p.std.in, p.std.out, p.std.err, p.env
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("the editor %q ended with %w; what you wrote is in %s", editor, err, file)
	}
	data, err := os.ReadFile(file)
	return &written{string(data), file}, err
}
