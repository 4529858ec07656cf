// Command mailtree gives coding agents, and the people who work with them, mailboxes, a directory, a searchable
// archive and claims on files. All of it is a Git-tracked tree of markdown files, served over MCP. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
)

// stdio contains the standard streams of one run.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// run runs the program, except for signal handling. It returns 0 on success, and otherwise one of the exit statuses
// defined in desk.go.
func run(ctx context.Context, args, env []string, std stdio) int {
	tuneMemory()
	root := rootCommand(env, std, named(args))
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := exitFailed
	var word, path string
	if _, scan := fmt.Sscanf(err.Error(), "unknown command %q for %q", &word, &path); scan == nil {
		code, err = exitUsage, unknownCommand(root, word, path)
	} else if flags := exclusiveFlags(err.Error()); flags != nil {
		code, err = exitUsage, flags
	}
	if errors.Is(err, maildir.ErrNotFound) {
		code = exitNothing
	}
	if e := (*exitError)(nil); errors.As(err, &e) {
		code = e.code
		if err == error(e) { // otherwise err wraps e, and the text of err contains more information
			err = e.err
		}
	}
	if refused := (&cli.Refusal{}); errors.As(err, &refused) && refused.NotFound() {
		code = exitNothing
	}
	if err != nil {
		(&program{env: env, std: std}).remark("%s", words.Explain(err))
	}
	return code
}

// exitError is an error with an exit status. err is nil if the command has already printed the reason.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }
