package mail

import (
	"context"
	"os"
	"path/filepath"

	"mailtree/guard"
)

// The guard's tools write into the hooks folder of the code repository that is named, and nowhere else; a folder outside
// that repository is refused (Invariant I8).

type doneShape struct {
	Done []string `json:"done"`
}

func installGuard() tool {
	return tool{
		name: "install_precommit_guard", title: "Install pre-commit guard", hints: marks(),
		about: "Install a Git pre-commit guard in a code repository that blocks commits touching files another agent has claimed.",
		in:    []prop{projectKey(), codeRepo()},
		out:   guardProps(),
		run: func(ctx context.Context, t *Toolset, a *args) (any, error) {
			at := guard.Site{Repo: a.codeRepo(), Env: os.Environ()}
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			exe, err := guard.Program()
			if err != nil {
				return nil, err
			}
			return shapeDone(guard.Install(ctx, at, guard.Setup{Store: t.cfg.Store.Root(), Project: p.Slug(), Program: exe}))
		},
	}
}

func uninstallGuard() tool {
	return tool{
		name: "uninstall_precommit_guard", title: "Uninstall pre-commit guard", hints: removes(),
		about: "Remove the Git pre-commit guard from a code repository; hooks that were there before stay.",
		in:    []prop{codeRepo()},
		out:   guardProps(),
		run: func(ctx context.Context, _ *Toolset, a *args) (any, error) {
			at := guard.Site{Repo: a.codeRepo(), Env: os.Environ()}
			if a.err != nil {
				return nil, a.err
			}
			return shapeDone(guard.Uninstall(ctx, at))
		},
	}
}

func shapeDone(done []string, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return doneShape{append([]string{}, done...)}, nil
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
