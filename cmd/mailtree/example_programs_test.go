package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestExamplePrograms runs the programs in examples/ as the scripts in fixtures/examples describe. The programs that
// use an MCP SDK need the packages that .ci/campaign installs beside the clients' folder: node_modules and python.
func TestExamplePrograms(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	p := scripts
	p.Dir = "../../fixtures/examples"
	p.Setup = func(env *testscript.Env) error {
		env.Setenv("EXAMPLES", examples)
		env.Setenv("README", filepath.Join(examples, "../fixtures/examples/readme.sh"))
		env.Setenv("SDKS", filepath.Join(os.Getenv(clientsEnv), "../.."))
		return setupScript(env)
	}
	runScripts(t, p)
}
