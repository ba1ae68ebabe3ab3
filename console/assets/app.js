// Every page works without this script. It renews pages, and adds keys and dialogs.
"use strict";

const root = document.documentElement, page = document.body.dataset, store = localStorage;
root.classList.add("js");
document.cookie = `tz=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax`;

const find = (what, within = document) => within.querySelector(what);
const all = (what, within = document) => [...within.querySelectorAll(what)];
const when = (type, act) => document.addEventListener(type, act);
const active = () => document.activeElement, now = Date.now;
const visible = (el) => el.checkVisibility();

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

// ask fetches parts of a page: regions, or main.
let asking = 0;
async function ask(url, part, options) {
	asking++;
	const slow = setTimeout(() => root.classList.add("slow"), 400);
	try {
		const answer = await fetch(url, { signal: AbortSignal.timeout(3e4), ...options, headers: { ...options?.headers, "Parley-Part": part } });
		if (answer.status === 401) tell({ kind: "out" });
		return answer;
	} finally {
		clearTimeout(slow);
		if (!--asking) root.classList.remove("slow");
	}
}
function post(form, part, button, more) {
	const data = new FormData(form, button), files = form.enctype[0] === "m";
	if (more) data.append(more, 1);
	return ask(form.action, part, { method: "POST", body: files ? data : new URLSearchParams(data), signal: AbortSignal.timeout(files ? 6e5 : 3e4) });
}

// ---- Regions

// A region has data-live: kinds of records, or single ones as kind:id. Regions that have
// changed are fetched together: at once, then once a second, and not while hidden.
const regions = () => all("[data-live]");
const stale = new Set(), etags = {};
let fetching, fetched = 0, gone;

function changed(names) {
	renew(regions().filter(({ dataset }) => {
		const live = dataset.live.split(" ");
		return names.some((name) => live.includes(name) || live.includes(name.split(":")[0]));
	}));
}

function renew(list, wait = 1000) {
	list.forEach((region) => stale.add(region));
	if (stale.size && !document.hidden) fetching ||= setTimeout(refresh, Math.max(0, fetched + wait - now()));
}

async function refresh() {
	const list = [...stale].filter((region) => region.isConnected), names = list.map((region) => region.id).join(" ");
	stale.clear();
	fetched = now();
	let wait, again = [];
	try {
		const answer = await ask(page.at ?? location.pathname + location.search, names, { headers: { "If-None-Match": etags[names] ?? "" } });
		if (answer.status >= 500) throw answer;
		if (answer.status === 200) {
			const fresh = await read(answer);
			etags[names] = answer.headers.get("ETag");
			for (const region of list) show(region, find("#" + region.id, fresh));
		} else if (answer.status === 404) gone ||= !toast("This was deleted.", true);
	} catch {
		again = list;
		wait = 5e3;
	}
	fetching = 0;
	if (!signedOut) renew(again, wait);
}

// show makes a region look like fresh. The order of a list in use waits for its end, or
// for the button.
function show(region, fresh, must) {
	const had = active();
	const next = region.contains(had) ? neighbours(had) : [];
	const log = region.closest("[data-thread]"), follows = log && atEnd(log);
	const waits = must ? null : { count: 0 }, held = find("[data-mine]", region);
	children(region, fresh, waits);
	if (held?.matches(":not([data-mine])")) toast("No longer yours: " + held.textContent, true);
	region.waiting = waits?.order && fresh;
	offer(region, waits?.count);
	if (follows) toEnd(log);
	markRead();
	if (next.length && !had.isConnected) focusOn(next.map((id) => document.getElementById(id)).find(Boolean));
	counts();
}

function offer(region, count) {
	let button = document.getElementById(region.id + "-fresh");
	if (!region.waiting) return button?.remove();
	if (!button) {
		button = make("button", "btn fresh");
		button.id = region.id + "-fresh";
		button.dataset.keep = "";
		button.onclick = () => {
			show(region, region.waiting, true);
			focusOn(find("[data-row]", region));
		};
		region.prepend(button);
	}
	button.textContent = count ? count + " new" : "Update";
}

// settle shows what waited in lists out of use.
const settle = () => regions().forEach((region) => region.waiting && show(region, region.waiting));
for (const type of ["pointerout", "focusout"]) when(type, () => setTimeout(settle, 300));

