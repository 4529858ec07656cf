package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user and group id of the only user in the image. Other images without a shell use the same id.
const user = 65532

// lacks is the description of the image. It says what the image cannot do.
const lacks = about + ". This image does not contain Git, so `mailtree sync` and `mailtree guard` do not work in it."

// image writes the container image for both processors as an archive in the OCI layout. The image contains only the
// program and CA certificates. `skopeo copy oci-archive:FILE` and `podman load` read the archive.
func (e *edition) image() error {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, a := range e.Archives {
		if a.OS != "linux" {
			continue
		}
		image, err := e.imageOf(a)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: a.OS, Architecture: a.Arch}},
		})
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := at.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": e.Version,
		"io.containerd.image.name":          e.Image + ":" + e.Version,
	})); err != nil {
		return err
	}
	data, err := tarOf(dir, e.Date)
	if err != nil {
		return err
	}
	return e.write(fmt.Sprintf("mailtree_%s_image.tar", e.Version), data)
}

// imageOf returns the image for one processor.
func (e *edition) imageOf(a *archive) (v1.Image, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	contents := append([]file{
		{"etc/passwd", 0o644, fmt.Appendf(nil, "mailtree:x:%d:%d::/home/mailtree:/sbin/nologin\n", user, user)},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, roots.Bytes()},
		{"usr/bin/mailtree", 0o755, a.program},
	}, in("usr/share/doc/mailtree/", a.legal)...)
	data, err := rootFiles(contents, e.Date)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: e.Date}, CreatedBy: "mailtree release/pack"},
	})
	if err != nil {
		return nil, err
	}
	labels := map[string]string{
		"org.opencontainers.image.title":       "mailtree",
		"org.opencontainers.image.description": lacks,
		"org.opencontainers.image.licenses":    "MIT",
		"org.opencontainers.image.version":     e.Version,
	}
	if e.IsSet() {
		labels["org.opencontainers.image.source"] = e.Repository
		labels["io.modelcontextprotocol.server.name"] = e.Registry
	}
	image, err = mutate.ConfigFile(mutate.ConfigMediaType(image, types.OCIConfigJSON), &v1.ConfigFile{
		OS:           a.OS,
		Architecture: a.Arch,
		Created:      v1.Time{Time: e.Date},
		RootFS:       must(image.ConfigFile()).RootFS,
		History:      must(image.ConfigFile()).History,
		Config: v1.Config{
			User:         strconv.Itoa(user) + ":" + strconv.Itoa(user),
			WorkingDir:   "/home/mailtree",
			Env:          []string{"PATH=/usr/bin", "HOME=/home/mailtree", "HOST=0.0.0.0", "AUTH=token"},
			Entrypoint:   []string{"/usr/bin/mailtree"},
			Cmd:          []string{"serve"},
			ExposedPorts: map[string]struct{}{"8765/tcp": {}},
			Volumes:      map[string]struct{}{"/home/mailtree/.mailtree": {}},
			StopSignal:   "SIGTERM",
			Healthcheck:  &v1.HealthConfig{Test: []string{"CMD", "/usr/bin/mailtree", "stdio", "--no-start"}, Interval: 30 * time.Second, Timeout: 10 * time.Second},
			Labels:       labels,
		},
	})
	return image, err
}

func must(c *v1.ConfigFile, err error) *v1.ConfigFile {
	if err != nil {
		panic(err) // cannot fail: the image is in memory
	}
	return c
}

// in returns copies of the files, with the folder prepended to their names.
func in(folder string, contents []file) []file {
	moved := slices.Clone(contents)
	for i := range moved {
		moved[i].name = folder + moved[i].name
	}
	return moved
}

// rootFiles returns an archive of the image's file system. The image's user owns the home folder and the store.
func rootFiles(contents []file, date time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	folder := func(name string, mode int64, owner int) error {
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner, Gid: owner, ModTime: date, Format: tar.FormatPAX})
	}
	made := map[string]bool{".": true}
	for _, f := range contents {
		var missing []string
		for dir := filepath.Dir(f.name); !made[dir]; dir = filepath.Dir(dir) {
			missing = append(missing, dir)
			made[dir] = true
		}
		for _, dir := range slices.Backward(missing) {
			if err := folder(dir+"/", 0o755, 0); err != nil {
				return nil, err
			}
		}
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: date, Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	for _, f := range []struct {
		name  string
		mode  int64
		owner int
	}{{"tmp/", 0o1777, 0}, {"home/", 0o755, 0}, {"home/mailtree/", 0o700, user}, {"home/mailtree/.mailtree/", 0o700, user}} {
		if err := folder(f.name, f.mode, f.owner); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// tarOf returns an archive of the files below a folder, in lexical order.
func tarOf(dir string, date time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		short, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: short + "/", Mode: 0o755, ModTime: date, Format: tar.FormatPAX})
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: short, Mode: 0o644, Size: int64(len(data)), ModTime: date, Format: tar.FormatPAX}); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}
