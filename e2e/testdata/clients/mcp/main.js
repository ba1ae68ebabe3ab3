// An assistant that uses parley with the protocol's own client, over stdio and over HTTP. It
// lists the tools and uses each of them. It makes a hundred dry runs of a send. Then it calls
// the send a hundred times, and only one message is sent.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { PARLEY, BASE, KEY, FEW } = process.env; // FEW: a key that only has contacts:read
const ways = {
  stdio: (key) => new StdioClientTransport({ command: PARLEY, args: ["mcp"], env: { ...process.env, PARLEY_API_KEY: key } }),
  http: (key) => new StreamableHTTPClientTransport(new URL("/mcp", BASE), { requestInit: { headers: { Authorization: `Bearer ${key}` } } }),
};

async function connect(way, key) {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(ways[way](key));
  return client;
}

async function use(client, name, input = {}) {
  const result = await client.callTool({ name, arguments: input });
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return { refused: result.isError === true, ...result.structuredContent };
}

for (const way of Object.keys(ways)) {
  const few = await connect(way, FEW);
  assert.deepEqual((await few.listTools()).tools.map((t) => t.name), ["find_contact"]);
  const refused = await use(few, "upsert_contact", { external_id: "x" });
  assert.equal(refused.refused, true);
  assert.equal(refused.type, "forbidden");
  assert.match(refused.message, /contacts:write/);
  await few.close();

  const client = await connect(way, KEY);
  const { tools } = await client.listTools();
  const used = new Set();
  const call = (name, input) => (used.add(name), use(client, name, input));

  const phone = way === "stdio" ? "+12025550147" : "+12025550148";
  const tried = await call("upsert_contact", { phone, name: "Ada", dry_run: true });
  assert.equal(tried.data.id, null);
  assert.deepEqual((await call("find_contact", { phone })).data, []);
  const { data: ada } = await call("upsert_contact", { phone, name: "Ada" });
  assert.deepEqual((await call("find_contact", { id: ada.id })).data, [ada]);
  assert.deepEqual((await call("find_contact", { phone })).data, [ada]);
  assert.ok(Array.isArray((await call("list_attributes")).data));
  const member = (await call("list_members", { limit: 1 })).data[0];
  const template = (await call("list_templates", { contact_id: ada.id })).data[0];

  const message = { to: { contact_id: ada.id }, template: { name: template.name, language: template.language, variables: ["Ada", "A-77"] }, opt_in_confirmed: true };
  for (let i = 0; i < 100; i++) {
    const dry = await call("send_template", message);
    assert.equal(dry.dry_run, true);
    assert.equal(dry.data.message.id, null);
  }
  assert.deepEqual((await call("list_conversations", { contact_id: ada.id })).data, []);
  const sent = await Promise.all(Array.from({ length: 100 }, () => call("send_template", { ...message, dry_run: false, idempotency_key: way })));
  for (const one of sent) {
    assert.equal(one.refused, false, JSON.stringify(one));
    assert.equal(one.dry_run, false);
    assert.equal(one.data.message.id, sent[0].data.message.id);
  }

  const { data: conversations } = await call("list_conversations", { contact_id: ada.id });
  assert.equal(conversations.length, 1);
  const id = conversations[0].id;
  const reply = await call("reply", { id, text: "Two left." }); // refused, because Ada has never written
  assert.equal(reply.refused, true);
  assert.equal(reply.type, "window_closed");
  assert.equal((await call("assign_conversation", { id, member: member.email })).data.assigned_member_id, member.member_id);
  assert.equal((await call("set_conversation_status", { id, status: "closed" })).data.status, "closed");
  const read = await call("read_conversation", { id });
  assert.equal(read.conversation.status, "closed");
  assert.deepEqual(read.messages.map((m) => m.id), [sent[0].data.message.id]);
  const events = await call("list_events", { types: "message.sent" });
  assert.equal(events.data.filter((e) => e.subject.conversation_id === id).length, 1);

  const { data: draft } = await call("create_broadcast", { name: way, template: { name: template.name, language: template.language }, consent: { confirmed: true } });
  const added = await call("add_broadcast_rows", { id: draft.id, rows: [{ to: { contact_id: ada.id }, variables: { 1: "Ada", 2: "A-77" } }] });
  assert.equal(added.results[0].status, "added");
  assert.equal((await call("check_broadcast", { id: draft.id })).data.looked_at, 1);
  assert.equal((await call("list_broadcasts")).data[0].id, draft.id);
  assert.equal((await call("read_broadcast", { id: draft.id })).data.counts.rows, 1);
  assert.equal((await call("pause_broadcast", { id: draft.id })).refused, true); // it does not run

  assert.deepEqual([...used].sort(), tools.map((t) => t.name).sort());
  await client.close();
}
console.log("done");
