package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"time"
)

// npmArch maps Go's names for processors to npm's names. The names for operating systems are the same.
var npmArch = map[string]string{"amd64": "x64", "arm64": "arm64"}

// npmPackage contains the values that the templates of the npm packages use.
type npmPackage struct {
	*edition
	Package string
	OS, CPU string            // set for a package with a binary
	Binary  map[string]string // versions of the packages with binaries, by package name
}

// npm writes one package with the program for each platform, and a main package that depends on all of them. The npm
// command installs only the dependency for the current platform, because the os and cpu of the other packages do not
// match.
func (e *edition) npm() error {
	main := npmPackage{edition: e, Package: e.NPM, Binary: map[string]string{}}
	for _, a := range e.Archives {
		p := npmPackage{edition: e, Package: e.NPM + "-" + a.OS + "-" + npmArch[a.Arch], OS: a.OS, CPU: npmArch[a.Arch]}
		main.Binary[p.Package] = e.Version
		manifest, err := e.fromTemplate("npm-binary.json", p)
		if err != nil {
			return err
		}
		readme := []byte("# " + p.Package + "\n\nThe program that the package `" + e.NPM + "` runs on " + p.OS + " (" + p.CPU + ").\n")
		contents := append([]file{{"package.json", 0o644, manifest}, {"README.md", 0o644, readme}, {"bin/mailtree", 0o755, a.program}}, a.legal...)
		if err := e.npmFile(p.Package, contents); err != nil {
			return err
		}
	}
	manifest, err := e.fromTemplate("npm.json", main)
	if err != nil {
		return err
	}
	launcher, err := e.fromTemplate("npm.js", main)
	if err != nil {
		return err
	}
	readme, err := e.fromTemplate("package.md", e)
	if err != nil {
		return err
	}
	return e.npmFile(e.NPM, []file{
		{"package.json", 0o644, manifest}, {"README.md", 0o644, readme}, {"bin/mailtree.js", 0o755, launcher}, e.Archives[0].legal[0],
	})
}

// npmFile writes a package to a file that `npm publish` accepts.
func (e *edition) npmFile(name string, contents []file) error {
	for i := range contents {
		contents[i].name = "package/" + contents[i].name
	}
	data, err := tarGzip(contents, e.Date)
	if err != nil {
		return err
	}
	return e.write(fmt.Sprintf("npm/%s-%s.tgz", strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-"), e.Version), data)
}

// tarGzip returns a compressed archive of files.
func tarGzip(contents []file, date time.Time) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, f := range contents {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: date, Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err := z.Close()
	return out.Bytes(), err
}
