package maildir

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// gitFiles are the files that say how Git treats a tree, each with the lines that it needs. Git
// leaves out what format.Ignored says is no part of the mail: the swap file of an editor that is
// open would else be committed, and its removal, which nobody reports, never. Marks merge by union.
var gitFiles = map[string][]string{
	format.GitIgnore: {
		format.RunDir + "/", ".*", "!" + format.GitIgnore, "!" + format.GitAttributes,
		"*~", "*.swp", "*.swx", "4913", "[#]*#",
	},
	format.GitAttributes: {"* -text", "*.read merge=union", "*.ack merge=union", "*.archived merge=union", "*.released merge=union"},
}

// ownFiles are what every project has from the start, beside its mail.
var ownFiles = []string{format.ProjectFile, format.GitIgnore, format.GitAttributes}

// gitFile is what a file of gitFiles must hold, when it holds that. The lines that it lacks come
// first: of two that contradict each other Git believes the later, and a person's are meant.
func gitFile(name string, has []byte) []byte {
	lacks := slices.DeleteFunc(slices.Clone(gitFiles[name]), func(line string) bool {
		return slices.Contains(strings.Split(string(has), "\n"), line)
	})
	if len(lacks) == 0 {
		return has
	}
	return append([]byte(strings.Join(lacks, "\n")+"\n"), has...)
}

// completeGitFiles adds the lines to the files of gitFiles that a project of an older version lacks.
// The project is not served yet. What it may not change it leaves alone until the next start.
func (p *Project) completeGitFiles(ctx context.Context) {
	if p.history.State().Mode != "committing" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(gitFiles)) {
		has, _, err := p.tree.Read(name, format.MaxSmall)
		if err == nil && bytes.Equal(has, gitFile(name, has)) || p.history.Preserve(ctx, []string{name}) != nil {
			continue
		}
		has, _, err = p.tree.Read(name, format.MaxSmall)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := tree.WriteFile(filepath.Join(p.tree.Dir(), name), gitFile(name, has)); err != nil {
			p.store.cfg.Log.Warn("a file lacks lines that Git needs; that is tried again at the next start", "project", p.slug,
				"path", name, "error", err)
			continue
		}
		p.history.Record([]Op{{Verb: "project", Summary: "lines for Git", At: p.store.cfg.Now(), Paths: []string{name}}}, nil)
	}
}
