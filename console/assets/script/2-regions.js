// ---- Regions

// A region is an element with data-live: a list of kinds of records, or of single records
// as kind:id. When records change, all regions that show them are fetched together: at
// once and then at most once a second, but not while the page is hidden.
const regions = () => all("[data-live]");
const stale = new Set(), etags = {}, titled = find("title");
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

// A region with data-every shows work that goes on.
setInterval(() => renew(regions().filter((region) => find("[data-every]", region)), 0), 2e3);

async function refresh() {
	const places = Map.groupBy([...stale].filter((region) => region.isConnected), (region) => region.dataset.from ?? page.at ?? location.pathname + location.search);
	stale.clear();
	fetched = now();
	let wait, again = [];
	for (const [place, list] of places) {
		const names = list.map((region) => region.id).join(" ");
		try {
			const answer = await ask(place, names, { headers: { "If-None-Match": etags[names] ?? "" } });
			if (answer.status >= 500) throw answer;
			if (answer.status === 200) {
				const fresh = await read(answer);
				etags[names] = answer.headers.get("ETag");
				for (const region of list) region.set >= fetched ? stale.add(region) : show(region, find("#" + region.id, fresh), find("[data-whole]", region));
			} else if (answer.status === 404) gone ||= !toast("This was deleted.", true);
		} catch {
			again.push(...list);
			wait = 5e3;
		}
	}
	fetching = 0;
	if (!signedOut) renew(again, wait);
}

