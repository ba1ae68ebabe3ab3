// Every page works without this script. It keeps pages up to date, and adds keys and dialogs.
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

// All HTML comes from this server.
const asIs = { createHTML: (html) => html };
const policy = window.trustedTypes?.createPolicy("parley", asIs) ?? asIs;
const read = async (answer) => new DOMParser().parseFromString(policy.createHTML(await answer.text()), "text/html").body;

// ask fetches parts of a page: some regions, or main.
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
	for (const [name, value] of more ? [...data] : []) {
		if (typeof value === "string") continue;
		data.delete(name); // a preview needs only the name of a file
		if (value.name) data.append("named", value.name);
	}
	if (more) data.append(more, 1);
	return ask(form.action, part, { method: "POST", body: files ? data : new URLSearchParams(data), signal: AbortSignal.timeout(files ? 6e5 : 3e4) });
}

