package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// formula writes the Homebrew formula, which must be published as Formula/mailtree.rb in the tap's repository.
func (e *edition) formula() error {
	data, err := e.fromTemplate("mailtree.rb", e)
	if err != nil {
		return err
	}
	return e.write("mailtree.rb", data)
}

// installer writes the install script, which contains the archives' checksums.
func (e *edition) installer() error {
	data, err := e.fromTemplate("install.sh", e)
	if err != nil {
		return err
	}
	return e.write("install.sh", data)
}

// registry writes the entry for the MCP registry, which is server.json with the version and the packages added.
func (e *edition) registry() error {
	data, err := os.ReadFile(filepath.Join(e.dist, "..", "server.json"))
	if err != nil {
		return err
	}
	var entry map[string]any
	if err := json.Unmarshal(data, &entry); err != nil {
		return fmt.Errorf("server.json: %w", err)
	}
	if entry["name"] != e.Registry {
		return errors.New("the name in server.json differs from release/home: run go -C release run ./apply")
	}
	version, err := pythonVersion(e.Version)
	if err != nil {
		return err
	}
	entry["version"] = e.Version
	stdio := map[string]string{"type": "stdio"}
	arguments := []map[string]string{{"type": "positional", "value": "stdio"}}
	entry["packages"] = []map[string]any{
		{"registryType": "npm", "identifier": e.NPM, "version": e.Version, "transport": stdio, "packageArguments": arguments},
		{"registryType": "pypi", "identifier": e.PyPI, "version": version, "transport": stdio, "packageArguments": arguments},
	}
	data, err = json.MarshalIndent(entry, "", "  ")
	if err != nil {
		return err
	}
	return e.write("server.json", append(data, '\n'))
}
