package tool

import (
	"context"

	"mailtree/maildir"
)

type roomKey struct{}

// WithRoom puts into ctx what a call asks before it waits for mail: room counts the call as a waiting one from then on, or
// returns the error to refuse it with.
func WithRoom(ctx context.Context, room func() error) context.Context {
	return context.WithValue(ctx, roomKey{}, room)
}

// Waiting is how a call waits for mail: where WithRoom has room for it, until the server stops.
func Waiting(ctx context.Context, stopping <-chan struct{}) maildir.Waiting {
	room, _ := ctx.Value(roomKey{}).(func() error)
	return maildir.Waiting{Room: room, Until: stopping}
}
