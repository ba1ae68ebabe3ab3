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

