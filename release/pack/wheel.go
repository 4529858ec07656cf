package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"
)

// wheelPlatforms contains the wheel tags for each platform that has a wheel. The program is statically linked, so it
// works with any C library. Programs built with Go 1.26 need macOS 12.
var wheelPlatforms = map[string]string{
	"linux/amd64":  "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	"linux/arm64":  "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	"darwin/amd64": "macosx_12_0_x86_64",
	"darwin/arm64": "macosx_12_0_arm64",
}

// wheels writes a wheel for each platform. Installing a wheel copies the program into the environment's scripts
// folder.
func (e *edition) wheels() error {
	version, err := pythonVersion(e.Version)
	if err != nil {
		return err
	}
	readme, err := e.fromTemplate("package.md", e)
	if err != nil {
		return err
	}
	for _, a := range e.Archives {
		tag := wheelPlatforms[a.OS+"/"+a.Arch]
		if tag == "" {
			continue
		}
		stem := strings.ReplaceAll(e.PyPI, "-", "_") + "-" + version
		info := stem + ".dist-info/"
		metadata, err := e.fromTemplate("METADATA", struct {
			*edition
			Version, Readme string
		}{e, version, string(readme)})
		if err != nil {
			return err
		}
		var tags strings.Builder
		for platform := range strings.SplitSeq(tag, ".") {
			fmt.Fprintf(&tags, "Tag: py3-none-%s\n", platform)
		}
		contents := []file{
			{stem + ".data/scripts/mailtree", 0o755, a.program},
			{info + "METADATA", 0o644, metadata},
			{info + "WHEEL", 0o644, []byte("Wheel-Version: 1.0\nGenerator: mailtree release/pack\nRoot-Is-Purelib: false\n" + tags.String())},
		}
		for _, l := range a.legal {
			contents = append(contents, file{info + "licenses/" + l.name, l.mode, l.data})
		}
		var record strings.Builder
		for _, f := range contents {
			sum := sha256.Sum256(f.data)
			fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
		}
		fmt.Fprintf(&record, "%sRECORD,,\n", info)
		data, err := zipped(append(contents, file{info + "RECORD", 0o644, []byte(record.String())}), e.Date)
		if err != nil {
			return err
		}
		if err := e.write("python/"+stem+"-py3-none-"+tag+".whl", data); err != nil {
			return err
		}
	}
	return nil
}

var preRelease = regexp.MustCompile(`^(\d+\.\d+\.\d+)-(alpha|beta|rc|dev)\.(\d+)$`)

// pythonVersion converts a semantic version to Python's form, for example 1.2.0-rc.1 to 1.2.0rc1. It returns an error
// for any pre-release other than alpha, beta, rc or dev with a number.
func pythonVersion(version string) (string, error) {
	if !strings.Contains(version, "-") {
		return version, nil
	}
	m := preRelease.FindStringSubmatch(version)
	if m == nil {
		return "", fmt.Errorf("the version is %q, which Python cannot express: use alpha, beta, rc or dev with a number, such as 1.2.0-rc.1", version)
	}
	return m[1] + map[string]string{"alpha": "a", "beta": "b", "rc": "rc", "dev": ".dev"}[m[2]] + m[3], nil
}

// zipped returns a zip archive of files.
func zipped(contents []file, date time.Time) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range contents {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		h.SetMode(fs.FileMode(f.mode))
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}