// show updates a region to fresh. If a list is in use, it keeps its order. The new order
// comes later: when the list is no longer in use, or when the button is clicked.
function show(region, fresh, must) {
	const had = active();
	const next = region.contains(had) ? neighbours(had) : [];
	const log = region.closest("[data-thread]"), follows = log && atEnd(log);
	const at = region === inbox() && scroller().scrollTop > 8 && place();
	const waits = must ? null : { count: 0 }, held = find("[data-mine]", region);
	children(region, fresh, waits);
	if (held?.matches(":not([data-mine])")) toast("No longer yours: " + held.textContent, true);
	region.waiting = waits?.order && fresh;
	offer(region, waits?.count);
	if (at) goTo(at);
	if (follows) toEnd(log);
	markRead();
	if (next.length && !had.isConnected) focusOn(next.map((id) => document.getElementById(id)).find(Boolean));
	if (region.id === "waiting" && titled.dataset.plain) document.title = (region.textContent && `(${find("b", region).textContent}) `) + titled.dataset.plain;
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

// settle shows the waiting updates of lists that are no longer in use.
const settle = () => regions().forEach((region) => region.waiting && show(region, region.waiting));
for (const type of ["pointerout", "focusout"]) when(type, () => setTimeout(settle, 300));

const inUse = (list) => list.contains(active()) || (matchMedia("(hover: hover)").matches && list.matches(":hover"));

// Elements in use are never changed.
const kept = (n) => n.nodeType === 1 && (n.matches("[data-keep], dialog[open]") || (n.matches("textarea") && n.value) ||
	(n === active() && n.matches("input, textarea, select")));

// scripted are the attributes that this page sets, so an update does not remove them.
const scripted = new Set(["open", "inert", "data-busy"]);

function morph(from, to, waits) {
	if (kept(from) || from.isEqualNode(to)) return;
	if (from.nodeType !== 1) return void (from.data = to.data);
	// A click within a second of a colleague's change was probably meant for the old
	// state. Therefore the fields seen_ change a second later.
	if (from.matches("[name^=seen_]")) {
		const seen = () => (from.value = from.to.value);
		from.to = to;
		return void setTimeout(() => from.name === "seen_message" && all(".bubble").at(-1)?.matches(".theirs") ? seen() : setTimeout(seen, 1000));
	}
	for (const { name } of [...from.attributes]) scripted.has(name) || to.hasAttribute(name) || from.removeAttribute(name);
	for (const { name, value } of to.attributes) name === "open" || from.setAttribute(name, value);
	children(from, to, waits);
}

// children replaces the children of the element from by those of the element to. Children
// are matched by id. Those without an id are matched by position.
function children(from, to, waits) {
	const ids = new Set(Array.from(to.children, (n) => n.id));
	if (waits && from.matches("[data-order] :is(ol, ul, tbody)") && inUse(from)) return inPlace(from, to, ids, waits);
	const mine = new Map();
	for (const n of [...from.children]) {
		if (!n.id) continue;
		if (ids.has(n.id)) mine.set(n.id, n);
		else if (!kept(n)) n.remove(); // removed first, so that the other children need not move
	}
	let at = from.firstChild;
	for (const n of [...to.childNodes]) {
		while (at?.id && !ids.has(at.id)) at = at.nextSibling; // at is an element in use, which stays
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

// bring moves n before at. A move would take the focus and the selection from n. If n has
// one of them, the nodes between n and at are moved instead.
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

// inPlace updates rows without changing their order.
function inPlace(list, to, ids, waits) {
	const rows = new Map(Array.from(list.children, (n) => [n.id, n]));
	for (const n of to.children) {
		if (rows.has(n.id)) morph(rows.get(n.id), n, waits);
		else waits.count++;
	}
	if ([...rows.keys()].join() !== [...ids].join()) waits.order = true;
}

// ---- The scroll position of the inbox's list

// The position is stored as the visible rows. It is restored on the next page, and when
// the list changes.
const inbox = () => find("#list[data-place]"), pane = () => find(".list-pane");
const scroller = () => (getComputedStyle(pane()).overflowY === "auto" ? pane() : document.scrollingElement);
const top0 = () => Math.max(0, pane().getBoundingClientRect().top);
const place = () => all("li", inbox()).map((row) => [row.id, row.getBoundingClientRect()])
	.filter(([, { top, bottom }]) => bottom > top0() && top < innerHeight).map(([id, { top }]) => [id, top - top0()]);

function goTo(rows) {
	const at = rows.find(([id]) => document.getElementById(id));
	if (at) scroller().scrollTop += document.getElementById(at[0]).getBoundingClientRect().top - top0() - at[1];
}

function keepPlace(list, { places = "[]", left, used } = sessionStorage) {
	const of = list.dataset.place, known = JSON.parse(places), kept = known.find(([key]) => key === of)?.[1];
	const here = find(".here", list);
	const back = () => {
		if (!visible(list)) return;
		if (kept) goTo(kept);
		here?.scrollIntoView({ block: "nearest" });
	};
	back();
	addEventListener("load", back); // after the browser has scrolled to the fragment
	if (visible(list) && active() === document.body) {
		const row = here ? used && here : document.getElementById(left);
		if (row) find("a", row).focus({ preventScroll: true, focusVisible: false });
	}
	sessionStorage.left = here?.id ?? "";
	addEventListener("pagehide", () => {
		sessionStorage.used = inbox()?.contains(active()) ? "yes" : "";
		if (!inbox() || !visible(inbox())) return;
		sessionStorage.places = JSON.stringify([[of, scroller().scrollTop > 0 ? place() : []], ...known.filter(([key]) => key !== of)].slice(0, 20));
	});
	if (find("[data-whole]", list)) renew([list]);
}
if (inbox()) keepPlace(inbox());

// ---- Focus

// neighbours lists the ids of the other rows: first those after the given element's row,
// then those before it.
function neighbours(el) {
	const row = el.closest("li, tr"), ids = [];
	for (const side of ["next", "previous"]) for (let n = row; (n = n?.[side + "ElementSibling"]); ) ids.push(n.id);
	return [...ids, "main"];
}

function focusOn(el = find("#main")) {
	(el.matches("a, button, summary, input, textarea, select, [tabindex]") ? el : find("a, button", el) ?? find("#main")).focus();
}

const atEnd = (el) => el.scrollHeight - el.scrollTop - el.clientHeight < 48;
const toEnd = (el) => el.scrollTo(0, el.scrollHeight);

// threads scrolls each thread to its end. A thread that is at its end stays there when
// its size changes.
const threads = () => all("[data-thread]").forEach((el) => {
	let ends = true, height = el.clientHeight;
	toEnd(el);
	el.onscroll = () => {
		if (el.clientHeight === height) ends = atEnd(el); // else it was not the reader who left the end
	};
	new ResizeObserver(() => {
		height = el.clientHeight;
		if (ends) toEnd(el);
	}).observe(el);
});
threads();
find(".tabs [aria-current]")?.scrollIntoView({ block: "nearest" });

