package plugin

import (
	"bytes"
	"encoding/json"
)

// This file defines the manifests, in the form that each client requires.

// schemas is the base URL of the JSON schemas of Agent Plugins.
const schemas = "https://agent-plugins.org/schemas/1.0.0/"

type author struct {
	Name string `json:"name"`
}

// authors is the owner of the plugins, as in the LICENSE file.
var authors = author{"The mailtree authors"}

// manifest describes a plugin. It contains the fields that Claude Code, Codex, Copilot CLI and Agent Plugins have in
// common.
type manifest struct {
	Schema      string  `json:"$schema,omitempty"`
	Name        string  `json:"name"`
	Version     string  `json:"version"`
	Description string  `json:"description"`
	Author      *author `json:"author,omitempty"`
	Homepage    string  `json:"homepage,omitempty"`
	Repository  string  `json:"repository,omitempty"`
	License     string  `json:"license,omitempty"`
}

func (h home) manifest() manifest {
	return manifest{
		Name:        name,
		Version:     h.Version,
		Description: description,
		Author:      &authors,
		Homepage:    h.Repository,
		Repository:  h.Repository,
		License:     license,
	}
}

// portable returns the manifest in the form of Agent Plugins 1.0.
func (h home) portable() manifest {
	m := h.manifest()
	m.Schema = schemas + "plugin.schema.json"
	return m
}

// marketplace is a list of plugins in the form that Claude Code and Copilot CLI use.
type marketplace struct {
	Name     string   `json:"name"`
	Owner    author   `json:"owner"`
	Metadata metadata `json:"metadata"`
	Plugins  []listed `json:"plugins"`
}

type metadata struct {
	Description string `json:"description"`
}

type listed struct {
	Name        string `json:"name"`
	Source      string `json:"source"`
	Description string `json:"description"`
}

func (h home) marketplace(client string) marketplace {
	return marketplace{
		Name:     name,
		Owner:    authors,
		Metadata: metadata{description},
		Plugins:  []listed{{Name: name, Source: "./" + folder(client), Description: description}},
	}
}

// codexManifest is a manifest that also specifies how Codex displays the plugin.
type codexManifest struct {
	manifest
	Interface codexFace `json:"interface"`
}

type codexFace struct {
	DisplayName      string `json:"displayName"`
	ShortDescription string `json:"shortDescription"`
	DeveloperName    string `json:"developerName"`
	Category         string `json:"category"`
}

const codexCategory = "Productivity"

func (h home) codexManifest() codexManifest {
	return codexManifest{h.manifest(), codexFace{title, description, authors.Name, codexCategory}}
}

type codexList struct {
	Name      string        `json:"name"`
	Interface codexListFace `json:"interface"`
	Plugins   []codexListed `json:"plugins"`
}

type codexListFace struct {
	DisplayName string `json:"displayName"`
}

type codexListed struct {
	Name     string      `json:"name"`
	Source   codexSource `json:"source"`
	Policy   codexPolicy `json:"policy"`
	Category string      `json:"category"`
}

type codexSource struct {
	Source string `json:"source"`
	Path   string `json:"path"`
}

type codexPolicy struct {
	Installation   string `json:"installation"`
	Authentication string `json:"authentication"`
}

func codexMarketplace() codexList {
	return codexList{
		Name:      name,
		Interface: codexListFace{title},
		Plugins: []codexListed{{
			Name:     name,
			Source:   codexSource{"local", "./" + folder("codex")},
			Policy:   codexPolicy{"AVAILABLE", "ON_INSTALL"},
			Category: codexCategory,
		}},
	}
}

// extension is the manifest of the extension for Gemini CLI, or for Qwen Code.
type extension struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	Servers     json.RawMessage `json:"mcpServers"`
	Hooks       string          `json:"hooks,omitempty"`
}

func (h home) extension(client, hooks string) (extension, error) {
	s, err := h.servers(client)
	return extension{name, h.Version, description, s.Servers, hooks}, err
}

// module is the package.json of the plugin for opencode.
type module struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description"`
	License     string `json:"license"`
	Repository  string `json:"repository,omitempty"`
	Type        string `json:"type"`
	Main        string `json:"main"`
}

func (h home) module() module {
	return module{
		Name:        name + "-opencode",
		Version:     h.Version,
		Description: description,
		License:     license,
		Repository:  h.Repository,
		Type:        "module",
		Main:        "index.js",
	}
}

// encode encodes a value as the content of a JSON file, formatted like the clients' own files.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
