// Command apply reads the file release/home and updates everything in the repository that depends on it: the module
// path, names in the program, server.json, the plugins for clients, and the commands that install mailtree. Run it in
// the release folder or in the repository's top folder. A second run changes nothing.
package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"golang.org/x/mod/modfile"

	"mailtree/release"
)

// pluginSource is the source file that contains the address of mailtree's home for the plugins.
const pluginSource = "clients/plugin/plugin.go"

//go:embed clone.md home.md
var texts embed.FS

func main() {
	if err := run("..", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "apply:", err)
		os.Exit(1)
	}
}

// run applies the home to the repository whose top folder is root.
func run(root string, out *os.File) error {
	home, err := release.Read(filepath.Join(root, "release", "home"))
	if err != nil {
		return err
	}
	changed, err := derive(root, home)
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(changed)) {
		if err := os.WriteFile(filepath.Join(root, path), changed[path], 0o644); err != nil {
			return err
		}
	}
	if changed[pluginSource] != nil {
		plugins := exec.Command("go", "run", "./cmd/mailtree", "setup", "--plugin", ".")
		plugins.Dir, plugins.Stderr = root, os.Stderr
		if err := plugins.Run(); err != nil {
			return fmt.Errorf("go run ./cmd/mailtree setup --plugin . : %w", err)
		}
	}
	fmt.Fprintf(out, "changed %d files for the module %s\n", len(changed), home.Module)
	return nil
}

// derive returns the new content, by path below root, of each file that does not match the home. It writes nothing.
func derive(root string, home release.Home) (map[string][]byte, error) {
	changed := map[string][]byte{}
	rewrite := func(path string, edit func([]byte) ([]byte, error)) error {
		old, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		edited, err := edit(old)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if !bytes.Equal(old, edited) {
			changed[path] = edited
		}
		return nil
	}
	main, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	from := modfile.ModulePath(main)
	for path, suffix := range map[string]string{"go.mod": "", "release/go.mod": "/release"} {
		line := regexp.MustCompile(`(?m)^module .*$`)
		if err := rewrite(path, func(old []byte) ([]byte, error) {
			return line.ReplaceAllLiteral(old, []byte("module "+home.Module+suffix)), nil
		}); err != nil {
			return nil, err
		}
	}
	for path, edit := range map[string]func([]byte) ([]byte, error){
		"server.json":           func(old []byte) ([]byte, error) { return server(old, home) },
		"mcp/card.go":           constants(map[string]string{"cardName": home.Registry}),
		pluginSource:            constants(map[string]string{"repository": home.Repository}),
		"guard/program.go":      constants(map[string]string{"npmPackage": home.NPM, "pypiPackage": home.PyPI}),
		"README.md":             func(old []byte) ([]byte, error) { return install(old, home) },
		"docs/howto/install.md": func(old []byte) ([]byte, error) { return install(old, home) },
	} {
		if err := rewrite(path, edit); err != nil {
			return nil, err
		}
	}
	if from == home.Module {
		return changed, nil
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name, _ := filepath.Rel(root, path); {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || name == "dist"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		default:
			return rewrite(name, func(old []byte) ([]byte, error) {
				if edited := changed[name]; edited != nil {
					old = edited
				}
				return imports(old, from, home.Module)
			})
		}
	})
	return changed, err
}

// imports replaces one module path with another in the imports of a Go file, and sorts the imports again.
func imports(source []byte, from, to string) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	edited, end := []byte{}, 0
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return nil, err
		}
		rest, ours := strings.CutPrefix(path, from+"/")
		if !ours {
			continue
		}
		at := set.Position(i.Path.Pos()).Offset
		edited = append(append(edited, source[end:at]...), strconv.Quote(to+"/"+rest)...)
		end = at + len(i.Path.Value)
	}
	if end == 0 {
		return source, nil
	}
	return format.Source(append(edited, source[end:]...))
}

// constants returns an edit that sets the string constants in values. All of these constants must exist in the file.
func constants(values map[string]string) func([]byte) ([]byte, error) {
	return func(source []byte) ([]byte, error) {
		for name, value := range values {
			line := regexp.MustCompile(`(?m)^(\s*` + name + `\s*= )".*"$`)
			if !line.Match(source) {
				return nil, fmt.Errorf("the constant %s is missing", name)
			}
			source = line.ReplaceAll(source, []byte("${1}"+strconv.Quote(value)))
		}
		return source, nil
	}
}

// server sets the name and the repository in server.json, and keeps the other values.
func server(old []byte, home release.Home) ([]byte, error) {
	var s struct {
		Schema      string          `json:"$schema"`
		Name        string          `json:"name"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Repository  *repository     `json:"repository,omitempty"`
		Version     string          `json:"version"`
		Packages    json.RawMessage `json:"packages,omitempty"`
	}
	d := json.NewDecoder(bytes.NewReader(old))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, err
	}
	s.Name, s.Repository = home.Registry, nil
	if home.IsSet() {
		host, _, _ := strings.Cut(home.Module, ".")
		s.Repository = &repository{URL: home.Repository, Source: host}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(s)
	return out.Bytes(), err
}

type repository struct {
	URL    string `json:"url"`
	Source string `json:"source"` // the name of the forge, such as github
}

// begin and end are the marker lines around the commands that install mailtree.
const (
	begin = "<!-- release/apply writes the lines from here -->\n"
	end   = "<!-- to here -->\n"
)

// install replaces the commands that install mailtree in a document.
func install(document []byte, home release.Home) ([]byte, error) {
	before, rest, hasBegin := strings.Cut(string(document), begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		return nil, fmt.Errorf("the lines %q and %q are missing", begin, end)
	}
	name := "clone.md"
	if home.IsSet() {
		name = "home.md"
	}
	t, err := template.ParseFS(texts, name)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	out.WriteString(before + begin)
	if err := t.Execute(&out, home); err != nil {
		return nil, err
	}
	out.WriteString(end + after)
	return []byte(out.String()), nil
}
