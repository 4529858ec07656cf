// Package codebase determines which folders contain a project's code base. It links a folder to a project, finds the
// project that another clone of a repository belongs to, and writes notes for callers about the folder that they
// named.
//
// The rules are in other packages. Package folders stores the map of folders, package storedir decides what a key
// means, and package repo reads Git's own links.
package codebase
