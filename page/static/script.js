"use strict";
(() => {
  const $ = (what, of = document) => of.querySelector(what);
  const $$ = (what, of = document) => [...of.querySelectorAll(what)];
  const recall = (key) => JSON.parse(sessionStorage.getItem(key) || "[]"), store = (key, is) => sessionStorage.setItem(key, JSON.stringify(is));
  const stale = $("#stale");
  const say = (text) => { stale.textContent = text; stale.hidden = !text; };
  const asks = new URLSearchParams(location.search), did = asks.get("did");

  // Live updates: the stream reports a change, and the server renders the view again. A time that gets older is no
  // change, nor is a part that the user has opened.
  const plain = (e) => e.outerHTML.replace(/<time[^]*?<\/time>| open=""| class="fresh"| fresh(?=")|value="page-\w+"/g, "");
  function grow(old, now) {
    const fresh = $$("time", now);
    $$("time", old).forEach((e, i) => { if (fresh[i] && fresh[i].outerHTML !== e.outerHTML) e.replaceWith(fresh[i]); });
  }
  const typed = "input:not([type=hidden],[type=checkbox]),textarea,select";
  const busy = (e) => {
    const s = getSelection();
    return $("details[open]:not(.fold)", e) || (e.contains(document.activeElement) && document.activeElement.matches(typed)) ||
      (!s.isCollapsed && e.contains(s.anchorNode));
  };
  const scrolled = (e) => Math.max(scrollY, e.closest(".pane")?.scrollTop || 0) > 100 && !$("article", e);
  let appeared = 0; // when something appeared that the user did not open
  let running = false, again = false, tick = "1", away = false;
  async function refresh(force) {
    if (running) { again = true; return; }
    running = true;
    try {
      const res = await fetch(location.href, { headers: { "Mailtree-Fragment": tick } });
      if (res.status >= 500) throw new Error(res.status);
      const fresh = new DOMParser().parseFromString(await res.text(), "text/html");
      let held = false, news = 0;
      for (const old of $$("[data-live]")) {
        const now = fresh.getElementById(old.id);
        if (!now) continue;
        if (plain(now) === plain(old)) { grow(old, now); continue; }
        if (old.id === "reply" && (busy(old) || $("form", old)?.chosen?.length || $("textarea", old)?.value)) continue; // keep what the user is writing
        if (!force && !old.closest(".rail") && (busy(old) || (scrolled(old) && added(old, now)))) { held = true; news += added(old, now); continue; }
        swap(old, now);
      }
      held ? offer(news) : say("");
      document.title = document.title.replace(/^(\(\d+\) )?/, ($("#menu b")?.textContent || "").replace(/.+/, "($&) "));
    } catch { say("The server is not responding."); }
    running = false;
    if (again) { again = false; setTimeout(refresh, 1000); }
  }
  const row = (e) => e?.dataset?.t || e?.getAttribute?.("href") || e?.id;
  const name = (e) => (e.id || row($("a", e)) || $("details", e)?.id) + ($("time", e)?.dateTime || "");
  const places = (e) => $$("li,article,tr", e);
  function added(old, now) {
    const before = new Set(places(old).map(name));
    return places(now).filter((e) => !before.has(name(e)) && !$("[aria-current]", e)).length; // an open thread shows its own news
  }
  function swap(old, now) {
    const before = new Set(places(old).map(name)), f = old.contains(document.activeElement) && document.activeElement;
    const what = f && (f.matches("article") ? "article" : "a"), at = f && $$(what, old).indexOf(f), is = f && (row(f) || name(f));
    for (const e of $$("details[id]", old)) { const n = now.querySelector("#" + CSS.escape(e.id)); if (n) n.open = e.open; }
    const chosen = new Set($$("li:has(:checked) a.row", old).map(row));
    for (const e of $$("a.row", now)) if (chosen.has(row(e))) { const n = pick(e); if (n) n.checked = true; }
    old.replaceWith(now);
    if (before.size && !old.closest(".rail")) for (const e of places(now)) if (!before.has(name(e))) { e.classList.add("fresh"); appeared = Date.now(); }
    if (f) { const all = $$(what, now); (all.find((e) => (row(e) || name(e)) === is) || all[Math.min(at, all.length - 1)])?.focus({ preventScroll: true }); }
  }
  function offer(n) {
    say(n ? n + " new. " : "Something has changed. ");
    stale.append(Object.assign(document.createElement("button"), { textContent: "Show", onclick: () => { tick = "1"; refresh(true); } }));
  }
  const url = document.body.dataset.stream;
  if (url) {
    let heard = Date.now(), source, at = url;
    const back = () => { heard = Date.now(); if (away) { away = false; say(""); } };
    const listen = () => {
      source = new EventSource(at);
      source.onopen = back;
      source.addEventListener("change", (e) => { back(); at = url.replace(/=.*/, "=" + e.lastEventId); tick = e.data; refresh(); });
      source.addEventListener("beat", back);
      source.onerror = () => {
        away = true;
        say("This page has been out of date since " + new Date(heard).toTimeString().slice(0, 5) + ": the server is not responding. Trying again.");
        if (source?.readyState === EventSource.CLOSED) setTimeout(() => source && listen(), 3000);
      };
    };
    if (!document.hidden) listen();
    setInterval(() => { if (source) { tick = "1"; refresh(); } }, 60000); // times change without an event
    // A browser allows six connections to a host, so a hidden tab closes its own.
    const shut = () => { source?.close(); source = null; };
    addEventListener("pagehide", shut);
    addEventListener("pageshow", (e) => { if (e.persisted && !source) listen(); });
    document.addEventListener("visibilitychange", () => { document.hidden ? shut() : source || listen(); });
    setInterval(() => { if (source && Date.now() - heard > 60000) { source.close(); heard = Date.now(); listen(); } }, 15000);
  }

  // Drafts are kept until they are sent. Text from the server takes precedence.
  const place = "mailtree draft " + location.pathname.split("/")[2] + " ";
  const fields = (form) => [...form.elements].filter((e) => e.name && e.type !== "hidden" && e.type !== "file");
  const key = (e) => (e.type === "checkbox" ? e.name + " " + e.value : e.name);
  function keep(form) {
    const kept = {};
    for (const e of fields(form)) if (e.type === "checkbox" ? e.checked !== e.defaultChecked : e.value) kept[key(e)] = e.type === "checkbox" ? e.checked : e.value;
    localStorage.setItem(place + form.dataset.draft, JSON.stringify(kept));
    $(".kept", form).hidden = false;
  }
  const sending = sessionStorage.getItem("mailtree sending");
  if (sending && did === "sent") localStorage.removeItem(sending);
  sessionStorage.removeItem("mailtree sending");
  for (const form of $$("form[data-draft]")) {
    if ($("textarea", form).value) { keep(form); continue; }
    try {
      const kept = JSON.parse(localStorage.getItem(place + form.dataset.draft) || "{}");
      for (const e of fields(form)) if (key(e) in kept && !(e.value && e.name === "to" && form.dataset.draft === "new")) e.type === "checkbox" ? (e.checked = kept[key(e)]) : (e.value = kept[key(e)]);
      $(".kept", form).hidden = !kept.body;
    } catch { localStorage.removeItem(place + form.dataset.draft); }
  }
  document.addEventListener("input", (e) => {
    const to = e.target;
    if (to.list) { // a list completes the whole field
      const before = to.value.slice(0, to.value.lastIndexOf(",") + 1);
      for (const o of to.list.options) { o.dataset.n ||= o.value; o.value = before && before + " " + o.dataset.n || o.dataset.n; }
    }
    if (to.form?.dataset.draft) keep(to.form);
  });
  function discard(e) {
    const form = e.target.closest("form");
    localStorage.removeItem(place + form.dataset.draft);
    if (!$("#thread")) return; // the form is alone, so the link leads to the thread
    e.preventDefault();
    form.reset();
    attach(form, []);
    $("textarea", form).value = "";
    $("#unsent").hidden = $(".kept", form).hidden = true;
  }
  document.addEventListener("submit", (e) => {
    if (away) { e.preventDefault(); say("Not sent: the server is not responding. Your text is kept here."); return; }
    const undone = recall(undos);
    if (e.target.closest(".done") && undone.at(-1) === e.target.action) store(undos, undone.slice(0, -1));
    if (e.target.dataset.draft) sessionStorage.setItem("mailtree sending", place + e.target.dataset.draft);
  });

  // Files are chosen, pasted or dropped. Each is a chip; a click removes it.
  const files = (form) => $("[type=file]", form);
  function attach(form, all) {
    const has = new DataTransfer();
    all.forEach((f) => has.items.add(f));
    files(form).files = has.files;
    $(".files", form).replaceChildren(...all.map((f) => {
      const b = Object.assign(document.createElement("button"), { type: "button", className: "chip", textContent: f.name + " ×", title: "Remove" });
      b.onclick = () => { attach(form, all.filter((o) => o !== f)); files(form).focus(); };
      return b;
    }));
    form.chosen = all;
  }
  document.addEventListener("change", (e) => { if (e.target.type === "file") attach(e.target.form, [...(e.target.form.chosen || []), ...e.target.files]); });
  for (const what of ["paste", "dragover", "drop"]) document.addEventListener(what, (e) => {
    const from = e.clipboardData || e.dataTransfer, form = e.target.closest?.("form[data-draft]") || (what !== "paste" && $("form[data-draft]"));
    if (!form || !from?.types.includes("Files")) return;
    e.preventDefault();
    if (what !== "dragover") attach(form, [...(form.chosen || []), ...from.files]);
  });

  // The bar appears once, for ten seconds and while it has the pointer or the focus.
  // The addresses that undo what this tab did are kept for z.
  const undos = "mailtree undo " + location.pathname.split("/")[2];
  const bar = $(".done");
  if (bar) {
    if (did && did !== "undone" && $("form", bar)) store(undos, [...recall(undos), $("form", bar).action].slice(-50));
    const at = new URL(location.href);
    for (const p of ["did", "of", "readers", "said", "by", "again"]) at.searchParams.delete(p);
    history.replaceState(null, "", at);
    const hide = () => { bar.matches(":hover,:focus-within") ? setTimeout(hide, 10000) : (bar.hidden = true); };
    setTimeout(hide, 10000);
  }

  // The focused row and its neighbors are kept for Back and for when a row is done. So are all rows: after a form, any
  // other row has just appeared.
  const seen = (e) => e.checkVisibility();
  const rows = () => $$("main a.row").filter(seen);
  const pick = (e) => $("[name=message]", e?.closest("li") || stale);
  const memory = "mailtree at " + location.pathname, shown = () => rows().map((e) => row(e) + (pick(e)?.value || ""));
  function mark(at, gone = []) {
    const all = rows(), i = all.indexOf(at);
    store(memory, [...all.slice(i), ...all.slice(0, i).reverse()].filter((e) => !gone.includes(e)).map(row));
  }
  document.addEventListener("focusin", (e) => { if (e.target.matches("a.row")) mark(e.target); });
  const list = $(".pane.list"), far = "mailtree list " + location.pathname.split("/")[2];
  addEventListener("pagehide", () => { if (list) sessionStorage.setItem(far, list.scrollTop); });
  if (list) list.scrollTop = sessionStorage.getItem(far) || 0;
  if (did) { const was = recall("mailtree rows"); if (shown().some((e) => !was.includes(e)) || did === "sent") appeared = Date.now(); }
  addEventListener("pagehide", () => store("mailtree rows", shown()));
  if (performance.getEntriesByType("navigation")[0]?.type === "back_forward" || bar) {
    const all = rows(), of = (asks.get("of") || "").split(",");
    const is = did === "undone" ? all.find((e) => of.some((id) => e.hash === "#" + id || pick(e)?.value.includes(id)))
      : recall(memory).map((was) => all.find((e) => row(e) === was)).find(Boolean);
    const text = asks.get("again") && $("form[data-draft] textarea");
    if (text) addEventListener("load", () => { text.focus(); text.selectionStart = text.value.length; });
    else if (!location.hash || !bar || did === "undone") is?.focus();
  }
  $(".list [aria-current].row")?.scrollIntoView({ block: "nearest" });

  // Keys work without Ctrl, Alt and Cmd, except Enter, which sends.
  const current = () => document.activeElement?.closest("article") || $("a.row", document.activeElement?.closest("li") || stale);
  let hush, last; // last is the box that x has set
  function tell(text) {
    const e = $("#tell");
    e.textContent = text;
    e.hidden = false;
    clearTimeout(hush);
    hush = setTimeout(() => { e.hidden = true; }, 10000);
  }
  function move(by) {
    const all = $(".reads") ? $$(".list a.row") : rows(), open = all.findIndex((e) => e.matches("[aria-current]"));
    const at = open < 0 ? all.indexOf(current()) : open, to = all[at < 0 && by < 0 ? -1 : at + by];
    if (open >= 0) return to ? to.click() : tell(by < 0 ? "This is the first one." : "This is the last one.");
    to?.focus();
    to?.scrollIntoView({ block: "nearest" });
  }
  const unsent = (form) => $("textarea", form)?.value.trim() || files(form).files.length || $("[name=kept]:checked", form);
  const asked = "This asks you for an answer. Press r to reply. Its ⋯ menu acknowledges or archives it.";
  // done marks as read the selected rows, the focused row or the open thread.
  function done() {
    if (Date.now() - appeared < 1000) return;
    const at = current(), on = at?.matches("a.row") && at, picked = $$("main li:has(:checked) > a.row");
    const form = $("#reply form");
    if (!picked.length && (!on || on.matches("[aria-current]"))) {
      if (form && unsent(form)) { $("#unsent").hidden = false; $("#unsent button").focus(); }
      else if ($("#reply[data-asks]")) tell(asked);
      else $("[data-done]") ? $("[data-done]").click() : tell("Nothing here is unread.");
      return;
    }
    const which = picked.length ? picked : [on];
    if (which.some((e) => JSON.parse(localStorage.getItem(place + "reply " + row(e)) || "{}").body)) return tell("You have written an answer there. Open it to send or discard it.");
    if (!picked.length && on.matches("[data-asks]")) return tell(asked);
    if (!picked.length && !pick(on)) return tell("Nothing here is unread.");
    for (const e of which) pick(e).checked = true;
    mark(on || which[0], which);
    $("#done").requestSubmit();
  }
  function answer(only) {
    const to = $("#reply #to");
    if (only && $("#reply [data-sole]")) { $$("#reply [name=to][type=checkbox]").forEach((e) => { e.checked = "sole" in e.dataset; }); to.value = ""; keep(to.form); }
    $("#reply-body")?.focus();
  }
  const keys = {
    j: () => move(1),
    k: () => move(-1),
    o: () => { const at = current() || rows()[0]; (at?.matches("a") ? at : $("summary", at || stale))?.click(); },
    x: () => { const e = pick(current()); if (e) { e.click(); last = e; } },
    X: () => {
      const all = rows().map(pick).filter(Boolean), to = pick(current()), ends = [all.indexOf(last), all.indexOf(to)].sort((a, b) => a - b);
      if (to) all.slice(Math.max(0, ends[0]), ends[1] + 1).forEach((e) => { e.checked = true; });
    },
    e: done,
    r: () => answer(false),
    R: () => answer(true),
    c: () => $("header .write")?.click(),
    z: () => {
      const all = recall(undos), form = $("#undo");
      if (!all.length) return tell("Nothing is left to undo here. Your name leads to earlier actions.");
      form.action = all.pop();
      store(undos, all);
      form.requestSubmit();
    },
    "/": () => $("#find")?.focus(),
    "?": () => $("#keys").showModal(),
  };
  addEventListener("keydown", (e) => {
    const field = e.target.closest(typed);
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey) && field?.form?.dataset.draft) field.form.requestSubmit();
    if (e.key === "Escape") { field?.blur(); $$("details.menu[open]").forEach((d) => { d.open = false; }); }
    if (e.ctrlKey || e.metaKey || e.altKey || field || !keys[e.key] || $("dialog[open]")) return;
    e.preventDefault();
    if (!(e.repeat && e.key === "e")) keys[e.key]();
  });
  document.addEventListener("click", (e) => {
    $$("details.menu[open]").forEach((d) => { if (!d.contains(e.target)) d.open = false; });
    if (e.target.closest("[data-author]")) { e.preventDefault(); answer(true); }
    if (e.target.closest("[data-discard]")) discard(e);
    if (away && e.target.closest("a[href]")) { e.preventDefault(); say("The server is not responding. Trying again."); }
  });
})();
