package store

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
	"mailtree/maildir/writer"
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

// OwnFiles are what every project has from the start, beside its mail.
var OwnFiles = []string{format.ProjectFile, format.GitIgnore, format.GitAttributes}

// GitFile is what a file of gitFiles must hold, when it holds that. The lines that it lacks come
// first: of two that contradict each other Git believes the later, and a person's are meant.
func GitFile(name string, has []byte) []byte {
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
func (k *Keeper) completeGitFiles(ctx context.Context) {
	if k.History.State().Mode != "committing" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(gitFiles)) {
		has, _, err := k.Tree.Read(name, format.MaxSmall)
		if err == nil && bytes.Equal(has, GitFile(name, has)) || k.History.Preserve(ctx, []string{name}) != nil {
			continue
		}
		has, _, err = k.Tree.Read(name, format.MaxSmall)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := tree.WriteFile(filepath.Join(k.Tree.Dir(), name), GitFile(name, has)); err != nil {
			k.Log.Warn("a file lacks lines that Git needs; that is tried again at the next start",
				"path", name, "error", err)
			continue
		}
		k.History.Record([]writer.Op{{Verb: "project", Summary: "lines for Git", At: k.Now(), Paths: []string{name}}}, nil)
	}
}
