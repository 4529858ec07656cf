package guard

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"path"
	"strings"

	"mailtree/maildir/lazy"
)

//go:embed hook.sh
var hookScript string

// hook contains the data from which one of our hooks is generated. The generated script also contains this data.
type hook struct {
	Name    string      `json:"hook"`
	Program string      `json:"program"` // path of mailtree at the time of installation
	Shell   []string    `json:"shell"`   // the shell that runs the earlier hook under its old name; empty if the hook is executed directly
	Guards  [1]guarding `json:"guards"`  // a list, because earlier versions could put several guards into a shared hook
}

// guarding identifies the project whose claims apply.
type guarding struct {
	Store   string `json:"store"`
	Project string `json:"project"` // slug
}

// behind is the suffix that the guard appends to the name of an earlier hook.
const behind = ".before-mailtree"

const (
	marker    = "# mailtree guard: "
	sumPrefix = "\n# sum: "
)

// render returns the hook's script.
func (h *hook) render() ([]byte, error) {
	state, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	chain := `"$before"`
	if len(h.Shell) > 0 {
		var words []string
		for _, w := range h.Shell {
			words = append(words, shellQuote(w))
		}
		chain = strings.Join(words, " ") + " -c " + shellQuote(`. "${0%/*}/`+h.Name+behind+`"`) + ` "${0%/*}/$hook"`
	}
	text := strings.NewReplacer(
		"@STATE@", string(state),
		"@HOOK@", h.Name,
		"@PROGRAM@", shellQuote(h.Program),
		"@STORE@", shellQuote(h.Guards[0].Store),
		"@PROJECT@", shellQuote(h.Guards[0].Project),
		"@CHAIN@", chain,
	).Replace(hookScript)
	return []byte(strings.Replace(text, sumPrefix+"@SUM@\n", sumPrefix+sumOf(text)+"\n", 1)), nil
}

// sumOf returns the checksum of a script. It skips the line that contains the checksum.
func sumOf(text string) string {
	before, rest, _ := strings.Cut(text, sumPrefix)
	_, after, _ := strings.Cut(rest, "\n")
	sum := sha256.Sum256([]byte(before + "\n" + after))
	return hex.EncodeToString(sum[:])
}

// parseHook parses a hook's script. It returns nil for a hook that the guard did not write. If the guard's hook was
// modified afterward, changed is true.
func parseHook(data []byte) (h *hook, changed bool) {
	text := string(data)
	if !bytes.HasPrefix(data, []byte("#!/bin/sh\n"+marker)) {
		return nil, false
	}
	h = &hook{}
	_, state, ok := strings.Cut(text, "\n# state: ")
	line, _, ended := strings.Cut(state, "\n")
	if !ok || !ended || json.Unmarshal([]byte(line), h) != nil || h.Guards[0] == (guarding{}) {
		return &hook{}, true
	}
	_, sum, _ := strings.Cut(text, sumPrefix)
	sum, _, _ = strings.Cut(sum, "\n")
	return h, sum != sumOf(text)
}

var (
	ownName = lazy.Regexp(`\$\{?0\b`)
	shells  = map[string]bool{"sh": true, "bash": true, "dash": true, "ash": true, "ksh": true, "zsh": true}
)

// shellFor returns the shell that must run an earlier hook under its old name, or nil if the hook can be executed
// directly.
//
// The earlier hook has been renamed, but some hooks depend on their own names. For example, husky's hooks use basename
// "$0" and dirname "$0" to find the file to run. If the guard passes the script to a shell, $0 can keep the old name.
// However, a script that compares $0 with BASH_SOURCE would then do nothing. Therefore such a script is executed
// directly, like any hook that is not a shell script.
func shellFor(script []byte) []string {
	if !ownName().Match(script) || bytes.Contains(script, []byte("BASH_SOURCE")) || bytes.IndexByte(script, 0) >= 0 {
		return nil
	}
	first, _, _ := strings.Cut(string(script), "\n")
	line, ok := strings.CutPrefix(first, "#!")
	if !ok {
		return []string{"/bin/sh"}
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	name := path.Base(words[0])
	if name == "env" && len(words) == 2 {
		name = words[1]
	}
	if !shells[name] {
		return nil
	}
	return words
}
