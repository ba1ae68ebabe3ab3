// ---- Toasts

// A toast is a part of the page, above the rest, so it covers nothing.
function toast(text, bad) {
	const el = make("p", bad ? "toast bad" : "toast", text);
	find("#toasts").append(el);
	passing(el);
	el.scrollIntoView({ block: "nearest" });
}

// passing adds a button that closes a toast, and removes the toast after a while. An
// error stays.
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
if (here.hash.startsWith("#c-")) here.hash = "";
history.replaceState(null, "", here);

// counts announces the numbers of the elements with data-status, at most once in 10
// seconds.
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

// ---- Notifications: while it is hidden, the tab that has the stream shows who has
// written

const bell = find("#notify button"), ring = () => bell && (bell.textContent = store.notify ? "Turn off" : "Turn on");
const writers = async () => all("[data-at]", await ask("/me/news", "news").then(read, () => make("p"))); // the newest first
const newest = (rows) => rows[0]?.dataset.at ?? "0";
let telling;

function news() {
	if (source && (page.sound || (document.hidden && store.notify))) telling ||= setTimeout(async () => {
		telling = 0;
		const rows = await writers();
		if (page.sound && newest(rows) > store.heard) {
			store.heard = newest(rows);
			chime();
		}
		if (document.hidden && store.notify) for (const { dataset, firstChild: link } of rows.reverse()) {
			if (dataset.at <= store.notify) continue;
			store.notify = dataset.at;
			new Notification(link.textContent, { tag: link.href }).onclick = () => open(link.href, "_self", focus());
		}
	}, 1000);
}

// Messages that came before the sound was turned on make no sound.
if (!page.sound) delete store.heard;
else if (!store.heard) writers().then((rows) => (store.heard ??= newest(rows)));

// chime plays a soft sound of two tones.
function chime() {
	const audio = new AudioContext(), volume = audio.createGain();
	volume.connect(audio.destination);
	volume.gain.setValueAtTime(0.2, audio.currentTime);
	volume.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + 0.8);
	[660, 880].forEach((pitch, i) => {
		const tone = audio.createOscillator();
		tone.frequency.value = pitch;
		tone.connect(volume);
		tone.start(audio.currentTime + i / 6);
		tone.stop(audio.currentTime + 0.8);
	});
	setTimeout(() => audio.close(), 2000);
}

async function turnOn() {
	const may = await window.Notification?.requestPermission() === "granted";
	may ? (store.notify = newest(await writers())) : toast("The browser forbids it.", true);
	ring();
}

// The inbox offers notifications until the member has accepted or refused.
const offered = find("#offer");
if (offered && window.Notification?.permission === "default" && !store.notify && !store.offered) {
	offered.hidden = false;
	offered.onclick = ({ target }) => {
		if (!target.matches("button")) return;
		store.offered = "yes";
		offered.remove();
		focusOn();
		if (!target.matches("[data-no]")) turnOn();
	};
}

if (bell) {
	if (window.Notification?.permission !== "granted") delete store.notify;
	ring();
	bell.onclick = () => {
		if (!store.notify) return turnOn();
		delete store.notify;
		ring();
	};
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
		if (!answer.ok || answer.redirected) throw answer;
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
	spoken.textContent = "Copied.";
	const label = button.dataset.label ??= button.textContent;
	button.textContent = "Copied";
	setTimeout(() => (button.textContent = label), 3e3);
}

const shut = (but) => all("details[data-menu][open]").forEach((menu) => menu.contains(but) || (menu.open = false));

when("click", (e) => {
	shut(e.target);
	if (e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
	const on = (what) => e.target.closest(what);
	if (on("[data-copy]")) return copy(on("[data-copy]"));
	if (on("[data-chime]")) return chime();
	if (on("a[data-beside]")) {
		e.preventDefault();
		find(".inbox").classList.toggle("with-person");
		return focusOn(all("[data-beside]").find(visible));
	}
	if (on("a[data-into]")) {
		e.preventDefault();
		return void into(on("a").dataset.into, on("a").href);
	}
	if (on("a[href*='#c-']")) return void (on("a").hash = ""); // the script restores the scroll position itself
	if (on("dialog [data-cancel]")) on("dialog").close();
	else if (on("a[data-dialog]")) dialogOf(on("a").href);
	else if (on("a[data-fill]")) fill(on("a").href).catch(() => (location = on("a").href));
	else return;
	e.preventDefault();
});

