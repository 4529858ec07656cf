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

// gitFiles lists the files that configure how Git treats a tree, with the lines that each file needs. Git ignores the
// files that format.Ignored excludes from the tree. Otherwise, an editor's open swap file would be committed, but its
// removal would not, because the removal is not reported. Git merges marks with the union driver.
var gitFiles = map[string][]string{
	format.GitIgnore: {
		format.RunDir + "/", ".*", "!" + format.GitIgnore, "!" + format.GitAttributes,
		"*~", "*.swp", "*.swx", "4913", "[#]*#",
	},
	format.GitAttributes: {"* -text", "*.read merge=union", "*.ack merge=union", "*.archived merge=union", "*.later merge=union",
		"*.released merge=union"},
}

// OwnFiles lists the files that every project has from the start.
var OwnFiles = []string{format.ProjectFile, format.GitIgnore, format.GitAttributes}

// GitFile returns the required content of a file in gitFiles, given the file's current content. It puts missing lines
// first, because if two lines contradict each other, Git follows the later one, and the user's lines must take
// precedence.
func GitFile(name string, has []byte) []byte {
	lacks := slices.DeleteFunc(slices.Clone(gitFiles[name]), func(line string) bool {
		return slices.Contains(strings.Split(string(has), "\n"), line)
	})
	if len(lacks) == 0 {
		return has
	}
	return append([]byte(strings.Join(lacks, "\n")+"\n"), has...)
}

// completeGitFiles adds missing lines to the gitFiles of a project that was created by an older version. It must be
// called before the project is served. If it is not safe to change a file, the file stays as it is until the next
// start.
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
			k.Log.Warn("cannot add the missing lines to .gitignore or .gitattributes; the server will retry at its next start",
				"path", name, "error", err)
			continue
		}
		k.History.Record([]writer.Op{{Verb: "project", Summary: "add missing lines", At: k.Now(), Paths: []string{name}}}, nil)
	}
}
