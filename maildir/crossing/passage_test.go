package crossing

import "testing"

// TestFinishWhilePlanning checks that Finish pokes the carrier if Plan is still running. If Plan has already read
// p.left as false, Plan does not poke the carrier itself.
func TestFinishWhilePlanning(t *testing.T) {
	c := &Carrier{bell: make(chan struct{}, 1)}
	p := &Passage{c: c}
	p.mu.Lock()
	if queued := p.Finish(t.Context(), nil); queued != nil {
		t.Errorf("Finish returned %v while the plan was running", queued)
	}
	select {
	case <-c.bell:
	default:
		t.Error("Finish did not poke the carrier, so the message would wait for the next one")
	}
}
