// ---- Forms

// into is a function that updates a part of the page from a link or a form in it.
async function into(part, url, form) {
	try {
		const answer = await (form ? post(form, part) : ask(url, part));
		if (answer.status > 499) throw answer;
		const fresh = find("#" + part, await read(answer)), region = find("#" + part);
		find("form[data-into]", region)?.remove(); // removed, so that the new form is shown
		show(region, fresh, true);
		region.set = now(); // a fetch of this region that began earlier is out of date
		if (!form) history.replaceState(null, "", url);
		else if (answer.redirected) history.replaceState(null, "", answer.url.replace(/[?&]done=\w+/, ""));
		focusOn(find("form[data-into] :is(input:not([type=hidden]), textarea, select)", region) ?? find(".edit", region) ?? undefined);
		if (answer.redirected) toast("Saved.");
	} catch {
		form ? toast("No answer came, so nothing may be saved. Try again.", true) : (location = url);
	}
}

addEventListener("pageshow", (e) => e.persisted && location.reload());

when("submit", (e) => {
	const form = e.target, sends = form.matches("[data-send]") && e.submitter?.name !== "preview";
	if (form.method !== "post") return;
	if (form.dataset.into) {
		e.preventDefault();
		return void into(form.dataset.into, "", form);
	}
	const away = ["", "/me", "/settings/members/" + page.member]; // where the member signs out
	if (away.some((at) => new URL(form.action).pathname === at + "/sign-out")) drafts(mine).forEach(drop);
	if (sends || form.dataset.busy) e.preventDefault();
	const button = e.submitter ?? find("button:not([name], [type])", form);
	if (sends && button && !form.dataset.busy) send(form, button);
	form.dataset.busy = "yes";
});

// send sends a form with an idempotency key, so that a second try has no second effect.
async function send(form, button) {
	const state = find(".state", form) ?? form.appendChild(make("p", "state"));
	const draft = mine + form.dataset.draft, text = form.elements.reply?.value, bubble = make("li", "bubble ours");
	state.role = "status";
	state.textContent = "Sending…";
	state.dataset.keep = button.dataset.keep = ""; // they tell how the send went, which no update of the page knows
	button.focus();
	if (attached(form)) {
		const sent = sendFiles(form, button, state);
		for (const el of form.elements) el.inert = el !== button;
		return sent;
	}
	if (text) {
		bubble.append(make("p", "text", text), make("p", "under", "Sending…"));
		all(".messages").pop()?.append(bubble);
		toEnd(find("[data-thread]"));
	}
	const box = form.closest("#panel"), sent = post(form, box ? "sending" : "main", button);
	for (const el of form.elements) el.inert = el !== button; // the key belongs to the values of the fields, so they must not change
	try {
		const answer = await sent;
		if (answer.redirected) {
			drop(draft);
			return (location = answer.url);
		}
		const fresh = await read(answer);
		if (answer.status > 501 && !find("[data-send]", fresh)) throw answer;
		if (box) return fillPanel(fresh);
		find("#main").replaceChildren(...find("#main", fresh).childNodes);
		if (find("#reply[data-keep]")) drop(draft); // it is not known whether the message was sent
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

// A form with data-preview names a part of the page. While the form changes, this part is
// updated. Keys that choose from a list wait for its update, in the field's property late.
let typing, typed = 0;
when("input", ({ target }) => {
	const form = target.closest("form[data-preview]"), mine = ++typed;
	saveDraft(target);
	clearTimeout(typing);
	target.late = form && target.dataset.combo ? [] : null;
	if (form) typing = setTimeout(async () => {
		const part = form.dataset.preview, what = "#" + part;
		const answer = await (form.method === "get" ? ask(form.action + "?" + new URLSearchParams(new FormData(form)), part) : post(form, part, null, "preview")).catch(() => 0);
		const fresh = answer.ok && find(what, await read(answer)), region = find(what); // the part may have left the page by now
		if (mine !== typed) return; // more was typed
		if (fresh && region) show(region, fresh);
		const keys = (fresh && target.late) || []; // nobody chooses from a list that is not theirs
		target.late = null;
		options(target, 0);
		for (const key of keys) choose(target, key);
	}, 250);
});

when("change", ({ target }) => target.form?.matches("[data-auto]") && target.form.requestSubmit());

// ---- Replies

// A draft belongs to a member and a conversation, and is kept for 30 days.
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

// Visible messages count as read.
function markRead() {
	const form = find("form[data-read]");
	if (!form || form.dataset.busy || document.hidden || !atEnd(find("[data-thread]"))) return;
	form.dataset.busy = "yes";
	post(form, "foot").catch(() => delete form.dataset.busy);
}
markRead();
when("visibilitychange", () => markRead(renew([])));
addEventListener("scroll", markRead, true);

// fill inserts the text of a saved reply.
async function fill(href) {
	const fresh = await read(await ask(href, "foot")), field = find("#f-reply");
	shut();
	field.focus();
	document.execCommand("insertText", false, find("#f-reply", fresh).value);
}

