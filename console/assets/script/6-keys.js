// ---- Keys

// row returns the row that is this many steps from the row in use.
function row(step) {
	const rows = all("[data-row]").filter((r) => visible(r) || inbox()?.contains(r));
	const used = rows.find((r) => r.contains(active())) ?? rows.find((r) => r.matches("[aria-current]"));
	return rows[used ? rows.indexOf(used) + step : 0];
}

let went = 0; // the time at which g was pressed
when("keydown", (e) => {
	if (e.isComposing || e.keyCode === 229 || e.defaultPrevented) return;
	const field = e.target.matches("input:not([type=checkbox], [type=radio]), textarea, select");
	if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
		const form = e.target.closest("form[data-enter]");
		return form?.requestSubmit(e.shiftKey ? find("[name=close]", form) : null);
	}
	if (e.key === "Enter" && page.enter && e.target.id === "f-reply" && !e.shiftKey && !e.altKey) {
		e.preventDefault();
		return (e.target.value.trim() || find("#files li")) && find("#reply-do .main") && e.target.form.requestSubmit(find("#reply-do .main"));
	}
	if (e.target.dataset.combo && /^(Arrow(Up|Down)|Enter)$/.test(e.key)) {
		e.preventDefault();
		return e.target.late ? e.target.late.push(e.key) : choose(e.target, e.key);
	}
	if (e.code === "KeyK" && (e.ctrlKey || e.metaKey) && page.keys === "on" && !find("dialog[open]")) {
		e.preventDefault();
		return find("#f-search") ? find("#f-search").focus() : dialogOf("/search");
	}
	const saved = find("#snippets"), off = field || e.ctrlKey || e.metaKey || e.altKey || page.keys === "off" || find("dialog[open]");
	if (e.key === "/" && saved && (e.target.id === "f-reply" ? !e.target.value : !off)) {
		e.preventDefault();
		saved.open = true;
		return find("#f-snippets").focus();
	}
	if (e.key === "Escape" && !find("dialog[open]")) {
		const menu = e.target.closest("[data-menu]");
		shut();
		if (!menu && e.target.closest("#panel")) return closePanel();
		if (menu || field) focusOn(menu?.firstElementChild);
	}
	if (off) return;
	const key = (now() - went < 1500 ? "g " : e.shiftKey && e.key > "@" ? "Shift+" : "") + e.key;
	went = key === "g" ? now() : 0;
	const way = { j: 1, k: -1, "]": 1, "[": -1 }[key], to = way && row(way);
	if (to) {
		focusOn(to);
		if ("[]".includes(key)) active().click();
	} else if (key === "?") dialog(find("#shortcuts").content.cloneNode(true).childNodes);
	else {
		const el = all(`[data-shortcut="${CSS.escape(key)}"]`).find(visible);
		if (!el) {
			if (key !== "/") return;
			page.keys = "off"; // keys that are pressed until the next page opens are text for its field
			return (location = "/contacts#f-find");
		}
		el.focus();
		if (!el.matches("input")) el.click();
	}
	e.preventDefault();
});
