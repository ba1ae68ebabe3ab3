// ---- Comboboxes

// A field with data-combo searches a list, whose id is the attribute's value. The list's
// links or buttons are the options. The function options moves from one option to
// another.
function options(field, step) {
	const box = document.getElementById(field.dataset.combo);
	if (!box) return;
	const list = all("a, button", box), from = list.findIndex((el) => el.ariaSelected === "true");
	const at = list.at((Math.max(from, 0) + step) % list.length);
	box.role = "listbox";
	for (const el of box.children) el.role = "none";
	for (const el of list) {
		el.role = "option";
		el.tabIndex = -1;
		el.ariaSelected = el === at;
	}
	field.role = "combobox";
	field.ariaAutoComplete = "list";
	field.ariaExpanded = !!at;
	field.setAttribute("aria-controls", box.id);
	field.setAttribute("aria-activedescendant", at?.id ?? "");
	at?.scrollIntoView({ block: "nearest" });
	return at;
}

// choose does what a key means in such a field.
function choose(field, key) {
	const to = options(field, { ArrowUp: -1, ArrowDown: 1 }[key] ?? 0);
	if (key === "Enter") to?.click();
}

const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

// pick lists the options of a select that contain the typed text. It begins with the
// options in which the text comes first.
function pick(field) {
	const select = find("select", field.form), typed = plain(field.value.trim()), at = (o) => plain(" " + o.text).indexOf(" " + typed) >>> 0;
	const list = [...select.options].filter((o) => o.value && plain(o.text).includes(typed)).sort((a, b) => at(a) - at(b));
	document.getElementById(field.dataset.combo).replaceChildren(...list.map((o) => {
		const li = make("li", ""), button = li.appendChild(make("button", "", o.text));
		button.type = "button";
		button.id = "pick-" + o.value;
		button.dir = "auto";
		button.onclick = () => {
			select.value = o.value;
			field.form.requestSubmit();
		};
		return li;
	}));
	options(field, 0);
}
const choosing = ({ target }) => target.dataset?.combo && (target.matches("[data-pick]") ? pick(target) : options(target, 0));
when("focusin", choosing);
when("input", ({ target }) => target.matches("[data-pick]") && pick(target));
addEventListener("toggle", ({ target }) => target.open && target.matches("[data-menu]") && find("[data-combo]", target)?.focus(), true);

// ---- A template, in a panel of the conversation

const box = find("#panel");
let opener;

async function panel(url) {
	try {
		const answer = await ask(url, "sending");
		if (!answer.ok) throw answer;
		fillPanel(await read(answer));
	} catch {
		location = url;
	}
}

function fillPanel(fresh) {
	box.replaceChildren(...(find("#sending", fresh) ?? find("#main", fresh)).childNodes);
	openPanel();
}

function openPanel() {
	box.hidden = false;
	(find("#summary", box) ?? find("[autofocus]", box) ?? find("a, button", box))?.focus();
}

// closePanel hides the panel, and keeps the typed values for the next time.
function closePanel() {
	box.hidden = true;
	focusOn(opener?.isConnected ? opener : find("[data-panel]") ?? undefined);
}

when("click", (e) => {
	const link = e.target.closest("a");
	if (!box || !link || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey || e.defaultPrevented) return;
	if (link.matches("[data-panel]")) {
		opener = link;
		if (find("form", box)) openPanel();
		else panel(link.href);
	}
	else if (link.matches("#panel [data-close]")) closePanel();
	else if (box.contains(link) && link.pathname === "/send") panel(link.href);
	else return;
	e.preventDefault();
});

when("submit", (e) => {
	const form = e.target;
	if (form.method !== "get" || !box?.contains(form)) return;
	e.preventDefault();
	panel(form.action + "?" + new URLSearchParams(new FormData(form)));
});

// ---- Keys: a preset ticks the permissions that it needs

when("click", (e) => {
	const ticks = e.target.closest("[data-ticks]")?.dataset.ticks.split(" ");
	if (!ticks) return;
	e.preventDefault();
	for (const el of all("[name=permissions]")) el.checked = ticks.includes(el.value);
	for (const el of all("[data-ticks]")) el.ariaCurrent = el === e.target ? "true" : null;
	spoken.textContent = e.target.textContent + ": " + ticks.length + " ticked";
});
