// Command pack builds more packages from GoReleaser's archives in dist: npm packages, Python wheels, MCPB bundles, the
// container image, the Homebrew formula, the install script and the entry for the MCP registry. Run it in the release
// folder. The same archives always produce the same files.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"mailtree/release"
)

// files contains the manifests and scripts that this command fills in.
//
//go:embed files
var files embed.FS

const about = "Mail, threads, search and file claims for coding agents"

// edition is a version of mailtree, with the data that its packages contain.
type edition struct {
	release.Home
	About    string
	Version  string // without a v
	Date     time.Time
	Archives []*archive

	dist string
}

// archive is one of GoReleaser's archives.
type archive struct {
	Name   string // the file's name
	OS     string // as in GOOS
	Arch   string // as in GOARCH
	SHA256 string

	program []byte
	legal   []file // license texts
}

// file is a file in a package.
type file struct {
	name string
	mode int64
	data []byte
}

func main() {
	if err := run("..", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// run packs the archives below root, the repository's top folder.
func run(root string, out io.Writer) error {
	home, err := release.Read(filepath.Join(root, "release", "home"))
	if err != nil {
		return err
	}
	e := &edition{Home: home, About: about, dist: filepath.Join(root, "dist")}
	if err := e.readDist(); err != nil {
		return err
	}
	steps := []func() error{e.npm, e.wheels, e.bundles, e.image}
	if home.IsSet() {
		steps = append(steps, e.formula, e.installer, e.registry)
	} else {
		fmt.Fprintln(out, "release/home is empty, so dist has no formula, install script or registry entry")
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return e.sums()
}

// readDist reads GoReleaser's metadata and archives from dist.
func (e *edition) readDist() error {
	var about struct {
		Version string
		Date    time.Time
	}
	var all []struct {
		Name, Path, Goos, Goarch, Type string
	}
	if err := readJSON(filepath.Join(e.dist, "metadata.json"), &about); err != nil {
		return err
	}
	if err := readJSON(filepath.Join(e.dist, "artifacts.json"), &all); err != nil {
		return err
	}
	e.Version = about.Version
	for _, a := range all {
		if a.Type != "Archive" {
			continue
		}
		found := &archive{Name: a.Name, OS: a.Goos, Arch: a.Goarch}
		if err := found.read(filepath.Join(e.dist, a.Name), e); err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		e.Archives = append(e.Archives, found)
	}
	if len(e.Archives) == 0 {
		return errors.New("dist has no archives: run release/build")
	}
	slices.SortFunc(e.Archives, func(a, b *archive) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func readJSON(name string, to any) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

// read reads an archive and its checksum. The program's modification time is the time of the commit.
func (a *archive) read(name string, e *edition) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	a.SHA256 = fmt.Sprintf("%x", sha256.Sum256(data))
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		base := path.Base(h.Name)
		if base != "mailtree" && base != "LICENSE" && base != "THIRD_PARTY_LICENSES" {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if base == "mailtree" {
			a.program, e.Date = content, h.ModTime.UTC()
		} else {
			a.legal = append(a.legal, file{base, 0o644, content})
		}
	}
	if a.program == nil || len(a.legal) != 2 {
		return errors.New("the archive lacks the program or a license text")
	}
	return nil
}

// fromTemplate executes one of the templates in files. A template can encode values as JSON with {{json .}}.
func (e *edition) fromTemplate(name string, with any) ([]byte, error) {
	t, err := template.New(name).Funcs(template.FuncMap{"json": toJSON}).ParseFS(files, "files/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, with)
	return out.Bytes(), err
}

func toJSON(v any) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSpace(out.String()), err
}

// write writes a file below dist.
func (e *edition) write(name string, data []byte) error {
	full := filepath.Join(e.dist, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	return os.WriteFile(full, data, 0o644)
}

// sums adds the bundles, the image and the install script to GoReleaser's checksums. Package registries have their
// own checksums.
func (e *edition) sums() error {
	name := filepath.Join(e.dist, "checksums.txt")
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	lines := map[string]string{} // keyed by file
	for line := range strings.Lines(string(data)) {
		sum, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		lines[file] = sum
	}
	for _, pattern := range []string{"*.mcpb", "*_image.tar", "install.sh"} {
		found, err := filepath.Glob(filepath.Join(e.dist, pattern))
		if err != nil {
			return err
		}
		for _, full := range found {
			data, err := os.ReadFile(full)
			if err != nil {
				return err
			}
			lines[filepath.Base(full)] = fmt.Sprintf("%x", sha256.Sum256(data))
		}
	}
	var out []string
	for file, sum := range lines {
		out = append(out, sum+"  "+file+"\n")
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return os.WriteFile(name, []byte(strings.Join(out, "")), 0o644)
}
