// ---- The stream: one for all tabs of a browser

let cursor = page.cursor ?? "", source, beat, signedOut;
const tab = Math.random();
const tabs = page.member && new BroadcastChannel("parley " + page.member);
let recent = [], since = ""; // the stream's names after the cursor since, for new tabs

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
		if (s.readyState < 2) return; // the browser connects again
		source = null;
		setTimeout(listen, 3000 + Math.random() * 4000);
		ask("/live", "live", { method: "HEAD" }).catch(() => 0); // 401: signed out
	};
}

let lost, away, asOf = new Date();
function hear(m) {
	if (m.kind === "hello") { // a new tab: tell it what it has missed
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
			root.classList.toggle("away", (away = true));
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
	root.classList.toggle("away", (away = false));
	if (missed) renew(regions());
	else if (m.kind === "names") changed(m.names.split(" "));
	renew(regions().filter((region) => find("[data-until]", region)?.dataset.until < now()));
	if (m.kind !== "at") news();
}

// ---- Notifications: while it is hidden, the tab with the stream shows who has written

const bell = find("#notify button"), ring = () => bell && (bell.textContent = store.notify ? "Turn off" : "Turn on");
const writers = async () => all("[data-at]", await ask("/me/news", "news").then(read, () => make("p"))); // newest first
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

// Messages from before the sound was turned on do not ring.
if (!page.sound) delete store.heard;
else if (!store.heard) writers().then((rows) => (store.heard ??= newest(rows)));

// chime plays two soft tones.
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

// Notifications are offered in the inbox, until the member has answered.
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

function bar(text, href) {
	find("#offline")?.remove();
	const el = make("p", "toast", text);
	el.id = "offline";
	if (href) el.append(" ", Object.assign(make("a", "", "Sign in"), { href }));
	find("#toasts").prepend(el);
}

if (tabs) {
	tabs.onmessage = (e) => hear(e.data);
	tabs.postMessage({ kind: "hello", from: tab, cursor });
	if (navigator.locks) navigator.locks.request("parley " + page.member, () => new Promise((free) => {
		listen();
		addEventListener("pagehide", () => free(source?.close()));
	}));
	else { // over plain HTTP: each visible tab has its own stream
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

