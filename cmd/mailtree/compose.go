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
	"slices"
	"strings"
	"unicode/utf8"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir/format"
	"mailtree/maildir/tree"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/mail"
)

// written is text that the user wrote, and the file that contains the text. file is empty if the text is not from a
// file.
type written struct {
	text, file string
}

// settle removes the file if err is nil, which means that the text was sent. Otherwise, it adds the file's name to the
// error.
func (w *written) settle(err error) error {
	switch {
	case w.file == "":
		return err
	case err == nil:
		return os.RemoveAll(filepath.Dir(w.file))
	}
	if e, ok := err.(*exitError); ok && e.err != nil {
		return &exitError{e.code, fmt.Errorf("%w\nyour text is saved in %s", e.err, w.file)}
	}
	return fmt.Errorf("%w\nyour text is saved in %s", err, w.file)
}

// scissors is the line in a draft that separates the text to send from the rest, which is not sent.
const scissors = "# ------------------------ >8 ------------------------"

// belowScissors returns the part of a draft below the scissors line.
func belowScissors(draft string) string {
	_, below, _ := strings.Cut(draft, "\n"+scissors)
	return strings.TrimSpace(below)
}

// formatDraft returns the initial text for the editor: the header, room for the text and, below the scissors line, the
// message that the user is replying to.
func formatDraft(e *mcpserver.Envelope, quoted string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "To: %s\n", strings.Join(e.To, ", "))
	if len(e.CC) > 0 {
		fmt.Fprintf(&b, "Cc: %s\n", strings.Join(e.CC, ", "))
	}
	fmt.Fprintf(&b, "Subject: %s\n\n\n%s\n# Nothing below this line is sent. If the text is empty, no message is "+
		"sent.\n%s", cli.Line(e.Subject), scissors, quoted)
	return b.String()
}

// quote returns a message's text, preceded by its author's name.
func quote(d *deskWork, m *mail.Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s wrote to %s, %s:\n", cli.Line(m.From), listNames(slices.Concat(m.To, m.CC)), cli.Exact(m.Created))
	if m.Body != nil {
		text := strings.TrimRight(cli.Text(*m.Body), "\n")
		fmt.Fprintf(&b, "> %s\n", strings.ReplaceAll(text, "\n", "\n> "))
	}
	return b.String()
}

// takeDraft splits a draft that the user has edited. It takes the recipients and the subject from the header, and
// stores the text below the header in w. If the user has removed the header, the recipients and the subject stay the
// same. Any other line in the header is an error, because it would otherwise be sent as text.
func (o *sendOptions) takeDraft(w *written) error {
	text, _, _ := strings.Cut("\n"+w.text, "\n"+scissors)
	text = strings.TrimPrefix(text, "\n")
	for header := false; ; header = true {
		line, rest, _ := strings.Cut(text, "\n")
		name, value, _ := strings.Cut(line, ":")
		names := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' })
		switch strings.ToLower(name) {
		case "to":
			if o.to = names; len(names) == 0 && strings.TrimSpace(rest) != "" {
				w.text = rest
				return errors.New("nothing was sent: the To: line has no recipients")
			}
		case "cc":
			o.cc = names
		case "bcc":
			o.bcc = names
		case "subject":
			o.subject = strings.TrimSpace(value)
		default:
			w.text = strings.TrimLeft(text, "\r\n")
			if header && strings.TrimSpace(line) != "" {
				return fmt.Errorf("nothing was sent: unknown header line %s. Use only To, Cc, Bcc and Subject, each on a single "+
					"line, and leave an empty line between the header and the text", format.Quote(line))
			}
			return nil
		}
		text = rest
	}
}

// needUTF8 returns an error if text is not valid UTF-8. Without this check, each invalid byte would be replaced with
// U+FFFD on its way to the server.
func needUTF8(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	return errors.New("nothing was done: the text is not valid UTF-8. Convert it, for example with `iconv -f latin1 -t utf-8`")
}

func (p *program) readText() (*written, error) {
	data, err := io.ReadAll(io.LimitReader(p.std.in, tree.MaxFile+1))
	return &written{text: string(data)}, err
}

// shellNotFound is the exit status of a shell that cannot find the command.
const shellNotFound = 127

// editText opens text in the editor given by VISUAL or EDITOR, or in vi, and returns the edited text. The caller must
// call settle on the result. If the editor fails, editText leaves the text in a file, and the error contains the file's
// name.
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
	if err := c.Run(); c.ProcessState != nil && c.ProcessState.ExitCode() == shellNotFound {
		return nil, fmt.Errorf("the editor %q was not found: set VISUAL or EDITOR to another program. Your text is saved in %s",
			editor, file)
	} else if err != nil {
		return nil, fmt.Errorf("the editor %q failed: %w. Your text is saved in %s", editor, err, file)
	}
	data, err := os.ReadFile(file)
	return &written{string(data), file}, err
}
