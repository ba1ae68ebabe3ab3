// A program like that of a user, with openapi-typescript, openapi-fetch and orval. It does
// the main job. The types of the API description check it before it runs, and the zod
// schemas check it while it runs.
import createClient from "openapi-fetch";
import type { components, paths, webhooks } from "./parley.js";
import * as schemas from "./zod.js";

declare const process: { env: Record<string, string> };

const client = createClient<paths>({ baseUrl: process.env.BASE, headers: { Authorization: `Bearer ${process.env.KEY}` } });

function check(ok: unknown, what: string, ...saw: unknown[]): asserts ok {
  if (!ok) throw new Error(`${what}: ${JSON.stringify(saw)}`);
}

type Schema = { safeParse(value: unknown): { success: boolean; error?: unknown } };
type Answer = { data?: unknown; error?: unknown; response: Response };

// valid checks that a schema accepts a response, and refuses it if any field is missing.
function valid(schema: Schema, answer: Answer, status: number, what: string) {
  check(answer.response.status === status, what, answer);
  const body = answer.data ?? answer.error;
  check(schema.safeParse(body).success, what, body, schema.safeParse(body).error);
  for (const path of fields(body)) {
    check(!schema.safeParse(without(body, path)).success, `${what} without ${path.join("/")}`, body);
  }
}

// fields returns the paths of all fields in a value. It leaves out the content of attributes,
// and the content of an event's record: its schema depends on the type of the event.
function fields(value: unknown): string[][] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const open = name === "attributes" || (name === "data" && "changed" in value);
    const below = open ? [] : fields(inner).map((path) => [name, ...path]);
    return Array.isArray(value) || name === "details" ? below : [[name], ...below]; // not every error has details
  });
}

function without(value: any, [name, ...rest]: string[]): unknown {
  const copy = Array.isArray(value) ? [...value] : { ...value };
  if (rest.length) copy[name] = without(copy[name], rest);
  else delete copy[name];
  return copy;
}

const attribute = await client.POST("/attributes", { body: { key: "tier", type: "select", options: ["free", "pro"] } });
check(attribute.data?.data.key === "tier", "attribute", attribute);
valid(schemas.upsertAttribute201Response, attribute, 201, "attribute");
valid(schemas.listAttributes200Response, await client.GET("/attributes"), 200, "attributes");

const members = await client.GET("/members");
valid(schemas.listMembers200Response, members, 200, "members");
valid(schemas.listChannels200Response, await client.GET("/channels"), 200, "channels");

const ada = { external_id: "ts-1", name: "Ada", phone: "+1 202 555 0148", owner: members.data!.data[0]!.email, attributes: { tier: "pro" } };
const created = await client.POST("/contacts", { body: ada });
const known: components["schemas"]["Contact"] = created.data!.data; // an upsert returns a contact, new or not
check(known.id && created.data?.data.attributes.tier === "pro" && created.data.data.id, "contact", created);
valid(schemas.upsertContact201Response, created, 201, "contact");
const id = { path: { id: created.data.data.id } };
valid(schemas.listContactIdentities200Response, await client.GET("/contacts/{id}/identities", { params: id }), 200, "identities");

const tried = await client.POST("/contacts", { body: { external_id: "ts-3", dry_run: true } });
const would = tried.data as unknown as components["schemas"]["TriedContactAnswer"]; // the response to a dry run has its own type
check(would.data.id === null && tried.response.headers.get("Dry-Run") === "true", "a dry run", tried);
valid(schemas.upsertContact200Response, await client.POST("/contacts", { body: ada }), 200, "the same contact again");

const bad = { ...ada, attributes: { tier: "gold" } };
const refused = await client.POST("/contacts", { body: bad });
check(refused.response.status === 422 && refused.error?.error.type === "invalid_attributes", "a bad value", refused);
valid(schemas.upsertContact422Response, refused, 422, "a bad value");

