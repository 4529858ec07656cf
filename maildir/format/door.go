package format

import (
	"context"
	"crypto/rand"
)

// Channels through which messages and requests reach a server.
const (
	DoorHTTP    = "http"    // MCP over TCP
	DoorStdio   = "stdio"   // MCP over the store's socket, which `mailtree stdio` uses
	DoorCLI     = "cli"     // a command in a shell
	DoorPage    = "page"    // a web page
	DoorGateway = "gateway" // email from another domain
	DoorFile    = "file"    // a file saved in the sender's outbox
)

// doors lists all channels that a message can have, in the order that error messages use.
var doors = []string{DoorHTTP, DoorStdio, DoorCLI, DoorPage, DoorGateway, DoorFile}

type doorKey struct{}

// Through returns a copy of ctx that contains the given channel. The history records the channel of each operation.
func Through(ctx context.Context, door string) context.Context {
	return context.WithValue(ctx, doorKey{}, door)
}

// DoorOf returns the channel in ctx, or "" if ctx is nil or contains none.
func DoorOf(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	door, _ := ctx.Value(doorKey{}).(string)
	return door
}

type stepKey struct{}

// InStep returns a copy of ctx in which all operations belong to the given step. One undo reverts a whole step. The
// argument step is a unique string, or "" for no step.
func InStep(ctx context.Context, step string) context.Context {
	return context.WithValue(ctx, stepKey{}, step)
}

// StepOf returns the step in ctx, or "" if ctx is nil or contains none.
func StepOf(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	step, _ := ctx.Value(stepKey{}).(string)
	return step
}

// NewStep returns a unique string for InStep.
func NewStep() string { return rand.Text()[:13] }
