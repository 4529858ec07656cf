// Package projectformat handles the formats of projects. The file project.json says which format a project has, and
// each machine that shares the project publishes the highest format that it supports, next to its key. A program does
// not use a project whose format it does not support. See docs/reference/tree.md, "Versions of the format".
package projectformat

import (
	"cmp"
	"errors"

	"mailtree/maildir/format"
	"mailtree/maildir/keys"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// Highest is the highest format that this program supports. Only tests change it, and only before they do anything
// else.
var Highest = 1

// ErrRefused means that this program must not use a project, because of the project's format.
var ErrRefused = errors.New("this version of mailtree cannot use the project")

// Of returns the format of the project in a tree. See format.ProjectFormat. Of returns a *tree.FormatError if the
// format is not a number, and any machine fault (tree.FaultMachine).
func Of(t *tree.Tree) (int, error) {
	data, _, err := t.Read(format.ProjectFile, format.MaxSmall)
	if err := tree.MachineFault(err); err != nil {
		return 0, err
	}
	return format.ProjectFormat(data)
}

// Refuse decides whether a program that supports the formats up to highest may use a project. n and err are the results
// of Of for the project, and name is the project's name for use in a sentence. If the program must not use the project,
// Refuse returns a refusal that wraps ErrRefused. If err is a machine fault, Refuse returns it.
func Refuse(n int, err error, name string, highest int) error {
	var bad *tree.FormatError
	switch {
	case errors.As(err, &bad):
		return &refusal.Error{
			What: refusal.Unavailable("The format of project {=name} is unknown, because {=other} is invalid: {why}."),
			Name: name, Other: format.ProjectFile, Why: bad.Error(), Err: ErrRefused,
		}
	case err != nil:
		return err
	case n > highest:
		return &refusal.Error{
			What: refusal.Unavailable("Project {=name} has format {count}, and the version of mailtree on this machine " +
				"supports formats up to {limit}. Upgrade mailtree on this machine."),
			Name: name, Counts: []int{n}, Limit: highest, Err: ErrRefused,
		}
	}
	return nil
}

// Machine is a machine that shares a project.
type Machine struct {
	keys.Key
	Format int // the highest format that the machine supports
}

// Machines lists the machines that share the project in a tree, sorted by the ids of their keys. A machine that
// publishes no format, or an invalid one, supports only format 1. Machines returns any error from keys.Published, or a
// machine fault.
func Machines(t *tree.Tree) (all []Machine, err error) {
	published, err := keys.Published(t)
	if err != nil {
		return nil, err
	}
	for _, k := range published {
		n, err := Published(t, k.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, Machine{k, cmp.Or(n, 1)})
	}
	return all, nil
}

// Published returns the format that the machine with the given key id has published in a tree. It returns 0 if there
// is no such file or the file is invalid. The only errors that it returns are machine faults.
func Published(t *tree.Tree, id string) (int, error) {
	data, _, err := t.Read(format.MachineFormatPath(id), format.MaxSmall)
	if err != nil {
		return 0, tree.MachineFault(err)
	}
	return format.ParseMachineFormat(data), nil
}
