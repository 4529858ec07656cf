package format

import (
	"context"
	"crypto/rand"
)

// The doors of a server: the ways by which mail reaches it.
const (
	DoorHTTP    = "http"    // MCP over TCP
	DoorStdio   = "stdio"   // MCP over the store's socket, where the bridge of `mailtree stdio` connects
	DoorCLI     = "cli"     // a command line
	DoorPage    = "page"    // a web page
	DoorGateway = "gateway" // from another domain
	DoorFile    = "file"    // a file saved in the sender's outbox
)

// doors lists all doors in the order that an error message gives them.
var doors = []string{DoorHTTP, DoorStdio, DoorCLI, DoorPage, DoorGateway, DoorFile}

type doorKey struct{}

// Through returns a ctx whose operations the history records under the given door.
func Through(ctx context.Context, door string) context.Context {
	return context.WithValue(ctx, doorKey{}, door)
}

// DoorOf returns the door of ctx; "" if it has none or if ctx is nil.
func DoorOf(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	door, _ := ctx.Value(doorKey{}).(string)
	return door
}

type stepKey struct{}

// InStep returns a ctx whose operations are one step: one undo takes all of them back. step is a word that no
// other step has; "" for none.
func InStep(ctx context.Context, step string) context.Context {
	return context.WithValue(ctx, stepKey{}, step)
}

// StepOf returns the step of ctx; "" if it has none or if ctx is nil.
func StepOf(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	step, _ := ctx.Value(stepKey{}).(string)
	return step
}

// NewStep returns a word for InStep.
func NewStep() string { return rand.Text()[:13] }
