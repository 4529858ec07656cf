package mail

import (
	"context"
	"os"
	"path/filepath"

	"mailtree/guard"
	"mailtree/mcp/tool"
)

// The guard's tools write into the hooks folder of the code repository that a call names, and
// nowhere else; they refuse a folder outside that repository (Invariant I8).

type doneShape struct {
	Done []string `json:"done"`
	Note string   `json:"note,omitempty"`
}

func (t *Toolset) installGuard() tool.Tool {
	return tool.Tool{
		Name:  "install_precommit_guard",
		Hints: tool.Marks(),
		About: "Install a Git pre-commit guard that blocks commits touching files another agent has claimed.",
		In:    []tool.Prop{projectKey(), codeRepo()},
		Out:   doneShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			at := guard.Site{Repo: repoPath(a), Env: os.Environ()}
			p, note, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			exe, err := guard.Program()
			if err != nil {
				return nil, err
			}
			done, err := guard.Install(ctx, at, guard.Setup{Store: t.store.Root(), Project: p.Slug(), Program: exe})
			return shapeDone(done, note), err
		},
	}
}

func (t *Toolset) uninstallGuard() tool.Tool {
	return tool.Tool{
		Name:  "uninstall_precommit_guard",
		Hints: tool.Removes(),
		About: "Remove the Git pre-commit guard; hooks that were there before stay.",
		In:    []tool.Prop{codeRepo()},
		Out:   doneShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			at := guard.Site{Repo: repoPath(a), Env: os.Environ()}
			if a.Err() != nil {
				return nil, a.Err()
			}
			done, err := guard.Uninstall(ctx, at)
			return shapeDone(done, ""), err
		},
	}
}

func shapeDone(done []string, note string) doneShape {
	return doneShape{append([]string{}, done...), note}
}

func codeRepo() tool.Prop {
	return tool.Need("code_repo_path", tool.Str("absolute path", "/abs/path/backend"))
}

// repoPath is the path of the code repository. It must be absolute, because the server runs in a
// folder of its own.
func repoPath(a *tool.Args) string {
	path := a.Text("code_repo_path")
	if a.Err() == nil && !filepath.IsAbs(path) {
		a.Fail(tool.Invalid("code_repo_path is %q: give the absolute path of the repository.", tool.Clip(path)))
	}
	return path
}
