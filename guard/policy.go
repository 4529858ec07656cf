package guard

import (
	"fmt"
	"strings"

	"mailtree/maildir/refusal"
)

// policy contains the guard's settings from the environment.
type policy struct {
	mode    string // block, warn or off
	sure    bool   // whether the environment sets mode
	unknown string // block or warn
	bypass  bool
}

// stops reports whether other agents' claims stop the agent's change. If not, the claims only cause a warning.
func (p policy) stops(who identity) bool {
	return p.mode == "block" && (who.name != "" || p.unknown == "block")
}

// readPolicy reads GUARD_UNKNOWN, GUARD_BYPASS, and the variable named by mode. It returns ErrInvalid for an invalid
// value.
func readPolicy(env []string, mode string) (p policy, err error) {
	p.mode, p.sure, err = choice(env, mode, "block", "warn", "off")
	if err != nil {
		return p, err
	}
	if p.unknown, _, err = choice(env, "GUARD_UNKNOWN", "block", "warn"); err != nil {
		return p, err
	}
	bypass, _, err := choice(env, "GUARD_BYPASS", "0", "1")
	p.bypass = bypass == "1"
	return p, err
}

// choice returns a variable's value. If the variable is empty or not set, choice returns the first allowed value.
func choice(env []string, name string, allowed ...string) (v string, set bool, err error) {
	if v = lookup(env, name); v == "" {
		return allowed[0], false, nil
	}
	for _, a := range allowed {
		if v == a {
			return v, true, nil
		}
	}
	return "", false, &refusal.Own{Kind: refusal.ErrInvalid,
		Text: fmt.Sprintf("%s is %q, but must be %s (default: %s)", name, v, strings.Join(allowed, " or "), allowed[0])}
}

// lookup returns the value of a variable. If the variable is set several times, lookup returns the last value, because
// a child process sees that value.
func lookup(env []string, name string) (value string) {
	for _, e := range env {
		if k, v, _ := strings.Cut(e, "="); k == name {
			value = v
		}
	}
	return value
}
