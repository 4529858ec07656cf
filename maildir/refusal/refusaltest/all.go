// Package refusaltest finds every refusal in the program, so that tests can check all sentences.
package refusaltest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mailtree/maildir/refusal"
)

// makers are the functions that create a What from text.
var makers = map[string]func(text string) refusal.What{
	"NotFound":    refusal.NotFound,
	"Exists":      refusal.Exists,
	"Invalid":     refusal.Invalid,
	"Conflict":    refusal.Conflict,
	"Denied":      refusal.Denied,
	"TooLarge":    refusal.TooLarge,
	"Unavailable": refusal.Unavailable,
	"Note":        refusal.Note,
}

// least is the minimum number of sentences that All must find. If All finds fewer, its search is broken.
const least = 180

// All returns every What that the program's source code creates outside of tests. If a What is not created from a
// string literal, the test fails.
func All(t testing.TB) []refusal.What {
	t.Helper()
	var all []refusal.What
	root := top(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || strings.HasSuffix(d.Name(), "test")):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || maker(file, call.Fun) == nil {
				return true
			}
			text, ok := literal(call.Args[0])
			if !ok {
				t.Errorf("%s: the text is not a string literal", files.Position(call.Pos()))
			}
			all = append(all, maker(file, call.Fun)(text))
			return true
		})
		return nil
	})
	if err != nil || len(all) < least {
		t.Fatalf("%d sentences found, at least %d expected: %v", len(all), least, err)
	}
	return all
}

// top returns the path of the module's folder.
func top(t testing.TB) string {
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatalf("no go.mod above the test: %v", err)
	return ""
}

// maker returns the maker that a call refers to, or nil if the called function is not a maker.
func maker(file *ast.File, called ast.Expr) func(string) refusal.What {
	switch called := called.(type) {
	case *ast.SelectorExpr:
		if of, ok := called.X.(*ast.Ident); ok && of.Name == "refusal" {
			return makers[called.Sel.Name]
		}
	case *ast.Ident:
		if file.Name.Name == "refusal" {
			return makers[called.Name]
		}
	}
	return nil
}

// literal returns the text of a string literal, or of several joined literals. ok is false for any other expression.
func literal(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, isLeft := literal(e.X)
		right, isRight := literal(e.Y)
		return left + right, isLeft && isRight
	}
	return "", false
}
