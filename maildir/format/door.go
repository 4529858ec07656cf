package format

import (
	"context"
	"crypto/rand"
)

// The channels through which messages and requests reach a server.
const (
	DoorHTTP    = "http"    // MCP over TCP
	DoorStdio   = "stdio"   // MCP over the store's socket, to which `mailtree stdio` connects
	DoorCLI     = "cli"     // a command line
	DoorPage    = "page"    // a web page
	DoorGateway = "gateway" // email from another domain
	DoorFile    = "file"    // a file saved in the sender's outbox
)

// doors lists all channels, in the order that error messages use.
var doors = []string{DoorHTTP, DoorStdio, DoorCLI, DoorPage, DoorGateway, DoorFile}

type doorKey struct{}

// Through returns a ctx that contains the given channel. The history records the channel of each operation.
func Through(ctx context.Context, door string) context.Context {
	return context.WithValue(ctx, doorKey{}, door)
}

// DoorOf returns the channel in ctx, or "" if ctx has none or is nil.
func DoorOf(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	door, _ := ctx.Value(doorKey{}).(string)
	return door
}

type stepKey struct{}

// InStep returns a ctx whose operations form a single step, which one undo reverts as a whole. step is a unique word,
// or "" for no step.
func InStep(ctx context.Context, step string) context.Context {
	return context.WithValue(ctx, stepKey{}, step)
}

// StepOf returns the step in ctx, or "" if ctx has none or is nil.
func StepOf(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	step, _ := ctx.Value(stepKey{}).(string)
	return step
}

// NewStep returns a unique word for InStep.
func NewStep() string { return rand.Text()[:13] }
