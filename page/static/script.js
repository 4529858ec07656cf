const $ = (what, of = document) => of.querySelector(what), $$ = (what, of = document) => [...of.querySelectorAll(what)];
const on = (whats, f) => whats.split(" ").forEach((what) => addEventListener(what, f, true));
const button = (textContent, onclick, more) => Object.assign(document.createElement("button"), { type: "button", textContent, onclick, ...more });
const recall = (key) => JSON.parse(sessionStorage.getItem("mailtree " + key) || "[]");
const store = (key, is) => sessionStorage.setItem("mailtree " + key, JSON.stringify(is));
const saved = localStorage, project = location.pathname.split("/")[2], asks = new URLSearchParams(location.search), did = asks.get("did");
const show = (e, text) => { e.textContent = text; e.hidden = !text; }, stale = $("#stale"), say = (text) => show(stale, text);
const parse = async (res) => new DOMParser().parseFromString(await res.text(), "text/html");
const down = "The server is not responding.";
let hush;
function tell(text, more = "") {
  show($("#tell"), text);
  $("#tell").append(more);
  clearTimeout(hush);
  hush = setTimeout(tell, 10000);
}

// Live updates: the stream reports a change, and the server renders the view again. Neither a time that gets older nor
// a part that the user has opened counts as a change.
const plain = (e) => e.outerHTML.replace(/<time[^]*?<\/time>| open=""| class="fresh"| fresh(?=")|value="page-\w+"/g, "");
function grow(old, now) {
  const fresh = $$("time", now);
  $$("time", old).forEach((e, i) => { if (fresh[i] && fresh[i].outerHTML !== e.outerHTML) e.replaceWith(fresh[i]); });
}
const typed = "input:not([type=hidden],[type=checkbox]),textarea,select", marked = getSelection();
// :focus matches only while the window has the focus.
const active = (e) => [document.activeElement].find((f) => e.contains(f));
const busy = (e) => $("details[open]:not(.fold)", e) || active(e)?.matches(typed) || (!marked.isCollapsed && e.contains(marked.anchorNode));
const scrolled = (e) => Math.max(scrollY, e.closest(".pane")?.scrollTop || 0) > 100 && !$("article", e);
const unsent = (form) => form && ($("textarea", form).value.trim() || files(form).files.length || $("[name=kept]:checked", form));
// The variable appeared is the last time when something appeared that the user did not open.
let running, again, away, tick = "1", appeared = 0;
async function refresh(force) {
  if (running) return void (again = true);
  running = true;
  try {
    const res = await fetch(location.href, { headers: { "Mailtree-Fragment": tick } });
    if (res.status >= 500) throw res;
    const fresh = await parse(res);
    let held, news = 0;
    for (const old of $$("[data-live]")) {
      const now = fresh.getElementById(old.id);
      if (!now) continue;
      if (plain(now) === plain(old)) grow(old, now);
      // Keep what the user is writing.
      else if (old.id === "reply" && (busy(old) || unsent($("form", old)))) continue;
      else if (!force && !old.closest(".rail") && (busy(old) || (scrolled(old) && added(old, now)))) { held = true; news += added(old, now); }
      else swap(old, now);
    }
    say(news ? news + " new. " : held ? "Something has changed. " : "");
    if (held) stale.append(button("Show", () => { tick = "1"; refresh(true); }));
    document.title = document.title.replace(/^(\(\d+\) )?/, ($("#projects [aria-current] b")?.textContent || "").replace(/.+/, "($&) "));
  } catch { say(down); }
  running = false;
  if (again) { again = false; setTimeout(refresh, 1000); }
  sync();
  notify();
}
const row = (e) => e?.dataset?.t || e?.getAttribute?.("href") || e?.id;
const name = (e) => (e.id || row($("a", e)) || $("details", e)?.id) + ($("time", e)?.dateTime || "");
const places = (e) => $$("li,article,tr", e);
function added(old, now) {
  const before = places(old).map(name);
  // An open thread shows its own news.
  return places(now).filter((e) => !before.includes(name(e)) && !$("[aria-current]", e)).length;
}
function swap(old, now) {
  const before = places(old).map(name), f = active(old), chosen = $$("li:has(:checked) a.row", old).map(row);
  const all = (of) => $$("a,article", of), at = all(old).indexOf(f), is = (e) => row(e) || name(e);
  for (const e of $$("details[id]", old)) { const n = $("#" + CSS.escape(e.id), now); if (n) n.open = e.open; }
  for (const e of $$("a.row", now)) if (chosen.includes(row(e)) && pick(e)) pick(e).checked = true;
  old.replaceWith(now);
  if (before.length && !now.closest(".rail")) for (const e of places(now)) if (!before.includes(name(e))) { e.classList.add("fresh"); appeared = Date.now(); }
  if (at >= 0) (all(now).find((e) => is(e) === is(f)) || all(now)[at] || all(now).at(-1))?.focus({ preventScroll: true });
}
const url = document.body.dataset.stream;
if (url) {
  let heard = Date.now(), source, at = url;
  const back = () => { heard = Date.now(); if (away) { away = false; say(); } };
  const listen = () => {
    source = new EventSource(at);
    source.onopen = back;
    source.addEventListener("change", (e) => { back(); at = url.replace(/=.*/, "=" + e.lastEventId); tick = e.data; refresh(); });
    source.addEventListener("beat", back);
    source.onerror = () => {
      away = true;
      say("This page has been out of date since " + new Date(heard).toTimeString().slice(0, 5) + ". " + down);
      // With the state 2 (CLOSED), the browser does not try again.
      if (source?.readyState > 1) setTimeout(() => source && listen(), 3000);
    };
  };
  // A browser allows six connections to a host, so a hidden tab closes its connection.
  const shut = () => { source?.close(); source = null; }, look = () => { document.hidden ? shut() : source || listen(); };
  look();
  on("pagehide", shut);
  on("pageshow", look);
  document.onvisibilitychange = look;
  setInterval(() => {
    if (!source && !notifies()) return;
    if (source && Date.now() - heard > 60000) { source.close(); heard = Date.now(); listen(); }
    // The times in a view change without an event.
    tick = "1";
    refresh();
  }, 60000);
}

// Drafts are kept until they are sent. Text from the server takes precedence.
const slot = (form) => "mailtree draft " + project + " " + form.dataset.draft;
// draft returns the fields of a form that the user has changed, by key.
const draft = (at) => JSON.parse(saved[at] || "{}");
const fields = (form) => [...form.elements].filter((e) => e.name && !/hidden|file|submit/.test(e.type));
const is = (e) => (e.type === "checkbox" ? "checked" : "value"), key = (e) => e.name + (e.type === "checkbox" ? " " + e.value : "");
function keep(form) {
  const kept = { only: form.only };
  for (const e of fields(form)) if (e[is(e)] !== e.defaultChecked) kept[key(e)] = e[is(e)];
  saved[slot(form)] = JSON.stringify(kept);
}
if (did === "sent") delete saved[recall("sending")];
store("sending", "");
for (const form of $$("form[data-draft]")) {
  if ($("textarea", form).value) { keep(form); continue; }
  const kept = draft(slot(form));
  form.only = kept.only;
  for (const e of fields(form)) {
    const was = kept[key(e)];
    if ((was || was === false) && !(e.value && e.id === "to")) e[is(e)] = was;
  }
}
on("input", (e) => {
  const to = e.target;
  // A datalist completes the whole field, so its options must begin with the names that are already there.
  if (to.list) {
    const before = to.value.slice(0, to.value.lastIndexOf(",") + 1);
    for (const o of to.list.options) { o.dataset.n ||= o.value; o.value = before && before + " " + o.dataset.n || o.dataset.n; }
  }
  // A recipient that the user has changed stays.
  if (to.closest(".to")) to.form.only = 0;
  if (to.form?.dataset.draft) keep(to.form);
});
on("submit", (e) => {
  if (away) { e.preventDefault(); return say("Not sent. " + down); }
  if (e.submitter?.dataset.to && !files(e.target).files.length) { e.preventDefault(); return decide(e.submitter); }
  const undone = recall("undo");
  if (e.target.closest(".done") && undone.pop() === e.target.action) store("undo", undone);
  if (e.target.dataset.draft) store("sending", slot(e.target));
});

// The user can choose, paste or drop files. Each file is shown as a chip, and a click on the chip removes the file.
const files = (form) => $("[type=file]", form);
function attach(form, all) {
  const has = new DataTransfer();
  all.forEach((f) => has.items.add(f));
  files(form).files = has.files;
  $(".files", form).replaceChildren(...all.map((f) => button(f.name + " ×", () => {
    attach(form, all.filter((o) => o !== f));
    files(form).focus();
  }, { className: "chip", title: "Remove" })));
  form.chosen = all;
}
const more = (form, all) => attach(form, [...(form.chosen || []), ...all]);
on("change", (e) => { if (e.target.type === "file") more(e.target.form, e.target.files); });
on("paste dragover drop", (e) => {
  const from = e.clipboardData || e.dataTransfer, form = e.target.closest?.("form[data-draft]") || (e.type !== "paste" && $("form[data-draft]"));
  if (!form || !from?.types.includes("Files")) return;
  e.preventDefault();
  if (e.type !== "dragover") more(form, from.files);
});

// The bar says what the user has just done. It disappears after ten seconds, unless it has the pointer or the focus.
// What the user did in this tab is stored for the key z: the URL that undoes it, an answer whose URL is not known yet
// (see decide), or what the bar says about an action that cannot be undone.
const bar = $(".done");
const push = (one) => store("undo", [...recall("undo"), one].slice(-50));
// These parameters are always at the end of the URL.
if (did || bar) history.replaceState(null, "", location.href.replace(/[?&](again|at|by|did)=[^#]*/, ""));
function fade(bar) { setTimeout(() => bar.matches(":hover,:focus-within") ? fade(bar) : (bar.hidden = true), 10000); }
if (bar) {
  if (did !== "undone") push($("form", bar)?.action || { said: $("p", bar).textContent });
  fade(bar);
}

// Yes and No show the next thread. The answer is sent five seconds later, or when the user answers that thread or
// leaves it. The variable soon contains the answer that is still to be sent, as stored by decide, or {}.
let soon = recall("soon");
store("soon", {});
if (soon.to) {
  tell("Sending " + soon.word + ": z cancels. ", button("Cancel", () => keys.z()));
  setTimeout(send, 5000);
}
// If the view that sent an answer got no response, because the user left it or the server was down, send the same form
// again. The server handles a form only once, and gives the same response again.
for (const one of recall("undo")) if (one.to) post(one);
function decide(b) {
  const form = b.form, next = new URL(form.next.value || $("a.narrow").href, location);
  send();
  store("soon", { to: b.formAction, body: new URLSearchParams(new FormData(form, b)) + "", word: b.firstChild.data + "to " + b.dataset.to, from: location.href, at: slot(form) });
  // With this parameter, the view does not count as opened by the user.
  next.searchParams.set("did", "sent");
  location = next;
}
function send() {
  const one = soon;
  soon = {};
  if (!one.to) return;
  one.text = saved[one.at];
  delete saved[one.at];
  tell();
  push(one);
  post(one);
}
// post sends an answer and replaces it in the list of undos. It returns the URL that undoes the answer, if any.
async function post({ to, body, word, at, text }) {
  let view;
  // With keepalive, a browser sends at most 64 KiB. If the user leaves the view, a longer form is sent by the next one.
  try { view = await parse(await fetch(to, { method: "POST", body: new URLSearchParams(body), keepalive: body.length < 6e4 })); } catch { return say("Not sent yet: " + word + ". " + down); }
  const now = $(".done", view), undo = $(".done form", view)?.action, all = recall("undo"), i = all.findIndex((one) => one.body === body);
  // Another call has replaced the answer.
  if (i < 0) return undo;
  all.splice(i, 1, ...(undo ? [undo] : []));
  store("undo", all);
  if (!now) {
    if (text) saved[at] = text;
    tell("Not sent: " + word + ". " + ($("#refused", view)?.textContent || ""));
  } else if (!all[i + 1] && !soon.to) {
    $(".done")?.remove();
    $("main").after(now);
    fade(now);
  }
  return undo;
}
on("pagehide", send);
// sync enables Yes, No and Later only if the whole message is on the screen.
const rect = (e) => e.getBoundingClientRect();
function sync() {
  for (const b of $$(".decide button")) {
    const m = $("#" + CSS.escape(b.form.reply_to.value))?.closest("article");
    b.disabled = !m?.firstElementChild.open || rect($(".body", m)).top < Math.max(0, rect($(".scroll")).top) - 1 || rect(m).bottom > rect($("#reply")).top + 1;
  }
}
on("scroll resize toggle input load", sync);
sync();
function press(as) {
  sync();
  const b = $(`.decide [value=${as}]`);
  b && !b.disabled ? b.click() : tell(b ? "Scroll to see the whole message." : "No question to answer.");
}

// Notifications are off until the user chooses Notify me. Each message is reported once, unless its thread is in view.
const notifies = () => saved["mailtree notify"];
function notify() {
  const told = JSON.parse(saved["mailtree told"] || "[]");
  for (const [tag, text, at] of JSON.parse($("#projects")?.dataset.blocked || "[]")) {
    if (told.includes(tag)) continue;
    told.push(tag);
    saved["mailtree told"] = JSON.stringify(told.slice(-200));
    if (notifies() && (document.hidden || location.pathname !== at)) new Notification(text, { tag }).onclick = () => { focus(); location = at; };
  }
}
async function bell(e) {
  if (e && notifies()) delete saved["mailtree notify"];
  else if (e && await Notification.requestPermission() === "granted") saved["mailtree notify"] = 1;
  for (const b of $$(".notify")) { b.hidden = !window.Notification; $("small", b).textContent = notifies() ? "on" : "off"; }
}
bell();
notify();

// The focused row and its neighbors are stored, so that the focus can return there after Back, or after a row is done.
// All rows are stored too: after a form was sent, any row that is not among them has just appeared.
const rows = () => $$("main a.row").filter((e) => e.checkVisibility());
const pick = (e) => $("[name=message]", e?.closest("li") || stale);
const memory = "at " + location.pathname, shown = () => rows().map((e) => row(e) + (pick(e)?.value || ""));
function mark(at, gone = []) {
  const all = rows(), i = all.indexOf(at);
  store(memory, [...all.slice(i), ...all.slice(0, i).reverse()].filter((e) => !gone.includes(e)).map(row));
}
on("focusin", (e) => { if (e.target.matches("a.row")) mark(e.target); });
const list = $(".pane.list"), far = "list " + project;
if (list) list.scrollTop = recall(far);
if (/sent|later/.test(did) || (did && shown().some((e) => !recall("rows").includes(e)))) appeared = Date.now();
on("pagehide", () => { store("rows", shown()); if (list) store(far, list.scrollTop); });
if (performance.getEntriesByType("navigation")[0]?.type === "back_forward" || bar) {
  const all = rows(), of = (asks.get("of") || "").split(","), text = asks.get("again") && $("form[data-draft] textarea");
  const at = did === "undone" ? all.find((e) => of.some((id) => e.hash === "#" + id || pick(e)?.value.includes(id)))
    : recall(memory).map((was) => all.find((e) => row(e) === was)).find(Boolean);
  if (text) on("load", () => { text.focus(); text.selectionStart = text.value.length; });
  else if (!location.hash || !bar || did === "undone") at?.focus();
}
$(".list [aria-current].row")?.scrollIntoView({ block: "nearest" });

// Keys work only without Ctrl, Alt and Cmd. The exception is Enter, which sends a form with Ctrl or Cmd.
const current = (f = document.activeElement) => f?.closest("article") || $("a.row", f?.closest("li") || stale);
// The variable last is the checkbox that x has changed last, and going says whether g was pressed just before.
let last, going;
function move(by) {
  const all = $(".reads") ? $$(".list a.row") : rows(), open = all.findIndex((e) => e.matches("[aria-current]"));
  const at = open < 0 ? all.indexOf(current()) : open, to = all[at < 0 && by < 0 ? -1 : at + by];
  if (open >= 0) return to ? to.click() : tell(by < 0 ? "This is the first one." : "This is the last one.");
  to?.focus();
  to?.scrollIntoView({ block: "nearest" });
}
// done marks the selected rows, the focused row or the open thread as read.
function done() {
  const only = $("a.row:not([aria-current])", current()?.parentNode || stale), picked = $$("main li:has(:checked) > a.row"), at = $("[data-done]");
  const which = picked[0] ? picked : only ? [only] : [], asks = !picked[0] && (only || $("#reply"))?.matches("[data-asks]");
  if (!which[0] && unsent($("#reply form"))) { $("#unsent").hidden = false; $("#unsent button").focus(); }
  else if (which.some((e) => draft("mailtree draft " + row(e)).body)) tell("You have an unsent answer. Open its thread first.");
  else if (asks) tell(`This thread needs an answer: ${only ? "open it" : "press y, n, h (later) or r (reply)"}.`);
  else if (which[0] ? !which.every(pick) : !at) tell("Nothing here is unread.");
  else if (!which[0]) at.click();
  else {
    for (const e of which) pick(e).checked = true;
    mark(only || which[0], which);
    $("#done").requestSubmit();
  }
}
// answer goes to the reply. It selects the author only, or everybody again if the last call has selected the author.
function answer(only) {
  const form = $("#reply form");
  if (!form) return;
  if (only ? $("[data-sole]", form) : form.only) {
    for (const e of $$(".to [type=checkbox]", form)) e.checked = only ? "sole" in e.dataset : e.defaultChecked;
    $("#to").value = "";
    form.only = only;
    keep(form);
  }
  $("textarea", form).focus();
}
const keys = {
  j: () => move(1),
  k: () => move(-1),
  o: () => { const at = current() || rows()[0]; (at?.matches("a") ? at : $("summary", at || stale))?.click(); },
  x: () => { const e = pick(current()); e?.click(); last = e || last; },
  X: () => {
    const all = rows().map(pick).filter(Boolean), to = pick(current()), ends = [all.indexOf(last), all.indexOf(to)].sort((a, b) => a - b);
    if (to) all.slice(Math.max(0, ends[0]), ends[1] + 1).forEach((e) => { e.checked = true; });
  },
  e: done,
  y: () => press("yes"),
  n: () => press("no"),
  h: () => press("later"),
  r: () => answer(),
  R: () => answer(true),
  u: () => $("a.narrow")?.click(),
  c: () => $("header .write")?.click(),
  z: async () => {
    const all = recall("undo"), last = all.pop(), form = $("#undo"), back = soon.from;
    soon = {};
    if (back) return location = back;
    if (!last) return tell("Nothing left to undo.");
    if (last.to) return await post(last) && keys.z();
    store("undo", all);
    if (last.said) return tell("This cannot be undone: " + last.said + " z undoes the action before it.");
    form.action = last;
    form.requestSubmit();
  },
  "/": () => $("#find")?.focus(),
  "?": () => $("#keys").showModal(),
};
on("keydown", (e) => {
  const field = e.target.closest(typed), held = e.ctrlKey || e.metaKey;
  if (e.key === "Enter" && held && field?.form?.dataset.draft) field.form.requestSubmit();
  if (e.key === "Escape") { field?.blur(); close(); }
  if (held || e.altKey || field || $("dialog[open]")) return;
  const to = going && $(`[data-go~=${CSS.escape(e.key)}]`);
  going = e.key === "g";
  if (to) return to.click();
  if (!keys[e.key]) return;
  e.preventDefault();
  if (!"eynh".includes(e.key) || !(e.repeat || Date.now() - appeared < 1000)) keys[e.key]();
});
const close = (but) => $$("details.menu[open]").forEach((d) => { d.open = d.contains(but); });
on("click", (e) => {
  const at = (what) => e.target.closest(what);
  close(e.target);
  if (at(".notify")) bell(e);
  if (at("[data-author]")) { e.preventDefault(); answer(true); }
  if (at("[data-discard]")) {
    const form = e.target.closest("form");
    delete saved[slot(form)];
    // If the form is shown without its thread, follow the link, which leads to the thread.
    if (!$("#thread")) return;
    e.preventDefault();
    form.reset();
    attach(form, []);
    $("textarea", form).value = "";
    $("#unsent").hidden = true;
    push({ said: "Discarded." });
  }
  if (away && at("a[href]")) { e.preventDefault(); say(down); }
});