const inUse = (list) => list.contains(active()) || (matchMedia("(hover: hover)").matches && list.matches(":hover"));

// What is in use is never touched.
const kept = (n) => n.nodeType === 1 && (n.matches("[data-keep], dialog[open]") || (n.matches("textarea") && n.value) ||
	(n === active() && n.matches("input, textarea, select")));

function morph(from, to, waits) {
	if (kept(from) || from.isEqualNode(to)) return;
	if (from.nodeType !== 1) return void (from.data = to.data);
	// A click just after a colleague's change was meant for what stood there before.
	if (from.matches("[name^=seen_]")) {
		const seen = () => (from.value = from.to.value);
		from.to = to;
		return void setTimeout(() => from.name === "seen_message" && all(".bubble").at(-1)?.matches(".theirs") ? seen() : setTimeout(seen, 1000));
	}
	for (const { name } of [...from.attributes]) name === "open" || to.hasAttribute(name) || from.removeAttribute(name);
	for (const { name, value } of to.attributes) name === "open" || from.setAttribute(name, value);
	children(from, to, waits);
}

// children gives from the children of to. They are found by id, or by place.
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

// bring moves n before at; or others, as moving loses focus and selection.
function bring(n, at) {
	const list = n.parentNode, selected = getSelection();
	if (!n.contains(active()) && (selected.isCollapsed || !selected.containsNode(n, true))) return list.insertBefore(n, at);
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

// neighbours lists the ids of the rows after and before.
function neighbours(el) {
	const row = el.closest("li, tr"), ids = [];
	for (const side of ["next", "previous"]) for (let n = row; (n = n?.[side + "ElementSibling"]); ) ids.push(n.id);
	return [...ids, "main"];
}

function focusOn(el = find("#main")) {
	(el.matches("a, button, summary, [tabindex]") ? el : find("a, button", el) ?? find("#main")).focus();
}

const atEnd = (el) => el.scrollHeight - el.scrollTop - el.clientHeight < 48;
const toEnd = (el) => el.scrollTo(0, el.scrollHeight);

// threads shows the ends of threads, also when there is less room for them.
const threads = () => all("[data-thread]").forEach((el) => {
	let ends = true;
	toEnd(el);
	el.onscroll = () => (ends = atEnd(el));
	new ResizeObserver(() => ends && toEnd(el)).observe(el);
});
threads();
find(".tabs [aria-current]")?.scrollIntoView({ block: "nearest" });

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
	beat = now();
	const s = (source = new EventSource("/live?cursor=" + cursor));
	const say = (kind) => (e) => {
		beat = now();
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
	s.onerror = () => {
		if (source !== s) return;
		tell({ kind: "down" });
		if (s.readyState < 2) return; // it tries again
		source = null;
		setTimeout(listen, 3000 + Math.random() * 4000);
		ask("/live", "live", { method: "HEAD" }).catch(() => 0); // 401: signed out
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
		}, 5e3);
		return;
	}
	const missed = m.kind === "reset" || !cursor || away;
	cursor = m.cursor || cursor;
	clearTimeout(lost);
	lost = 0;
	asOf = new Date();
	if (away && !signedOut) find("#offline")?.remove();
	away = false;
	if (missed) renew(regions());
	else if (m.kind === "names") changed(m.names.split(" "));
	renew(regions().filter((region) => find("[data-until]", region)?.dataset.until < now()));
	if (m.kind !== "at") news();
}

// ---- Notifications: the tab with the stream tells who has written, while it is hidden

const bell = find("#notify button"), ring = () => (bell.textContent = store.notify ? "Turn off" : "Turn on");
let telling;

function news() {
	if (source && document.hidden && store.notify) telling ||= setTimeout(async () => {
		telling = 0;
		for (const { dataset, firstChild: link } of all("[data-at]", await ask("/me/news", "news").then(read, () => root)).reverse()) {
			if (dataset.at <= store.notify) continue;
			store.notify = dataset.at;
			new Notification(link.textContent, { tag: link.href }).onclick = () => open(link.href, "_self", focus());
		}
	}, 1000);
}

