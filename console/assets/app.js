// Every page works without this script. It renews pages, and adds keys and dialogs.
"use strict";

const root = document.documentElement, page = document.body.dataset;
root.classList.add("js");
document.cookie = `tz=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax`;

const find = (what, within = document) => within.querySelector(what);
const all = (what, within = document) => [...within.querySelectorAll(what)];
const when = (type, act) => document.addEventListener(type, act);
const visible = (el) => el.getClientRects().length > 0;
const copies = (nodes) => Array.from(nodes, (n) => document.importNode(n, true));

function make(tag, className, text = "") {
	const el = document.createElement(tag);
	el.className = className;
	el.textContent = text;
	return el;
}

// All HTML is this server's own.
const asIs = { createHTML: (html) => html };
const policy = window.trustedTypes?.createPolicy("parley", asIs) ?? asIs;
const read = async (answer) => new DOMParser().parseFromString(policy.createHTML(await answer.text()), "text/html").body;

// ask fetches a part of a page: a region, or main.
let asking = 0;
async function ask(url, part, options) {
	asking++;
	const slow = setTimeout(() => root.classList.add("slow"), 400);
	try {
		const answer = await fetch(url, { signal: AbortSignal.timeout(30000), ...options, headers: { ...options?.headers, "Parley-Part": part } });
		if (answer.status === 401) tell({ kind: "out" });
		return answer;
	} finally {
		clearTimeout(slow);
		if (!--asking) root.classList.remove("slow");
	}
}
const post = (form, part, more = {}) =>
	ask(form.action, part, { method: "POST", body: new URLSearchParams([...new FormData(form), ...Object.entries(more)]) });

// ---- Regions

// A region has data-live: kinds of records, or single ones as kind:id. It is fetched when
// one changes: at once, then at most once a second, and not while nobody sees it.
const stateOf = (region) => (region.live ??= { last: 0, etag: "" });
const regions = () => all("[data-live]");

function changed(names) {
	for (const region of regions()) {
		const live = region.dataset.live.split(" ");
		if (names.some((name) => live.includes(name) || live.includes(name.split(":")[0]))) renew(region);
	}
}

function renew(region, wait = 1000) {
	const s = stateOf(region);
	s.stale = true;
	if (document.hidden || s.busy || s.timer) return;
	s.timer = setTimeout(refresh, Math.max(0, s.last + wait - Date.now()), region, s);
}

async function refresh(region, s) {
	s.timer = 0;
	if (!region.isConnected || signedOut) return;
	s.stale = false;
	s.busy = true;
	s.last = Date.now();
	let wait;
	try {
		const answer = await ask(location.pathname + location.search, region.id, { headers: { "If-None-Match": s.etag } });
		if (answer.status >= 500) throw answer;
		if (answer.status === 200) {
			const fresh = await read(answer);
			s.etag = answer.headers.get("ETag");
			show(region, fresh);
		} else if (answer.status === 404 && !s.gone) {
			s.gone = true;
			toast("This was deleted.", true);
		}
	} catch {
		s.stale = true;
		wait = 5000;
	}
	s.busy = false;
	if (s.stale) renew(region, wait);
}

when("visibilitychange", () => {
	if (!document.hidden) regions().forEach((r) => stateOf(r).stale && renew(r));
});

// show makes a region look like fresh. Unless it must, the order of a list in use waits,
// until it no longer is or the button is pressed.
function show(region, fresh, must) {
	const s = stateOf(region), had = document.activeElement;
	const next = region.contains(had) ? neighbours(had) : [];
	const log = region.closest("[data-thread]"), follows = log && atEnd(log);
	const waits = must ? null : { count: 0 };
	children(region, fresh, waits);
	s.waiting = waits?.order && fresh;
	offer(region, s, waits?.count);
	if (follows) toEnd(log);
	if (next.length && !had.isConnected) focusOn(next.map((id) => document.getElementById(id)).find(Boolean));
	counts();
}

function offer(region, s, count) {
	let button = document.getElementById(region.id + "-fresh");
	if (!s.waiting) return button?.remove();
	if (!button) {
		button = make("button", "btn fresh");
		button.id = region.id + "-fresh";
		button.dataset.keep = "";
		button.onclick = () => {
			show(region, s.waiting, true);
			focusOn(find("[data-row]", region));
		};
		region.prepend(button);
	}
	button.textContent = count ? count + " new" : "Update";
}

