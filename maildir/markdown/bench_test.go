package markdown

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// BenchmarkRender measures the conversion of a body to HTML. The page converts the body of each message that it shows.
func BenchmarkRender(b *testing.B) {
	body := ordinary(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		Render(body)
	}
}

// BenchmarkHostile measures rendering bodies of Limit bytes that are designed to be slow.
func BenchmarkHostile(b *testing.B) {
	bodies := hostile(Limit)
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Render(bodies[name])
			}
		})
	}
}

// BenchmarkFirstHeading measures FirstHeading, which runs when a message without a subject is ingested.
func BenchmarkFirstHeading(b *testing.B) {
	body := ordinary(b)
	b.ReportAllocs()
	for b.Loop() {
		FirstHeading(body)
	}
}

// BenchmarkPlainText measures how long it takes to extract an excerpt.
func BenchmarkPlainText(b *testing.B) {
	body := ordinary(b)
	b.ReportAllocs()
	for b.Loop() {
		PlainText(body)
	}
}

func ordinary(b *testing.B) string {
	b.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "message.txtar"))
	if err != nil {
		b.Fatal(err)
	}
	return string(part(txtar.Parse(data), "body.md"))
}
