// ---- Files of a reply: each file is a message with its own key; they are sent one after the other

const mostFiles = 30;
let queue = [], keys = 0;

const inKB = (n) => (n < 1e6 ? Math.ceil(n / 1e3) + " KB" : (n / 1e6).toFixed(1) + " MB");

function attach(list) {
	queue = queue.filter((item) => item.row.isConnected);
	if (!find("#files") || !find("#reply-do .main")) return toast("No files can be sent here now.", true);
	for (const file of list) {
		if (queue.length === mostFiles) return toast(`Up to ${mostFiles} files at once.`, true);
		const row = make("li", ""), out = make("button", "btn plain small", "×"), item = { file, row };
		out.type = "button";
		out.ariaLabel = "Leave out " + file.name;
		out.onclick = () => {
			row.remove();
			find("#f-reply").focus();
		};
		row.append(make("bdi", "", file.name), make("span", "soft num", inKB(file.size)), out);
		find("#files").append(row);
		queue.push(item);
	}
}

// attached reports whether the reply form has files.
function attached(form) {
	const field = form.elements.file;
	if (form.id === "reply" && field?.files.length) {
		attach(field.files);
		field.value = "";
	}
	queue = queue.filter((item) => item.row.isConnected);
	return form.id === "reply" && queue.length;
}

// upload posts a form, and shows the progress.
const upload = (url, data, progress) => new Promise((done, lost) => {
	const x = new XMLHttpRequest();
	x.open("POST", url);
	x.setRequestHeader("Parley-Part", "main");
	x.timeout = 6e5;
	x.upload.onprogress = (e) => (progress.value = e.loaded / e.total);
	x.onload = () => done(x);
	x.onerror = x.ontimeout = lost;
	x.send(data);
});

async function sendFiles(form, button, state) {
	const field = form.elements.reply, first = queue[0], last = queue.at(-1);
	let to, lost;
	for (const item of queue) {
		const { file, row } = item, progress = make("progress", "");
		const data = new FormData(form, button);
		if (!item.key) { // the key stays with this content, even if the fields change before the next try
			const head = item === first;
			Object.assign(item, { key: form.elements.key.value + "-" + ++keys, head, text: head ? field.value : "", quote: head && form.elements.reply_to?.value });
		}
		data.set("key", item.key);
		data.set("reply", item.text); // the first file has the text
		data.delete("reply_to");
		if (item.quote) data.set("reply_to", item.quote);
		if (!item.head) data.delete("button");
		if (item !== last) data.delete("close");
		data.delete("file");
		if (item.media) data.set("media", item.media); // the server has kept the file
		else data.append("file", file);
		progress.value = 0;
		progress.ariaLabel = "Sending " + file.name;
		find(".error", row)?.remove();
		row.append(progress);
		state.textContent = "Sending " + file.name + "…";
		let x;
		try {
			x = await upload(form.action, data, progress);
			if (x.status > 501 && !x.responseText.includes("data-send")) throw x;
		} catch {
			lost = true;
		}
		progress.remove();
		if (lost) {
			item.lost = true;
			row.append(make("p", "error", "No answer came."));
			break;
		}
		if (x.status === 401) tell({ kind: "out" });
		const fresh = await read({ text: () => x.responseText });
		const spent = () => { // the text and the quote were sent with the first file, so the form must not keep them
			if (!item.head) return;
			if (field.value === item.text) {
				field.value = "";
				drop(mine + form.dataset.draft);
			}
			find("[name=reply_to]", form)?.parentNode.remove();
		};
		const see = () => {
			for (const name of ["message", "assignee", "status"]) {
				const seen = find(`#reply [name=seen_${name}]`, fresh);
				if (seen) form.elements["seen_" + name].value = seen.value;
			}
		};
		if (x.status < 400) {
			to = x.responseURL;
			row.remove();
			see();
			spent();
			continue;
		}
		row.append(make("p", "error", (find("#news h2, #summary h2", fresh) ?? find("h1", fresh))?.textContent ?? "It was not sent."));
		if (find("#reply[data-keep]", fresh)) { // it is not known whether the message was sent, so there is no second try
			item.doubt = true;
			spent();
			row.append(Object.assign(make("a", "", "See how it ends"), { href: "/sends?doubt=yes" }));
			break;
		}
		item.media = find("#reply-with [name=media]", fresh)?.value;
		if (x.status < 500 || !item.lost) item.key = null;
		if (x.status !== 413 && x.status !== 422) { // the conversation has changed: the form takes over the new state for the next try
			see();
			break;
		}
	}
	queue = queue.filter(({ row, doubt }) => row.isConnected && !doubt);
	if (to && !find("#files li")) return (location = to);
	state.textContent = lost ? "No answer came. If you try again, each is still sent only once." : "Some were not sent.";
	button.textContent = "Try again";
	for (const el of form.elements) el.inert = lost && el !== button;
	button.focus();
	delete form.dataset.busy;
}

when("click", ({ target }) => target.id === "f-file" && (target.multiple = true));
when("change", ({ target }) => {
	if (!target.matches("#f-file, #f-photo")) return;
	attach(target.files);
	target.value = "";
});
when("paste", (e) => {
	const list = e.clipboardData?.files;
	if (!list?.length || !e.target.closest("#reply") || e.clipboardData.getData("text/plain")) return;
	e.preventDefault();
	attach(list);
});
const dropped = (e) => e.dataTransfer?.types.includes("Files") && e.target.closest?.(".thread-pane");
const dropping = (el) => {
	find(".dropping")?.classList.remove("dropping");
	el?.classList.add("dropping");
};
when("dragover", (e) => {
	if (!dropped(e)) return;
	e.preventDefault();
	dropping(dropped(e));
});
when("dragleave", (e) => e.relatedTarget || dropping());
when("drop", (e) => {
	dropping();
	if (!dropped(e)) return;
	e.preventDefault();
	attach(e.dataTransfer.files);
});
