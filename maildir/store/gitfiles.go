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

// gitFiles are the files that configure how Git treats a tree, with the lines that each needs. Git ignores
// the files that format.Ignored says are not part of the mail; otherwise an open editor's swap file would
// be committed, and its removal, which is not reported, never would be. Marks merge by union.
var gitFiles = map[string][]string{
	format.GitIgnore: {
		format.RunDir + "/", ".*", "!" + format.GitIgnore, "!" + format.GitAttributes,
		"*~", "*.swp", "*.swx", "4913", "[#]*#",
	},
	format.GitAttributes: {"* -text", "*.read merge=union", "*.ack merge=union", "*.archived merge=union", "*.released merge=union"},
}

// OwnFiles are the files that every project has from the start, besides its mail.
var OwnFiles = []string{format.ProjectFile, format.GitIgnore, format.GitAttributes}

// GitFile returns the required content of a file of gitFiles that now holds has. Missing lines go first,
// because Git follows the later one of two contradicting lines, and a person's lines must win.
func GitFile(name string, has []byte) []byte {
	lacks := slices.DeleteFunc(slices.Clone(gitFiles[name]), func(line string) bool {
		return slices.Contains(strings.Split(string(has), "\n"), line)
	})
	if len(lacks) == 0 {
		return has
	}
	return append([]byte(strings.Join(lacks, "\n")+"\n"), has...)
}

// completeGitFiles adds missing lines to the gitFiles of a project made by an older version. The project is
// not served yet. Files that it may not change stay until the next start.
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
			k.Log.Warn("a file lacks lines that Git needs; the server adds them at the next start",
				"path", name, "error", err)
			continue
		}
		k.History.Record([]writer.Op{{Verb: "project", Summary: "lines for Git", At: k.Now(), Paths: []string{name}}}, nil)
	}
}
