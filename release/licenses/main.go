// Command licenses prints the license texts of Go and of all modules that are linked into mailtree on any platform. Run
// it in the release folder. It fails if a module has no license text.
package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// platforms are the operating systems in release/goreleaser.yaml. The linked modules do not depend on the processor.
var platforms = []string{"linux", "darwin", "freebsd"}

// legal matches the names of license and notice files, which must be distributed with the program.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)`)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	folders := map[string]string{} // keyed by module and version
	for _, system := range platforms {
		list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/mailtree")
		list.Dir, list.Stderr = "..", os.Stderr
		list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		modules, err := list.Output()
		if err != nil {
			return fmt.Errorf("go list for %s: %w", system, err)
		}
		for line := range strings.Lines(string(modules)) {
			if name, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				folders[name] = dir
			}
		}
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	folders["Go"] = strings.TrimSpace(string(goroot))
	fmt.Fprintf(out, "mailtree contains Go's standard library and %d modules by other authors. These are their licenses.\n", len(folders)-1)
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		if err := print(out, name, folders[name]); err != nil {
			return err
		}
	}
	return nil
}

// print prints the license texts in a module's folder.
func print(out io.Writer, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if !e.Type().IsRegular() || !legal.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(out, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), name, e.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("%s has no license text in %s", name, dir)
	}
	return nil
}
