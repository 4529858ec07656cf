package main

import "fmt"

// bundles writes an MCPB bundle for each macOS and Linux archive. A bundle's manifest cannot specify a processor, so
// each processor needs a separate bundle.
func (e *edition) bundles() error {
	for _, a := range e.Archives {
		if a.OS != "darwin" && a.OS != "linux" {
			continue
		}
		manifest, err := e.fromTemplate("mcpb.json", struct {
			*edition
			OS string
		}{e, a.OS})
		if err != nil {
			return err
		}
		data, err := zipped(append([]file{{"manifest.json", 0o644, manifest}, {"server/mailtree", 0o755, a.program}}, a.legal...), e.Date)
		if err != nil {
			return err
		}
		if err := e.write(fmt.Sprintf("mailtree_%s_%s_%s.mcpb", e.Version, a.OS, a.Arch), data); err != nil {
			return err
		}
	}
	return nil
}