if (bell) {
	if (window.Notification?.permission !== "granted") delete store.notify;
	ring();
	bell.onclick = async () => {
		if (store.notify) delete store.notify;
		else if (await window.Notification?.requestPermission() === "granted") store.notify = bell.dataset.now;
		else toast("The browser forbids it.", true);
		ring();
	};
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
	setInterval(() => source && now() - beat > 45e3 && listen(), 1e4);
}

// ---- Toasts

function toast(text, bad) {
	const el = make("p", bad ? "toast bad" : "toast", text);
	find("#toasts").append(el);
	passing(el);
}

// passing removes a toast; an error stays.
function passing(el) {
	const close = make("button", "btn plain", "×"), gone = () => el.remove();
	close.ariaLabel = "Dismiss";
	close.onclick = gone;
	el.append(" ", close);
	if (!el.matches(".bad")) setTimeout(gone, 6e3);
}
all("#toasts > *").forEach(passing);
const here = new URL(location);
for (const name of ["done", "of"]) here.searchParams.delete(name);
history.replaceState(null, "", here);

// counts says what data-status shows, once in 10 seconds.
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
	}, 1e4);
}

// ---- Dialogs

function dialog(nodes) {
	const el = make("dialog", "");
	el.append(...nodes);
	el.closedBy = "any";
	el.ariaLabel = find("h1, h2", el).textContent;
	el.onclose = () => el.remove();
	document.body.append(el);
	el.showModal();
}

async function dialogOf(url) {
	try {
		const answer = await ask(url, "main");
		if (!answer.ok) throw answer;
		dialog(find("#main", await read(answer)).childNodes);
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
	else if (on("a[data-fill]")) fill(on("a").href).catch(() => (location = on("a").href));
	else return;
	e.preventDefault();
});

// ---- Forms

addEventListener("pageshow", (e) => e.persisted && location.reload());

when("submit", (e) => {
	const form = e.target, sends = form.matches("[data-send]") && e.submitter?.name !== "preview";
	if (form.method !== "post") return;
	if (/^\/(me\/)?sign-out$/.test(new URL(form.action).pathname)) drafts(mine).forEach(drop);
	if (sends || form.dataset.busy) e.preventDefault();
	const button = e.submitter ?? find("button:not([name])", form);
	if (sends && button && !form.dataset.busy) send(form, button);
	form.dataset.busy = "yes";
});

// send sends a form with an idempotency key: tried again, it is still sent once.
async function send(form, button) {
	const state = find(".state", form) ?? form.appendChild(make("p", "state"));
	const draft = mine + form.dataset.draft, text = form.elements.reply?.value, bubble = make("li", "bubble ours");
	state.role = "status";
	state.textContent = "Sending…";
	button.focus();
	if (text) {
		bubble.append(make("p", "text", text), make("p", "under", "Sending…"));
		all(".messages").pop()?.append(bubble);
		toEnd(find("[data-thread]"));
	}
	const sent = post(form, "main", button);
	for (const el of form.elements) el.inert = el !== button; // the key stands for what is in them
	try {
		const answer = await sent;
		if (answer.redirected) {
			drop(draft);
			return (location = answer.url);
		}
		const fresh = find("#main", await read(answer));
		if (answer.status > 501 && !find("[data-send]", fresh)) throw answer;
		find("#main").replaceChildren(...fresh.childNodes);
		if (find("#reply[data-keep]")) drop(draft); // it is in doubt
		threads();
		focusOn(find("#news, #summary") ?? undefined);
	} catch {
		bubble.remove();
		state.textContent = "No answer came. If you try again, it is still sent only once.";
		button.textContent = "Try again";
		button.focus();
		delete form.dataset.busy;
	}
}

// A form with data-preview renews that part.
let typing;
when("input", ({ target }) => {
	const form = target.closest("form[data-preview]");
	saveDraft(target);
	clearTimeout(typing);
	if (form) typing = setTimeout(async () => {
		const part = form.dataset.preview, what = "#" + part;
		const answer = await (form.method === "get" ? ask(form.action + "?" + new URLSearchParams(new FormData(form)), part) : post(form, part, null, "preview")).catch(() => 0);
		if (answer.ok) show(find(what), find(what, await read(answer)));
		options(0);
	}, 250);
});

when("change", ({ target }) => target.form?.matches("[data-auto]") && target.form.requestSubmit());

// ---- Replies

