package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const example = `
repository = https://github.com/example/mailtree
maintainer = The mailtree authors <mailtree@example.org>
registry = io.github.example/mailtree
npm = @example/mailtree
pypi = example-mailtree
image = ghcr.io/example/mailtree
tap = example/tap
`

// packed writes archives as GoReleaser does, with a script in place of the program, and packs them. It returns the path
// of the dist folder.
func packed(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	dist := filepath.Join(root, "dist")
	var all []map[string]string
	var sums strings.Builder
	for _, system := range []string{"linux", "darwin", "freebsd"} {
		for _, arch := range []string{"amd64", "arm64"} {
			folder := "mailtree_1.2.0-rc.1_" + system + "_" + arch
			data, err := tarGzip([]file{
				{folder + "/LICENSE", 0o644, []byte("MIT\n")}, {folder + "/THIRD_PARTY_LICENSES", 0o644, []byte("BSD\n")},
				{folder + "/man/mailtree.1", 0o644, []byte(".TH\n")}, {folder + "/man/mailtree-send.1", 0o644, []byte(".TH\n")},
				{folder + "/completions/mailtree.bash", 0o644, []byte("bash\n")},
				{folder + "/completions/_mailtree", 0o644, []byte("zsh\n")}, {folder + "/completions/mailtree.fish", 0o644, []byte("fish\n")},
				{folder + "/mailtree", 0o755, []byte("#!/bin/sh\necho " + system + "_" + arch + "\n")},
			}, time.Unix(1764356000, 0))
			if err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dist, folder+".tar.gz"), data)
			all = append(all, map[string]string{"name": folder + ".tar.gz", "path": "dist/" + folder + ".tar.gz", "goos": system, "goarch": arch, "type": "Archive"})
			fmt.Fprintf(&sums, "%x  %s.tar.gz\n", sha256.Sum256(data), folder)
		}
	}
	artifacts, err := json.Marshal(append(all, map[string]string{"name": "checksums.txt", "type": "Checksum"}))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dist, "artifacts.json"), artifacts)
	put(t, filepath.Join(dist, "metadata.json"), []byte(`{"version": "1.2.0-rc.1"}`))
	put(t, filepath.Join(dist, "checksums.txt"), []byte(sums.String()))
	put(t, filepath.Join(root, "release", "home"), []byte(example))
	put(t, filepath.Join(root, "server.json"), []byte(`{"name": "io.github.example/mailtree", "version": "0.0.0"}`))
	if err := run(root, io.Discard); err != nil {
		t.Fatal(err)
	}
	return dist
}

// TestReproducible checks that the same archives produce the same files.
func TestReproducible(t *testing.T) {
	t.Parallel()
	a, b := packed(t), packed(t)
	files := 0
	err := filepath.WalkDir(a, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		short, err := filepath.Rel(a, name)
		if err != nil {
			return err
		}
		if !bytes.Equal(get(t, name), get(t, filepath.Join(b, short))) {
			t.Errorf("%s differs", short)
		}
		return nil
	})
	if err != nil || files < 6+3+7+4+4+3 {
		t.Errorf("%d files, %v", files, err)
	}
}

// TestNPM checks that the main package depends on one package with the program for each platform.
func TestNPM(t *testing.T) {
	t.Parallel()
	dist := packed(t)
	type manifest struct {
		Name, Version, MCPName string
		OS, CPU                []string
		Bin                    map[string]string
		OptionalDependencies   map[string]string
	}
	read := func(name string) (m manifest, files map[string]string) {
		files = map[string]string{}
		z, err := gzip.NewReader(bytes.NewReader(get(t, filepath.Join(dist, "npm", name))))
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(z); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[h.Name] = string(data)
		}
		if err := json.Unmarshal([]byte(files["package/package.json"]), &m); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return m, files
	}
	main, launcher := read("example-mailtree-1.2.0-rc.1.tgz")
	if main.Name != "@example/mailtree" || main.MCPName != "io.github.example/mailtree" || main.Bin["mailtree"] != "bin/mailtree.js" || len(main.OptionalDependencies) != 6 {
		t.Errorf("%+v", main)
	}
	if !strings.Contains(launcher["package/README.md"], "Use WSL 2") {
		t.Errorf("%q", launcher["package/README.md"])
	}
	t.Run("without a program", func(t *testing.T) {
		if _, err := exec.LookPath("node"); err != nil {
			t.Skip("not done here: node is missing")
		}
		dir := t.TempDir()
		script := filepath.Join(dir, "mailtree.js")
		put(t, script, []byte(launcher["package/bin/mailtree.js"]))
		for platform, want := range map[string]string{
			"win32": "mailtree: there is no mailtree for Windows. Use WSL 2, and install mailtree there.\n",
			"linux": "  npm install -g --include=optional @example/mailtree\n",
		} {
			set := filepath.Join(dir, platform+".js")
			put(t, set, []byte("Object.defineProperty(process, 'platform', {value: '"+platform+"'})"))
			out, err := exec.CommandContext(t.Context(), "node", "--require", set, script).CombinedOutput()
			if err == nil || !strings.HasSuffix(string(out), want) || platform == "win32" && string(out) != want {
				t.Errorf("on %s, the script says %q, %v", platform, out, err)
			}
		}
	})
	binary, files := read("example-mailtree-darwin-x64-1.2.0-rc.1.tgz")
	if binary.OS[0] != "darwin" || binary.CPU[0] != "x64" || main.OptionalDependencies[binary.Name] != binary.Version {
		t.Errorf("%+v", binary)
	}
	if !strings.Contains(files["package/bin/mailtree"], "darwin_amd64") || files["package/THIRD_PARTY_LICENSES"] != "BSD\n" {
		t.Errorf("%q", files)
	}
}

