package folders

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/lazy"
)

// Repository identifies the repository of a working tree. Two clones of one repository have a common first commit and
// the same remote.
type Repository struct {
	First  []string // first commits, in hex; empty if the repository has none or they could not be read
	Remote string   // the remote in the form that remoteOf returns; Folder if there is no remote, empty if unknown
	Folder string   // top of the working tree
}

// String returns the repository's line in the file: "repository FIRST,FIRST REMOTE FOLDER". An empty field is written
// as -.
func (r Repository) String() string {
	first, remote := strings.Join(r.First, ","), r.Remote
	if first == "" {
		first = "-"
	}
	if remote == "" {
		remote = "-"
	}
	return fmt.Sprintf("repository %s %s %s", first, url.PathEscape(remote), r.Folder)
}

var commits = lazy.Regexp(`^(-|[0-9a-f]{40,64}(,[0-9a-f]{40,64})*)$`)

func parseRepository(text string) (r Repository, ok bool) {
	kind, rest := field(text)
	first, rest := field(rest)
	remote, folder := field(rest)
	remote, err := url.PathUnescape(remote)
	if kind != "repository" || !commits().MatchString(first) || err != nil || !isFolder(folder) {
		return r, false
	}
	r.Folder = folder
	if first != "-" {
		r.First = strings.Split(first, ",")
	}
	if remote != "-" {
		r.Remote = remote
	}
	return r, true
}

// SharesFirst reports whether r and other have a common first commit.
func (r Repository) SharesFirst(other Repository) bool {
	return slices.ContainsFunc(r.First, func(c string) bool { return slices.Contains(other.First, c) })
}

// isMoved reports whether other is the same repository as r at a new location. The folder of r no longer exists.
func (r Repository) isMoved(other Repository) bool {
	none := r.Remote == r.Folder && other.Remote == other.Folder
	return r.SharesFirst(other) && (none || r.Remote == other.Remote)
}

// IsTwin reports whether r and other are clones of the same repository.
func (r Repository) IsTwin(other Repository) bool {
	return r.Remote != "" && r.Remote == other.Remote && r.SharesFirst(other)
}

// Repository returns the map's entry for the working tree with the given top.
func (m *Map) Repository(top string) (Repository, bool) {
	i := slices.IndexFunc(m.Repositories, func(r Repository) bool { return r.Folder == top })
	if i < 0 {
		return Repository{}, false
	}
	return m.Repositories[i], true
}

// RepositoryAround returns the map's entry for the innermost working tree that contains path.
func (m *Map) RepositoryAround(path string) (Repository, bool) {
	for at := path; at != ""; at = filepath.Dir(at) {
		if r, ok := m.Repository(at); ok {
			return r, true
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return Repository{}, false
}

// WithRepository returns a copy of the map in which r replaces the entry for its folder. If the entry was for a different
// repository, the lines for clones of that repository are removed too. If there are then too many entries, the oldest one
// is removed.
func (m *Map) WithRepository(r Repository) *Map {
	if !isFolder(r.Folder) {
		return m
	}
	next := *m
	if old, ok := m.Repository(r.Folder); ok && !r.SharesFirst(old) {
		next.Lines = slices.DeleteFunc(slices.Clone(m.Lines), func(l Line) bool {
			around, _ := m.RepositoryAround(l.Folder)
			return l.Kind == Clone && around.Folder == r.Folder
		})
	}
	next.Repositories = slices.DeleteFunc(slices.Clone(m.Repositories), func(old Repository) bool { return old.Folder == r.Folder })
	next.Repositories = append(next.Repositories, r)
	if len(next.Repositories) > maxNoted {
		next.Repositories = slices.Delete(next.Repositories, 0, 1)
	}
	return &next
}

// scpLike matches an address such as git@example.org:me/webshop.git. A colon after a slash is part of a local path.
var scpLike = lazy.Regexp(`^(?:[^/@:]+@)?([^/:]+):(.*)$`)

// ports contains the default ports of the URL schemes that Git uses.
var ports = map[string]string{"ssh": "22", "git+ssh": "22", "ssh+git": "22", "http": "80", "https": "443", "git": "9418"}

// Remote normalizes a remote's address, for example to "example.org/me/webshop". It removes the user, scheme, default
// port and .git, and converts the host to lower case. If the address is a path on this machine, local is true, and
// plain is that path, clean and absolute. A relative path is relative to dir.
func Remote(address, dir string) (plain string, local bool) {
	if u, err := url.Parse(address); err == nil && u.Scheme != "" && strings.Contains(address, "://") {
		if u.Scheme == "file" {
			return localPath(u.Path, dir), true
		}
		host := strings.ToLower(u.Hostname())
		if port := u.Port(); port != "" && port != ports[strings.ToLower(u.Scheme)] {
			host += ":" + port
		}
		plain = host + withoutGit(path.Clean("/"+u.Path))
		if u.RawQuery != "" {
			plain += "?" + u.RawQuery
		}
		return plain, false
	}
	if m := scpLike().FindStringSubmatch(address); m != nil {
		return strings.ToLower(m[1]) + withoutGit(path.Clean("/"+m[2])), false
	}
	return localPath(address, dir), true
}

func withoutGit(p string) string { return strings.TrimSuffix(strings.TrimSuffix(p, "/"), ".git") }

// localPath returns a clean absolute path.
func localPath(p, dir string) string {
	if !path.IsAbs(p) {
		p = path.Join(dir, p)
	}
	return path.Clean(p)
}
