package mail

import (
	"context"
	"os"
	"path/filepath"

	"mailtree/guard"
	"mailtree/mcp/tool"
)

// The guard's tools write only to the hooks folder of the repository that the call specifies. They refuse a hooks
// folder outside that repository (Invariant I8).

type doneShape struct {
	Done []string `json:"done"`
	Note string   `json:"note,omitempty"`
}

type installRequest struct {
	Project string `json:"project_key" jsonschema:"project whose claims apply" example:"/abs/path/backend"`
	Repo    string `json:"code_repo_path" jsonschema:"absolute path of the repository" example:"/abs/path/backend"`
}

type uninstallRequest struct {
	Repo string `json:"code_repo_path" jsonschema:"absolute path of the repository" example:"/abs/path/backend"`
}

func (t *Toolset) installGuard() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "install_precommit_guard",
		Hints: tool.Marks(),
		About: "Use to enforce claims in a Git repository. Installs a pre-commit guard that blocks commits of files that another agent " +
			"has claimed.",
		Out: doneShape{},
	}, func(ctx context.Context, r *installRequest) (any, error) {
		at, err := site(r.Repo)
		if err != nil {
			return nil, err
		}
		p, note, err := t.project(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		exe, err := guard.Program()
		if err != nil {
			return nil, err
		}
		done, err := guard.Install(ctx, at, guard.Setup{Store: t.store.Root(), Project: p.Slug, Program: exe})
		return shapeDone(done, note), err
	})
}

func (t *Toolset) uninstallGuard() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "uninstall_precommit_guard",
		Hints: tool.Marks(),
		About: "Use to stop enforcing claims. Removes the Git pre-commit guard and keeps earlier hooks.",
		Out:   doneShape{},
	}, func(ctx context.Context, r *uninstallRequest) (any, error) {
		at, err := site(r.Repo)
		if err != nil {
			return nil, err
		}
		done, err := guard.Uninstall(ctx, at)
		return shapeDone(done, ""), err
	})
}

func shapeDone(done []string, note string) doneShape {
	return doneShape{append([]string{}, done...), note}
}

// site returns the guard.Site for the repository path in a call. The path must be absolute, because the server has a
// different working directory than the caller.
func site(repo string) (guard.Site, error) {
	if !filepath.IsAbs(repo) {
		return guard.Site{}, tool.Invalid("code_repo_path is %q: pass the absolute path of the repository.", tool.Clip(repo))
	}
	return guard.Site{Repo: repo, Env: os.Environ()}, nil
}
