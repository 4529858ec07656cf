package format

import "context"

// The doors of a server: through what it gets mail.
const (
	DoorHTTP    = "http"    // MCP over TCP
	DoorStdio   = "stdio"   // MCP over the store's socket, which is where the bridge of `mailtree stdio` comes
	DoorCLI     = "cli"     // a command line
	DoorPage    = "page"    // a web page
	DoorGateway = "gateway" // from another domain
	DoorFile    = "file"    // a file saved in the sender's outbox
)

// doors are all of them, as the sentence about another one lists them.
var doors = []string{DoorHTTP, DoorStdio, DoorCLI, DoorPage, DoorGateway, DoorFile}

type doorKey struct{}

// Through says that the operations of ctx come through a door, for the history.
func Through(ctx context.Context, door string) context.Context {
	return context.WithValue(ctx, doorKey{}, door)
}

// DoorOf is the door of the operations of ctx; "" where nobody said, and for no ctx.
func DoorOf(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	door, _ := ctx.Value(doorKey{}).(string)
	return door
}
