package sending

import (
	"reflect"
	"testing"

	"mailtree/maildir/format"
)

// TestDraftFields checks that every field that a draft and a message have in common, by name and type, is copied in
// both directions.
func TestDraftFields(t *testing.T) {
	values := map[reflect.Kind]any{reflect.String: "text", reflect.Bool: true, reflect.Slice: []string{"text"}}
	var said format.Message
	var common []string
	draft := reflect.TypeFor[Draft]()
	for f := range reflect.TypeFor[format.Message]().Fields() {
		if d, ok := draft.FieldByName(f.Name); ok && len(d.Index) == 1 && d.Type == f.Type {
			common = append(common, f.Name)
			reflect.ValueOf(&said).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(values[f.Type.Kind()]))
		}
	}
	if len(common) < 12 {
		t.Fatalf("a draft and a message only have %v in common", common)
	}
	d := &Draft{}
	d.FillFrom(&said)
	sent := (&Order{Draft: *d}).Message("project", nil)
	for _, name := range common {
		want := reflect.ValueOf(said).FieldByName(name).Interface()
		if got := reflect.ValueOf(*d).FieldByName(name).Interface(); !reflect.DeepEqual(got, want) {
			t.Errorf("FillFrom: %s is %v, want %v", name, got, want)
		}
		if got := reflect.ValueOf(sent).FieldByName(name).Interface(); !reflect.DeepEqual(got, want) {
			t.Errorf("Message: %s is %v, want %v", name, got, want)
		}
	}
}