// settle shows what waited in lists no longer in use.
const settle = () => regions().forEach((r) => stateOf(r).waiting && show(r, stateOf(r).waiting));
for (const type of ["pointerout", "focusout"]) when(type, () => setTimeout(settle, 300));

const inUse = (list) => list.contains(document.activeElement) || (matchMedia("(hover: hover)").matches && list.matches(":hover"));

// What is in use is never touched.
const kept = (n) => n.nodeType === 1 && (n.matches("[data-keep], dialog[open]") ||
	(n === document.activeElement && n.matches("input, textarea, select")));

function morph(from, to, waits) {
	if (kept(from) || from.isEqualNode(to)) return;
	if (from.nodeType !== 1) return void (from.data = to.data);
	for (const { name } of [...from.attributes]) name === "open" || to.hasAttribute(name) || from.removeAttribute(name);
	for (const { name, value } of to.attributes) name === "open" || from.setAttribute(name, value);
	children(from, to, waits);
}

// children gives from the children of to. They are found by id, or else by place.
function children(from, to, waits) {
	const ids = new Set(Array.from(to.children, (n) => n.id));
	if (waits && from.matches("[data-order] :is(ol, ul, tbody)") && inUse(from)) return inPlace(from, to, ids, waits);
	const mine = new Map();
	for (const n of [...from.children]) {
		if (!n.id) continue;
		if (ids.has(n.id)) mine.set(n.id, n);
		else if (!kept(n)) n.remove(); // first, so that what stays need not move
	}
	let at = from.firstChild;
	for (const n of [...to.childNodes]) {
		while (at?.id && !ids.has(at.id)) at = at.nextSibling; // it is kept
		const same = n.id ? mine.get(n.id) : at && !at.id && at;
		if (same?.nodeName !== n.nodeName) {
			from.insertBefore(document.importNode(n, true), at);
			continue;
		}
		if (same !== at) bring(same, at);
		morph(same, n, waits);
		at = same.nextSibling;
	}
	while (at) {
		const last = at;
		at = at.nextSibling;
		if (!kept(last)) last.remove();
	}
}

// bring moves n before at; or the others, since moving loses focus and selection.
function bring(n, at) {
	const list = n.parentNode, selected = getSelection();
	if (!n.contains(document.activeElement) && (selected.isCollapsed || !selected.containsNode(n, true))) return list.insertBefore(n, at);
	const after = n.nextSibling;
	while (at !== n) {
		const next = at.nextSibling;
		list.insertBefore(at, after);
		at = next;
	}
}

// inPlace changes rows, and leaves their order.
function inPlace(list, to, ids, waits) {
	const rows = new Map(Array.from(list.children, (n) => [n.id, n]));
	for (const n of to.children) {
		if (rows.has(n.id)) morph(rows.get(n.id), n, waits);
		else waits.count++;
	}
	if ([...rows.keys()].join() !== [...ids].join()) waits.order = true;
}

// ---- Focus

// neighbours lists the ids of the rows after and before an element.
function neighbours(el) {
	const row = el.closest("li, tr"), ids = [];
	for (let n = row; (n = n?.nextElementSibling); ) ids.push(n.id);
	for (let n = row; (n = n?.previousElementSibling); ) ids.push(n.id);
	return [...ids, "main"];
}

function focusOn(el = find("#main")) {
	(el.matches("a, button, [tabindex]") ? el : find("a, button", el) ?? find("#main")).focus();
}

const atEnd = (el) => el.scrollHeight - el.scrollTop - el.clientHeight < 48;
const toEnd = (el) => el.scrollTo(0, el.scrollHeight);
all("[data-thread]").forEach(toEnd);

// ---- The stream: one for all tabs of a browser

let cursor = page.cursor ?? "", source, beat, signedOut;
const tab = Math.random();
const tabs = page.member && new BroadcastChannel("parley " + page.member);
let recent = [], since = ""; // what the stream said after a cursor, for new tabs

function tell(message) {
	tabs?.postMessage(message);
	hear(message);
}

