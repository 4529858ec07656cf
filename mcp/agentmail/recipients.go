package agentmail

import (
	"context"
	"slices"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/mcp/tool"
)

// recipients returns the names of the possible recipients and of the caller, sorted. It includes ignored names.
func recipients(ctx context.Context, p *maildir.Project, w *who) ([]string, error) {
	names := slices.Clone(w.windows)
	if w.windows == nil {
		agents, err := p.Agents.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, a := range agents {
			names = append(names, a.Name)
		}
	}
	if !slices.Contains(names, w.name) {
		names = append(names, w.name)
	}
	slices.Sort(names)
	return names, nil
}

// reach returns the name of the agent that the argument to refers to. The argument may also be the name of a window. If
// the caller cannot write to that agent, reach returns a refusal. The contract prescribes the order of the checks:
// unknown, self, ignored.
func (t *toolset) reach(ctx context.Context, p *maildir.Project, w *who, to string) (string, error) {
	names, err := recipients(ctx, p, w)
	if err != nil {
		return "", err
	}
	ignored, err := t.ignored(ctx, p)
	at := slices.Index(names, to)
	if at < 0 && w.windows != nil {
		at = slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, format.NameOfWindow(to)) })
	}
	if at >= 0 {
		to = names[at]
	}
	switch {
	case at < 0:
		return "", unknownRecipient(to, slices.DeleteFunc(names, func(n string) bool { return n == w.name || slices.Contains(ignored, n) }))
	case to == w.name:
		return "", tool.Invalid("cannot send message to self")
	case err != nil:
		return "", err
	case slices.Contains(ignored, to):
		return "", &refusal.Own{Kind: refusal.ErrNotFound, Text: notFound}
	}
	return to, nil
}

// unknownRecipient returns the refusal for an unknown name. The refusal suggests the most similar names and lists the
// first few recipients.
func unknownRecipient(to string, names []string) error {
	const most = 20
	hint := "There are no agents that you can send to yet."
	if len(names) > 0 {
		hint = "You can send to: " + strings.Join(names[:min(most, len(names))], ", ") + "."
	}
	if len(names) > most {
		hint += " list-recipients lists all of them."
	}
	near := format.Near(to, names)
	if len(near) > 0 {
		hint = "Did you mean " + strings.Join(near, " or ") + "? " + hint
	}
	return &refusal.Own{
		Kind: refusal.ErrNotFound,
		Text: notFound,
		Hint: hint,
		Near: near,
	}
}

const notFound = "recipient not found"

// ignoreFile is the name of the ignore file in a repository's top folder. It contains one name per line.
const ignoreFile = ".agentmailignore"

// ignored returns the names in the ignore files of the project's repository and of the caller's own working tree. If a
// file is unusable, for example because it is not a regular file or the server lacks permission to read it, ignored
// logs this and skips the file. If the machine temporarily cannot read a file (tree.FaultMachine), ignored returns
// ErrUnavailable, because the file may contain the recipient's name.
func (t *toolset) ignored(ctx context.Context, p *maildir.Project) (names []string, err error) {
	tops := []string{p.HumanKey(), tool.CallerOf(ctx).WorkTree}
	for _, top := range slices.Compact(tops) {
		if top == "" {
			continue
		}
		data, err := readTop(top)
		switch tree.FaultOf(err) {
		case tree.FaultMachine:
			return nil, &refusal.Own{
				Kind: refusal.ErrUnavailable,
				Text: "The server cannot read " + ignoreFile + " right now, so it does not know which agents " +
					"you may write to. Try again in a moment.",
				Err: err,
			}
		case tree.FaultFile:
			t.log.Warn("cannot read the ignore file", "project", p.Slug, "file", ignoreFile, "error", err)
		}
		for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) { // some editors begin a file with a byte order mark
			names = append(names, strings.TrimSpace(line))
		}
	}
	return names, nil
}

// readTop reads the ignore file in the folder top. It opens only a regular file of reasonable size, does not follow
// symbolic links and never blocks.
func readTop(top string) ([]byte, error) {
	t, err := tree.Open(top, 0)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	data, _, err := t.Read(ignoreFile, format.MaxSmall)
	return data, err
}
