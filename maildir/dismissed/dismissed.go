// Package dismissed remembers which diagnostics of a project users no longer want to see among what waits for them. A
// diagnostic is dismissed as it is: if it happens again, it is a new one. The memory is run-time state: it is not part of
// the history, and other machines do not see it.
package dismissed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Keys are the keys of diagnostics, which identify them.
type Keys []string

// Read returns what an agent has dismissed. It returns nothing if the file is damaged, and machine faults.
func Read(t *tree.Tree, agent string) (Keys, error) {
	data, _, err := t.Read(file(agent), format.MaxSmall)
	var oversize *tree.FormatError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &oversize):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read what %s has dismissed: %w", agent, err)
	}
	var k Keys
	if json.Unmarshal(data, &k) != nil {
		return nil, nil
	}
	return k, nil
}

// Write replaces what an agent has dismissed. The caller leaves out the keys of diagnostics that no longer exist.
func Write(t *tree.Tree, agent string, k Keys) error {
	data, err := json.Marshal(k)
	if err == nil && len(data) > format.MaxSmall {
		return fmt.Errorf("dismiss for %s: more than %d bytes of keys", agent, format.MaxSmall)
	}
	if err == nil {
		err = t.WriteRun(file(agent), data)
	}
	if err != nil {
		return fmt.Errorf("dismiss for %s: %w", agent, err)
	}
	return nil
}

// Has reports whether the key is among the keys.
func (k Keys) Has(key string) bool { return slices.Contains(k, key) }

func file(agent string) string { return format.DismissedDir + "/" + agent }