function listen() {
	source?.close();
	if (signedOut) return;
	recent = [];
	since = cursor;
	beat = Date.now();
	const s = (source = new EventSource("/live" + (cursor && "?cursor=" + cursor)));
	const say = (kind) => (e) => {
		beat = Date.now();
		since ||= e.lastEventId;
		if (kind === "names") recent.push(e);
		if (kind === "reset" || recent.length > 100) {
			recent = [];
			since = e.lastEventId;
		}
		tell({ kind, cursor: e.lastEventId, names: e.data });
	};
	s.onmessage = say("names");
	s.addEventListener("reset", say("reset"));
	s.addEventListener("at", say("at")); // every 15 s
	s.onerror = async () => {
		if (source !== s) return;
		tell({ kind: "down" });
		if (s.readyState !== EventSource.CLOSED) return; // it tries again
		source = null;
		setTimeout(listen, 3000 + Math.random() * 4000);
		if ((await fetch("/live", { method: "HEAD" })).status === 401) tell({ kind: "out" });
	};
}

let lost, away, asOf = new Date();
function hear(m) {
	if (m.kind === "hello") { // a new tab: what has it missed?
		if (!source || !since) return;
		const names = recent.filter((e) => e.lastEventId > m.cursor).map((e) => e.data).join(" ");
		return tabs.postMessage({ kind: m.cursor >= since ? "names" : "reset", to: m.from, cursor, names });
	}
	if (m.to && m.to !== tab) return;
	if (m.kind === "out") {
		signedOut = true;
		source?.close();
		return bar("Signed out.", "/sign-in?next=" + encodeURIComponent(location.pathname + location.search));
	}
	if (m.kind === "down") {
		lost ||= setTimeout(() => {
			away = true;
			if (!signedOut) bar(`As of ${asOf.toTimeString().slice(0, 5)}. Reconnecting.`);
		}, 5000);
		return;
	}
	const missed = m.kind === "reset" || !cursor || away;
	cursor = m.cursor || cursor;
	clearTimeout(lost);
	lost = 0;
	asOf = new Date();
	if (away && !signedOut) find("#offline")?.remove();
	away = false;
	if (missed) regions().forEach((r) => renew(r));
	else if (m.kind === "names") changed(m.names.split(" "));
}

function bar(text, href) {
	find("#offline")?.remove();
	const el = make("p", "offline", text);
	el.id = "offline";
	el.role = "status";
	if (href) el.append(" ", Object.assign(make("a", "", "Sign in"), { href }));
	document.body.prepend(el);
}

if (tabs) {
	tabs.onmessage = (e) => hear(e.data);
	tabs.postMessage({ kind: "hello", from: tab, cursor });
	if (navigator.locks) navigator.locks.request("parley " + page.member, () => new Promise((free) => {
		listen();
		addEventListener("pagehide", () => free(source?.close()));
	}));
	else { // over plain HTTP: each visible tab has a stream
		const turn = () => {
			if (!document.hidden) return listen();
			source?.close();
			source = null;
		};
		when("visibilitychange", turn);
		turn();
	}
	setInterval(() => source && Date.now() - beat > 45000 && listen(), 10000); // it has died
}

// ---- Toasts

function toast(text, bad) {
	const el = make("p", bad ? "toast bad" : "toast", text);
	find("#toasts").append(el);
	passing(el);
}

// passing removes a toast after a while; errors stay.
function passing(el) {
	const close = make("button", "btn plain", "Close"), gone = () => el.remove();
	close.onclick = gone;
	el.append(" ", close);
	if (!el.matches(".bad")) setTimeout(gone, 6000);
}
all("#toasts > *").forEach(passing);
const here = new URL(location);
here.searchParams.delete("done");
history.replaceState(null, "", here);

// counts says what data-status elements show, at most once in 10 seconds.
const spoken = make("p", "hidden");
spoken.role = "status";
document.body.append(spoken);
const totals = () => all("[data-status]").map((el) => el.textContent.trim() + " " + el.dataset.status).join(", ");
let said = totals(), saying;
function counts() {
	if (totals() === said) return;
	saying ||= setTimeout(() => {
		saying = 0;
		spoken.textContent = said = totals();
	}, 10000);
}

// ---- Dialogs

function dialog(nodes) {
	const el = make("dialog", "");
	el.append(...copies(nodes));
	el.setAttribute("closedby", "any");
	const title = find("h1, h2", el);
	title.id = "dialog-title";
	el.setAttribute("aria-labelledby", title.id);
	el.onclose = () => el.remove();
	document.body.append(el);
	el.showModal();
}