// TestWheel checks that RECORD in a wheel lists every other file with its hash, and that the program is executable.
func TestWheel(t *testing.T) {
	t.Parallel()
	name := "python/example_mailtree-1.2.0rc1-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl"
	data := get(t, filepath.Join(packed(t), name))
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	record, err := fs.ReadFile(z, "example_mailtree-1.2.0rc1.dist-info/RECORD")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		content, err := fs.ReadFile(z, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		line := fmt.Sprintf("%s,sha256=%s,%d\n", f.Name, base64.RawURLEncoding.EncodeToString(sum[:]), len(content))
		if !strings.Contains(string(record), line) && !strings.HasSuffix(f.Name, "/RECORD") {
			t.Errorf("RECORD lacks %s", line)
		}
		if strings.HasSuffix(f.Name, "/scripts/mailtree") && f.Mode() != 0o755 {
			t.Errorf("%s has mode %s", f.Name, f.Mode())
		}
	}
	for version, want := range map[string]string{
		"1.2.0": "1.2.0", "1.2.0-alpha.1": "1.2.0a1", "1.2.0-beta.2": "1.2.0b2", "1.2.0-rc.3": "1.2.0rc3",
		"0.0.1-dev.1764356000": "0.0.1.dev1764356000", "1.2.0-next": "", "1.2.0-rc": "",
	} {
		if got, err := pythonVersion(version); got != want || (err == nil) != (want != "") {
			t.Errorf("%s becomes %q, %v; want %q", version, got, err, want)
		}
	}
}

// TestImage checks that docs/howto/containers.md describes the image.
func TestImage(t *testing.T) {
	t.Parallel()
	image, err := new(edition).imageOf(&archive{OS: "linux", Arch: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := file.Config
	volume := slices.Collect(maps.Keys(c.Volumes))[0]
	port, _, _ := strings.Cut(slices.Collect(maps.Keys(c.ExposedPorts))[0], "/")
	uid, _, _ := strings.Cut(c.User, ":")
	page := string(get(t, "../../docs/howto/containers.md"))
	for _, want := range []string{
		"| entry point | `" + c.Entrypoint[0] + "`, with the argument `" + c.Cmd[0] + "` |",
		"| user | " + uid + " |", "it must belong to user " + uid,
		"| volume for the store | `" + volume + "` |", "-v mailtree:" + volume + " IMAGE\n",
		"| port | " + port + ",", "-p 127.0.0.1:" + port + ":" + port + " ",
		"| health check | `" + strings.Join(c.Healthcheck.Test[1:], " ") + "` |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	for _, setting := range []string{"HOST=0.0.0.0", "AUTH=token"} {
		if !slices.Contains(c.Env, setting) || !strings.Contains(page, "(`"+setting+"`)") {
			t.Errorf("the image sets %q, and the page must say %s", c.Env, setting)
		}
	}
}

// TestInstall checks that the install script installs the program for this platform, and that the commands in
// docs/howto/uninstall.md remove everything that the script has installed. It also checks that the script installs nothing
// if the archive was changed.
func TestInstall(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("not done here: curl is missing")
	}
	dist := packed(t)
	prefix := filepath.Join(t.TempDir(), "prefix")
	install := func() string {
		cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(dist, "install.sh"))
		cmd.Env = append(os.Environ(), "PREFIX="+prefix, "MAILTREE_URL=file://"+dist)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out := install(); !strings.Contains(out, "installed mailtree 1.2.0-rc.1 in "+prefix+"/bin\n") || !strings.Contains(out, "is not on your PATH") {
		t.Errorf("the script says %q", out)
	}
	for _, name := range []string{"bin/mailtree", "share/man/man1/mailtree.1", "share/doc/mailtree/THIRD_PARTY_LICENSES"} {
		if len(get(t, filepath.Join(prefix, name))) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	_, remove, _ := strings.Cut(string(get(t, "../../docs/howto/uninstall.md")), "```sh\ncd ~/.local\n")
	remove, _, _ = strings.Cut(remove, "```")
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", remove)
	cmd.Dir = prefix
	if out, err := cmd.CombinedOutput(); err != nil || remove == "" {
		t.Errorf("the page says %q: %v\n%s", remove, err, out)
	}
	if left := filesBelow(t, prefix); len(left) > 0 {
		t.Errorf("the commands on the page leave %q", left)
	}
	archives, err := filepath.Glob(filepath.Join(dist, "*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range archives {
		put(t, name, append(get(t, name), 0))
	}
	if err := os.RemoveAll(prefix); err != nil {
		t.Fatal(err)
	}
	if out := install(); !strings.Contains(out, "does not have the expected checksum. Nothing was installed.") {
		t.Errorf("the script says %q", out)
	}
	if _, err := os.Stat(prefix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the script installed something: %v", err)
	}
}

// filesBelow lists the files in a folder and its subfolders.
func filesBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
