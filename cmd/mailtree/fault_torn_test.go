package main

import (
	"os"
	"path/filepath"
	"testing"

	"mailtree/fixtures/inmemory"
)

// TestFaultTornJournal checks that journal records are valid even if they follow an incomplete line. If a server is
// killed while it writes a record, it leaves an incomplete line.
func TestFaultTornJournal(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.start()
	s := &steps{load: newLoad(t, d), n: 1}
	s.must(sendThree(s))
	d.kill()
	f, err := os.OpenFile(filepath.Join(d.tree(), ".mailtree", "journal"), os.O_WRONLY|os.O_APPEND, 0)
	s.must(err)
	_, err = f.WriteString(`0123456789abcdef {"group":17`)
	s.must(err)
	s.must(f.Close())
	d.start()
	s.n = 2
	_, err = d.verb("die", "at", "10") // at this step, two of five files have been renamed
	s.must(err)
	if sendThree(s) == nil {
		t.Fatal("the server did not die")
	}
	d.cmd.Wait()
	d.gone()
	d.start()
	if n := lookSent(s); n != 5 && n != 0 {
		t.Errorf("%d of 5 files are there", n)
	}
	d.check(s.ledger)
}
