// Package folders stores which folders on this machine identify a project, in addition to the folder that names the
// project. These are folders that a user linked, other clones of the same repository, and worktrees that may be removed
// later. It also identifies repositories, to find clones (Finder).
//
// The map is the file "folders" in the store. It describes only this machine, is never shared, and may be edited while
// a server is running. See docs/reference/settings.md, "Projects".
package folders