const conflict = { external_id: "ts-2", phone: ada.phone };
const batch = await client.POST("/contacts/batch", {
  body: {
    operations: [
      { op: "upsert", data: { external_id: "ts-2" } },
      { op: "upsert", data: bad },
      { op: "upsert", data: conflict },
      { op: "upsert", data: { name: "Nobody" } },
      { op: "assign", external_id: "ts-2", owner: null },
      { op: "assign", external_id: "ts-3", owner: null },
      { op: "delete", id: created.data.data.id.replace(/.$/, "x") },
      { op: "delete", identities: [{ kind: "external_id", value: "ts-2" }] },
    ],
  },
});
const [first, second] = batch.data?.results ?? [];
check(first?.status === "created" && first.id, "the first row", batch);
check(second?.status === "error" && second.error.type === "invalid_attributes" && second.error.details[0].key === "tier", "the second row", batch);
check(batch.data?.results.map((row) => row.status).join() === "created,error,error,error,assigned,error,error,deleted", "the rows", batch);
valid(schemas.batchContacts200Response, batch, 200, "batch");
await client.POST("/contacts", { body: { external_id: "ts-2" } });
valid(schemas.upsertContact409Response, await client.POST("/contacts", { body: conflict }), 409, "a conflict");

const list = await client.GET("/contacts", { params: { query: { external_id: "ts-1" } } });
check(list.data?.data[0]?.id === created.data.data.id, "list", list);
valid(schemas.listContacts200Response, list, 200, "list");
const templates = await client.GET("/templates", { params: { query: { contact_id: id.path.id, agent: ada.owner } } });
const template = templates.data?.data[0];
check(template?.variables.length === 2, "templates", templates);
valid(schemas.listTemplates200Response, templates, 200, "templates");

function send(key: string, to: { phone: string }, language: string, variables: string[]) {
  return client.POST("/conversations/outbound", {
    params: { header: { "Idempotency-Key": key } },
    body: { to, opt_in_confirmed: true, template: { name: template!.name, language, variables } },
  });
}
const to = { phone: ada.phone };
const sent = await send("ts", to, template.language, ["Ada", "A-77"]);
check(sent.data?.data.conversation.contact_id === created.data.data.id && sent.data.data.conversation.id, "send", sent);
valid(schemas.sendTemplate201Response, sent, 201, "send");
valid(schemas.sendTemplate422Response, await send("ts-bad", to, template.language, ["Ada", ""]), 422, "a bad variable");
valid(schemas.sendTemplate404Response, await send("ts-unknown", to, "xx", []), 404, "another language");
valid(schemas.sendTemplate409Response, await send("ts", to, "xx", []), 409, "another body");
const lost = await send("ts-lost", { phone: "+12025550003" }, template.language, ["Ada", "A-77"]);
valid(schemas.sendTemplate503Response, lost, 503, "a lost answer");

const conversation = { path: { id: sent.data.data.conversation.id } };
valid(schemas.getConversation200Response, await client.GET("/conversations/{id}", { params: conversation }), 200, "conversation");
valid(schemas.listMessages200Response, await client.GET("/conversations/{id}/messages", { params: conversation }), 200, "messages");
valid(schemas.listContactConversations200Response, await client.GET("/contacts/{id}/conversations", { params: id }), 200, "the contact's conversations");
const none = await client.GET("/contacts/{id}", { params: { path: { id: "none" } } });
valid(schemas.getContact404Response, none, 404, "an unknown contact");

// A field with a default need not be sent, and the types allow this.
const endpoint: paths["/webhooks"]["post"]["requestBody"]["content"]["application/json"] = { url: "https://crm.example.com/in" };
const added = await client.POST("/webhooks", { body: { ...endpoint, enabled: false } });
check(added.data?.data.types.join() === "*", "a webhook", added);
valid(schemas.addWebhook201Response, added, 201, "a webhook");
const rotated = await client.POST("/webhooks/{id}/rotate", { params: { path: { id: added.data.data.id } }, body: {} });
check(rotated.data?.data.secret !== added.data.data.secret, "a new secret", rotated);
valid(schemas.rotateWebhook200Response, rotated, 200, "a new secret");

// There are also types for a receiver of webhooks.
type Delivered<Name extends keyof webhooks> = webhooks[Name]["post"]["requestBody"]["content"]["application/json"];
function about(event: Delivered<"event"> | Delivered<"ping">): string {
  return event.type === "webhook.ping" ? "ping" : event.subject.id;
}
const feed = await client.GET("/events", { params: { query: { types: "webhook.*" } } });
const events = (feed.data as { data: Delivered<"event">[] }).data; // not a stream
check(about(events[0]!) === added.data.data.id, "an event", feed);
valid(schemas.listEvents200Response, feed, 200, "events");
