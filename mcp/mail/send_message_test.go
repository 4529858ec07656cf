package mail

import (
	"encoding/json"
	"testing"

	"mailtree/mcp/tool"
)

func TestImageNotes(t *testing.T) {
	for _, tt := range []struct {
		body string
		want int
	}{
		{"![diagram](docs/flow.png)", 1}, {"![](<my flow.png>)", 1}, {`![a](x.png "title")`, 1}, {"![d](data:image/png;base64,AAAA)", 1},
		{"![d](https://example.org/x.png)", 0}, {"[link](docs/flow.png)", 0}, {"none", 0},
	} {
		for _, ask := range []string{"true", "false"} {
			a := tool.DecodeArgs("send_message", json.RawMessage(`{"project_key":"p","from_agent":"A","to":"B","subject":"","body_md":"","convert_images":`+ask+`}`), New(tool.Config{}).sendMessage().In)
			want := tt.want
			if ask == "false" {
				want = 0
			}
			if got := len(imageNotes(a, tt.body)); got != want || a.Err() != nil {
				t.Errorf("%s (convert_images %s): %d notes, want %d (%v)", tt.body, ask, got, want, a.Err())
			}
		}
	}
}
