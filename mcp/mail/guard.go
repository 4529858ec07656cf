package mail

import (
	"context"
	"path/filepath"

	"mailtree/maildir"
)

func installGuard() tool {
	return tool{
		name: "install_precommit_guard", title: "Install pre-commit guard", hints: marks(),
		about: "Install a Git pre-commit guard in a code repository that blocks commits touching files another agent has claimed.",
		in:    []prop{projectKey(), codeRepo()},
		out:   guardProps(),
		run: func(ctx context.Context, t *Toolset, a *args) (any, error) {
			a.codeRepo()
			if _, err := t.project(ctx, a); err != nil {
				return nil, err
			}
			return nil, errNoGuard()
		},
	}
}

func uninstallGuard() tool {
	return tool{
		name: "uninstall_precommit_guard", title: "Uninstall pre-commit guard", hints: removes(),
		about: "Remove the Git pre-commit guard from a code repository; hooks that were there before stay.",
		in:    []prop{codeRepo()},
		out:   guardProps(),
		run: func(_ context.Context, _ *Toolset, a *args) (any, error) {
			if a.codeRepo(); a.err != nil {
				return nil, a.err
			}
			return nil, errNoGuard()
		},
	}
}

func codeRepo() prop {
	return need("code_repo_path", str("absolute path of the code repository", "/abs/path/backend"))
}

func guardProps() []prop { return []prop{need("done", texts("what was done, a sentence each"))} }

// codeRepo is the path of the code repository; it must be absolute, for the server runs elsewhere.
func (a *args) codeRepo() string {
	path := a.text("code_repo_path")
	if a.err == nil && !filepath.IsAbs(path) {
		a.fail(invalid("code_repo_path is %q: give the absolute path of the repository", clip(path)))
	}
	return path
}

func errNoGuard() error {
	return &maildir.Error{Kind: maildir.ErrUnavailable,
		Text: "the pre-commit guard is not in this build yet: nothing was changed; claims are visible to other agents all the same, look at the conflicts of claim_paths before you edit"}
}
