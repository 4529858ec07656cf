//go:build !linux

package spool

import (
	"errors"
	"os"
)

// withoutName returns errors.ErrUnsupported.
func withoutName(string) (*os.File, error) { return nil, errors.ErrUnsupported }