async function dialogOf(url) {
	try {
		const answer = await ask(url, "main");
		if (!answer.ok) throw answer;
		dialog((await read(answer)).childNodes);
	} catch {
		location = url;
	}
}

async function copy(button) {
	const what = find(button.dataset.copy), text = what.value ?? what.textContent;
	try {
		await navigator.clipboard.writeText(text);
	} catch { // over plain HTTP
		const field = button.parentNode.appendChild(make("textarea", "hidden", text));
		field.select();
		document.execCommand("copy");
		field.remove();
	}
	toast("Copied.");
}

const shut = (but) => all("details[data-menu][open]").forEach((menu) => menu.contains(but) || (menu.open = false));

when("click", (e) => {
	shut(e.target);
	if (e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
	const on = (what) => e.target.closest(what);
	if (on("[data-copy]")) return copy(on("[data-copy]"));
	if (on("dialog [data-cancel]")) on("dialog").close();
	else if (on("a[data-dialog]")) dialogOf(on("a").href);
	else return;
	e.preventDefault();
});

// ---- Forms

addEventListener("pageshow", (e) => e.persisted && location.reload());

when("submit", (e) => {
	const form = e.target, sends = form.matches("[data-send]") && !e.submitter?.name;
	if (form.method !== "post") return;
	if (sends || form.dataset.busy) e.preventDefault();
	if (sends && !form.dataset.busy) send(form, e.submitter ?? find("button:not([name])", form));
	form.dataset.busy = "yes";
});

// send sends a form with an idempotency key: tried again, it is still sent once.
async function send(form, button) {
	const state = find(".state", form) ?? form.appendChild(make("p", "state"));
	state.role = "status";
	state.textContent = "Sending…";
	try {
		const answer = await post(form, "main");
		if (answer.redirected) return location.assign(answer.url);
		if (answer.status > 501) throw answer;
		find("#main").replaceChildren(...copies((await read(answer)).childNodes));
		focusOn(find("#summary") ?? undefined);
	} catch {
		for (const el of form.elements) el.inert = el !== button; // the key stands for what is in them
		state.textContent = "No answer came. If you try again, it is still sent only once.";
		button.textContent = "Try again";
		button.focus();
		delete form.dataset.busy;
	}
}

// A form with data-preview renews that part as its button would.
let typing;
when("input", (e) => {
	const form = e.target.closest("form[data-preview]");
	clearTimeout(typing);
	if (form) typing = setTimeout(async () => {
		const answer = await post(form, form.dataset.preview, { preview: "1" });
		if (answer.ok) show(document.getElementById(form.dataset.preview), await read(answer));
	}, 250);
});

when("change", ({ target }) => target.form?.matches("[data-auto]") && target.form.requestSubmit());

// ---- Keys

// row returns the row after or before the one in use.
function row(step) {
	const rows = all("[data-row]").filter(visible);
	const used = rows.find((r) => r.contains(document.activeElement)) ?? rows.find((r) => r.matches("[aria-current]"));
	return rows[used ? rows.indexOf(used) + step : 0];
}

let went = 0; // when g was pressed
when("keydown", (e) => {
	if (e.isComposing || e.defaultPrevented) return;
	const field = e.target.matches("input:not([type=checkbox], [type=radio]), textarea, select");
	if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) return e.target.closest("form[data-enter]")?.requestSubmit();
	if (e.key === "Escape" && !find("dialog[open]")) {
		shut();
		if (field) focusOn();
	}
	if (field || e.ctrlKey || e.metaKey || e.altKey || page.keys === "off" || find("dialog[open]")) return;
	const key = (Date.now() - went < 1500 ? "g " : e.shiftKey && e.key > "@" ? "Shift+" : "") + e.key;
	went = key === "g" ? Date.now() : 0;
	const way = { j: 1, k: -1, "]": 1, "[": -1 }[key], to = way && row(way);
	if (to) {
		focusOn(to);
		if ("[]".includes(key)) document.activeElement.click();
	} else if (key === "?") dialog(find("#keys").content.childNodes);
	else {
		const el = all(`[data-shortcut="${CSS.escape(key)}"]`).find(visible);
		if (!el) return;
		el.matches("input") ? el.focus() : el.click();
	}
	e.preventDefault();
});
