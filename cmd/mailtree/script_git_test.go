package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// withoutGit lists the scripts that also run with a server that cannot find git. These scripts test the history, and
// their own git commands need no Git index. The other commands of a script still find git. After each halt, a server
// with git therefore takes over the store, which must then be sound.
var withoutGit = []string{"log", "asof", "people_undo", "outbox", "outbox_refused", "people", "index_removed"}

// TestScriptsWithoutGit runs the scripts in withoutGit with a server that finds every program but git.
func TestScriptsWithoutGit(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		programs, _ := os.ReadDir(dir)
		for _, program := range programs {
			if program.Name() != "git" {
				_ = os.Symlink(filepath.Join(dir, program.Name()), filepath.Join(bin, program.Name())) // the first match wins
			}
		}
	}
	p := scripts
	for _, name := range withoutGit {
		p.Files = append(p.Files, "../../fixtures/scripts/"+name+".txtar")
	}
	p.Setup = func(env *testscript.Env) error {
		env.Setenv("SERVER_PATH", bin)
		return setupScript(env)
	}
	runScripts(t, p)
}