// Drafts are of a member and a conversation, and kept for 30 days.
const mine = "draft " + page.member + " ", drafts = (of) => Object.keys(store).filter((key) => key.startsWith(of));
const drop = (key) => delete store[key];
function saveDraft({ id, form, value }) {
	if (id !== "f-reply" || signedOut || !form.dataset.draft) return;
	const key = mine + form.dataset.draft;
	value ? (store[key] = JSON.stringify([value, now()])) : drop(key);
}
for (const key of drafts("draft ")) if (!(JSON.parse(store[key])[1] > now() - 2592e6)) drop(key);
const reply = find("[data-draft] #f-reply");
if (reply) {
	reply.value ||= JSON.parse(store[mine + reply.form.dataset.draft] ?? '[""]')[0];
	saveDraft(reply);
}

// What is seen counts as read.
function markRead() {
	const form = find("form[data-read]");
	if (!form || form.dataset.busy || document.hidden || !atEnd(find("[data-thread]"))) return;
	form.dataset.busy = "yes";
	post(form, "foot").catch(() => delete form.dataset.busy);
}
markRead();
when("visibilitychange", () => markRead(renew([])));
addEventListener("scroll", markRead, true);

// The saved replies are a combobox. options moves in its list.
function options(step) {
	const list = all("#saved li"), from = list.findIndex((el) => el.ariaSelected === "true");
	if (!list.length) return;
	const at = list.at((Math.max(from, 0) + step) % list.length);
	find("#saved").role = "listbox";
	for (const el of list) {
		el.role = "option";
		el.ariaSelected = el === at;
	}
	find("#f-snippets").setAttribute("aria-activedescendant", at.id);
	at.scrollIntoView({ block: "nearest" });
	return at;
}

// fill takes over the text of a saved reply.
async function fill(href) {
	const fresh = await read(await ask(href, "foot")), field = find("#f-reply");
	shut();
	field.focus();
	document.execCommand("insertText", false, find("#f-reply", fresh).value);
}

// ---- Keys

// row returns a row near the one in use.
function row(step) {
	const rows = all("[data-row]").filter(visible);
	const used = rows.find((r) => r.contains(active())) ?? rows.find((r) => r.matches("[aria-current]"));
	return rows[used ? rows.indexOf(used) + step : 0];
}

let went = 0; // when g was pressed
when("keydown", (e) => {
	if (e.isComposing || e.defaultPrevented) return;
	const field = e.target.matches("input:not([type=checkbox], [type=radio]), textarea, select");
	if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
		const form = e.target.closest("form[data-enter]");
		return form?.requestSubmit(e.shiftKey ? find("[name=close]", form) : null);
	}
	if (e.target.id === "f-snippets" && /^(Arrow(Up|Down)|Enter)$/.test(e.key)) {
		e.preventDefault();
		const to = options({ ArrowUp: -1, ArrowDown: 1 }[e.key] ?? 0);
		return e.key === "Enter" && to && find("a", to).click();
	}
	const saved = find("#snippets"), off = field || e.ctrlKey || e.metaKey || e.altKey || page.keys === "off" || find("dialog[open]");
	if (e.key === "/" && saved && (e.target.id === "f-reply" ? !e.target.value : !off)) {
		e.preventDefault();
		saved.open = true;
		find("#f-snippets").focus();
		return options(0);
	}
	if (e.key === "Escape" && !find("dialog[open]")) {
		const menu = e.target.closest("[data-menu]");
		shut();
		if (menu || field) focusOn(menu?.firstElementChild);
	}
	if (off) return;
	const key = (now() - went < 1500 ? "g " : e.shiftKey && e.key > "@" ? "Shift+" : "") + e.key;
	went = key === "g" ? now() : 0;
	const way = { j: 1, k: -1, "]": 1, "[": -1 }[key], to = way && row(way);
	if (to) {
		focusOn(to);
		if ("[]".includes(key)) active().click();
	} else if (key === "?") dialog(find("#keys").content.cloneNode(true).childNodes);
	else {
		const el = all(`[data-shortcut="${CSS.escape(key)}"]`).find(visible);
		if (!el) {
			if (key !== "/") return;
			page.keys = "off"; // what is typed meanwhile is meant for the field
			return (location = "/contacts#f-find");
		}
		el.focus();
		if (!el.matches("input")) el.click();
	}
	e.preventDefault();
});
