package page_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/page"
)

// TestBrowserHits checks that the list of hits stays next to an opened hit, and that j and k open the next and the
// previous hit. If the server refuses a query, the reason must appear below the search field. The page must not say
// that the server is not responding.
func TestBrowserHits(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	for _, subject := range []string{"Zebra one", "Horse", "Zebra two", "Zebra three"} {
		s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: subject, Body: "b"})
	}
	b := s.tab()
	b.enter()
	shows := func(hit string) chromedp.Action {
		return chromedp.Tasks{chromedp.WaitVisible(`//div[@class="scroll"]//h1[contains(., "` + hit + `")]`), ready}
	}
	b.must("search", press("/"), chromedp.SendKeys(`#find`, "zebra\r"), said("h1", "3 messages"), ready, chromedp.Blur(`#find`))
	b.must("open the first", press("o"), shows("Zebra three"))
	b.must("go on", press("j"), shows("Zebra two"), press("j"), shows("Zebra one"))
	b.must("stop at the end", press("j"), said("p", "This is the last one."))
	b.must("go back by one", press("k"), shows("Zebra two"))
	b.expect("Zebra three,Zebra two,Zebra one", `[...document.querySelectorAll(".list .what")].map(e => e.textContent).join()`)
	b.must("go back to the hits", press("u"), said("h1", "3 messages"), ready)

	b.visit("/search?q=importance:x")
	b.expect("true", `String(document.querySelector(".list .note").textContent.length > 10)`)
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "News", Body: "b"})
	b.await(`document.querySelector("#menu b")?.textContent === "2"`)
	b.expect("true", `String(document.getElementById("stale").hidden)`)
}

// TestBrowserLoads checks that a view is loaded once, compressed, and is loaded again only when mail arrives. This also
// applies to a thread that is marked as read because the user opens it. The browser must not load the style sheet and
// the script again for the next view.
func TestBrowserLoads(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "News", Body: "b"})
	opened := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Horse", Body: "b"})
	var mu sync.Mutex
	loaded := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		loaded[r.URL.Path+" "+strings.Split(r.Header.Get("Accept-Encoding"), ",")[0]]++
		mu.Unlock()
		s.page.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	b := s.tab()
	b.enter()
	b.visit("/thread/" + sent.ID)
	b.must("see that the stream has begun", ready, press("j"), said("p", "This is the last one."))
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Zebra", Body: "b"})
	b.must("see mail arrive", said("a", "Zebra")) // the script loads the view a second time
	times := func(want map[string]int) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		for at, n := range want {
			if got := loaded[at+" gzip"]; got != n {
				t.Errorf("%s was loaded %d times: %v", at, got, loaded)
			}
		}
	}
	// Check this before opening the next thread. Opening it marks mail as read, which may make the browser load the
	// current view again.
	times(map[string]int{s.base + "/": 1, s.base + "/thread/" + sent.ID: 2})
	b.must("open another", chromedp.Click(`//main//a[contains(., "Horse")]`), said("h1", "Horse"), ready)
	b.expect("", `document.querySelector(".list .open.unread")?.textContent || ""`)
	waits.Until(t, "the stream of the thread has begun", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return loaded[s.base+"/stream gzip"] == 3
	})
	s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Yak", Body: "b"})
	b.must("see mail arrive", said("a", "Yak"))
	times(map[string]int{s.base + "/thread/" + opened.ID: 2, "/static/style.css": 1, "/static/script.js": 1})
	if res, _ := s.browser().get(s.base + "/"); !res.Uncompressed {
		t.Error("a view is not compressed")
	}
	res, _ := s.browser().get("/static/script.js")
	if keeps := res.Header.Get("Cache-Control"); res.StatusCode != http.StatusOK || keeps != "no-cache" {
		t.Errorf("without a version, the script is kept: %q", keeps)
	}
}

// TestBrowserUndo checks that each press of z undoes one more action, and that the focus returns to the row of the
// message.
func TestBrowserUndo(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{})
	for _, subject := range []string{"Three", "Two", "One"} {
		s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: subject, Body: "b"})
	}
	b := s.tab()
	b.hold()
	b.enter()
	b.must("be done with one", press("j"), press("e"), chromedp.WaitVisible(`//*[contains(@class, "done")]//bdi[. = "One"]`), ready)
	b.must("be done with two", press("e"), chromedp.WaitVisible(`//*[contains(@class, "done")]//bdi[. = "Two"]`), ready)
	for _, subject := range []string{"Two", "One"} {
		b.must("undo", press("z"), said("p", "Undone: "+subject), ready)
		b.await(focused + ` === "` + subject + `"`)
	}
	b.must("undo once more", press("z"), said("p", "Nothing left to undo."))
	b.expect("One,Two,Three", `[...document.querySelectorAll(".list .what")].map(e => e.textContent).join()`)
}
