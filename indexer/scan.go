package indexer

import (
	"context"
	"strings"
	"time"
)

// scanner reads the columns of a row.
type scanner = func(into ...any) error

// list runs a query and returns its rows. If there are no rows, it returns an empty slice. The function scan fills in
// one row.
func list[T any](ctx context.Context, from reader, text string, args []any, scan func(scan scanner, row *T) error) ([]T, error) {
	all := []T{}
	err := from.each(ctx, text, args, func(columns scanner) error {
		var row T
		err := scan(columns, &row)
		all = append(all, row)
		return err
	})
	return all, err
}

// column runs a query with one column and returns its values.
func column[T any](ctx context.Context, from reader, text string, args ...any) ([]T, error) {
	return list(ctx, from, text, args, func(scan scanner, value *T) error { return scan(value) })
}

// one scans the only row of a query into the given variables. If there is no row, they stay unchanged.
func one(ctx context.Context, from reader, text string, args []any, into ...any) error {
	return from.each(ctx, text, args, func(scan scanner) error { return scan(into...) })
}

// instant scans a time in microseconds. NULL is the zero time.
type instant struct{ t *time.Time }

func (i instant) Scan(us any) error {
	*i.t = time.Time{}
	if us, ok := us.(int64); ok {
		*i.t = time.UnixMicro(us).UTC()
	}
	return nil
}

// micros returns a time as a column stores it: NULL for the zero time.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// names scans a list of names separated by spaces.
type names struct{ list *[]string }

func (n names) Scan(text any) error {
	joined, _ := text.(string)
	*n.list = strings.Fields(joined)
	return nil
}
