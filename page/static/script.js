// Swaps what has changed, keeps drafts, and knows the keys. Every view works without it.
"use strict";
(() => {
  const stale = document.getElementById("stale");
  const say = (text) => { stale.textContent = text; stale.hidden = !text; };

  // Live: the stream tells that something changed; the server renders the view again.
  // What only grows older is no change: times, and the bars of claims. Nor is what was opened here.
  const plain = (e) => e.outerHTML.replace(/<(time|svg)[^]*?<\/\1>| open=""| class="fresh"| fresh(?=")|value="page-\w+"/g, "");
  function grow(old, now) {
    for (const what of ["time", "svg"]) {
      const fresh = [...now.querySelectorAll(what)];
      [...old.querySelectorAll(what)].forEach((e, i) => { if (fresh[i] && fresh[i].outerHTML !== e.outerHTML) e.replaceWith(fresh[i]); });
    }
  }
  const busy = (e) => {
    const s = getSelection();
    return e.querySelector("details[open]") || (e.contains(document.activeElement) && document.activeElement.matches("input,textarea,select")) ||
      (!s.isCollapsed && e.contains(s.anchorNode));
  };
  let running = false, again = false, tick = "1";
  async function refresh(force) {
    if (running) { again = true; return; }
    running = true;
    try {
      const res = await fetch(location.href, { headers: { "Mailtree-Fragment": tick } });
      if (!res.ok) throw new Error(res.status);
      const fresh = new DOMParser().parseFromString(await res.text(), "text/html");
      let held = false, news = 0;
      for (const old of document.querySelectorAll("[data-live]")) {
        const now = fresh.getElementById(old.id);
        if (!now) continue;
        if (plain(now) === plain(old)) { grow(old, now); continue; }
        if (!force && old.id !== "menu" && (busy(old) || (scrollY > 100 && !old.querySelector("article")))) { held = true; news += added(old, now); continue; }
        swap(old, now);
      }
      held ? offer(news) : say("");
    } catch { say("This page is stale: the server does not answer."); }
    running = false;
    if (again) { again = false; setTimeout(refresh, 1000); }
  }
  const places = (e) => [...e.querySelectorAll("li,article,tr")];
  function swap(old, now) {
    const before = new Set(places(old).map(plain));
    const link = document.activeElement && old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    old.replaceWith(now);
    if (before.size && old.id !== "menu") for (const e of places(now)) if (!before.has(plain(e))) e.classList.add("fresh");
    if (link) [...now.querySelectorAll("a")].find((a) => a.getAttribute("href") === link)?.focus({ preventScroll: true });
  }
  const name = (e) => e.id || e.querySelector("a")?.getAttribute("href");
  function added(old, now) {
    const before = new Set(places(old).map(name));
    return places(now).filter((e) => !before.has(name(e))).length;
  }
  function offer(n) {
    say(n ? n + " new. " : "Something has changed. ");
    const b = document.createElement("button");
    b.textContent = "Show it";
    b.onclick = () => { tick = "1"; refresh(true); };
    stale.append(b);
  }
  const url = document.body.dataset.stream;
  if (url) {
    let heard = Date.now(), source;
    const listen = () => {
      source = new EventSource(url);
      source.onopen = () => { heard = Date.now(); tick = "1"; refresh(); };
      source.addEventListener("change", (e) => { heard = Date.now(); tick = e.data; refresh(); });
      source.addEventListener("beat", () => { heard = Date.now(); });
      source.onerror = () => {
        say("This page is stale since " + new Date(heard).toLocaleTimeString() + ": the server does not answer. It tries again.");
        if (source?.readyState === EventSource.CLOSED) setTimeout(() => source && listen(), 3000);
      };
    };
    if (!document.hidden) listen();
    setInterval(() => { if (source) { tick = "1"; refresh(); } }, 60000); // times grow, and claims end, with no event
    // A browser has six connections to a host: a tab that nobody sees gives its own up.
    const shut = () => { source?.close(); source = null; };
    addEventListener("pagehide", shut);
    addEventListener("pageshow", (e) => { if (e.persisted && !source) listen(); });
    document.addEventListener("visibilitychange", () => { document.hidden ? shut() : source || listen(); });
    setInterval(() => { if (source && Date.now() - heard > 60000) { source.close(); heard = Date.now(); listen(); } }, 15000);
  }

  // Drafts: kept in the browser until the message was sent.
  for (const form of document.querySelectorAll("form[data-draft]")) {
    const name = "mailtree draft " + location.pathname.split("/")[2] + " " + form.dataset.draft;
    const fields = [...form.elements].filter((e) => e.name && e.type !== "hidden");
    try {
      const kept = JSON.parse(localStorage.getItem(name) || "{}");
      if (new URLSearchParams(location.search).has("sent") && !kept.open) localStorage.removeItem(name);
      else for (const e of fields) if (kept[e.name] && !(e.value && e.name === "to")) e.type === "checkbox" ? (e.checked = true) : (e.value = kept[e.name]);
    } catch { localStorage.removeItem(name); }
    form.addEventListener("input", () => {
      const kept = {};
      for (const e of fields) if (e.type === "checkbox" ? e.checked : e.value) kept[e.name] = e.value;
      localStorage.setItem(name, JSON.stringify(kept));
    });
    form.addEventListener("submit", () => sessionStorage.setItem("mailtree sending", name));
  }
  const sending = sessionStorage.getItem("mailtree sending");
  if (sending && new URLSearchParams(location.search).has("sent")) {
    localStorage.removeItem(sending);
    sessionStorage.removeItem("mailtree sending");
    history.replaceState(null, "", location.pathname + location.hash);
    for (const e of document.querySelectorAll("form[data-draft] textarea")) e.value = "";
  }

  // What was done is said once: not again when the view is loaded again.
  if (document.querySelector(".done")) history.replaceState(null, "", location.pathname + location.hash);

  // Keys, never with Ctrl, Alt or Cmd.
  const stops = () => [...document.querySelectorAll("main a.row, main article.message")];
  let at = -1, went = 0;
  function move(by) {
    const all = stops();
    if (!all.length) return;
    at = Math.max(0, Math.min(all.length - 1, (at < 0 && by < 0 ? all.length : at) + by));
    all[at].focus();
    all[at].scrollIntoView({ block: "nearest" });
  }
  const here = () => document.activeElement?.closest("article.message, li") || stops().at(-1) || document;
  const keys = {
    j: () => move(1),
    k: () => move(-1),
    o: () => document.activeElement?.matches("a.row") && document.activeElement.click(),
    r: () => document.getElementById("reply-body")?.focus(),
    e: () => (here().querySelector("[data-done]") || document.querySelector("[data-done]"))?.click(),
    "/": () => document.getElementById("find")?.focus(),
    "?": () => { const k = document.getElementById("keys"); k.open = !k.open; k.scrollIntoView(); },
    g: () => { went = Date.now(); },
    i: () => { if (Date.now() - went < 1500 && url) location.href = url.replace(/stream$/, "inbox"); },
  };
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input,textarea,select") || !keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  });
})();
