// Package folders stores which folders on this machine mean a project, beyond the folder that names the project: what a
// user linked, other clones of the same repository, and worktrees that may be removed later. It also identifies
// repositories, to find clones (Finder).
//
// The map is the file "folders" in the store. It is per machine, is never shared, and may be edited while a server is
// running. See docs/settings.md, "Projects".
package folders
