// Package dismissed remembers which diagnostics of a project each user has dismissed, so that they are no longer
// listed as waiting for that user. If the same problem happens again, it causes a new diagnostic. Dismissals are
// run-time state: they are not part of the history, and other machines do not see them.
package dismissed

import (
	"encoding/json"
	"fmt"
	"slices"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Keys contains keys that identify diagnostics.
type Keys []string

// Read returns the keys of the diagnostics that an agent has dismissed. If the file is missing or cannot be used, Read
// returns nil. It returns an error only for a machine fault.
func Read(t *tree.Tree, agent string) (Keys, error) {
	data, _, err := t.Read(file(agent), format.MaxSmall)
	switch tree.FaultOf(err) {
	case tree.FaultGone, tree.FaultFile:
		return nil, nil
	case tree.FaultMachine:
		return nil, fmt.Errorf("cannot read the diagnostics that %s has dismissed: %w", agent, err)
	}
	var k Keys
	if json.Unmarshal(data, &k) != nil {
		return nil, nil
	}
	return k, nil
}

// Write replaces the keys of the diagnostics that an agent has dismissed. The caller must omit the keys of
// diagnostics that no longer exist.
func Write(t *tree.Tree, agent string, k Keys) error {
	data, err := json.Marshal(k)
	if err == nil && len(data) > format.MaxSmall {
		return fmt.Errorf("cannot save the diagnostics that %s has dismissed: the list is over the limit of %d bytes",
			agent, format.MaxSmall)
	}
	if err == nil {
		err = t.WriteRun(file(agent), data)
	}
	if err != nil {
		return fmt.Errorf("cannot save the diagnostics that %s has dismissed: %w", agent, err)
	}
	return nil
}

// Has reports whether k contains key.
func (k Keys) Has(key string) bool { return slices.Contains(k, key) }

func file(agent string) string { return format.DismissedDir + "/" + agent }
