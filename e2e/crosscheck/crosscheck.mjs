// An independent program that tests the simulator from both sides: its client sends a
// template, and its webhook reader reads the callbacks, with the signature check turned on.
//
// The environment has the address of the simulator, its secrets and its numbers: SIM, TOKEN,
// SECRET, VERIFY, PNID, TO. Standard output has one line of JSON for each event. The first
// line has the address for webhooks. The program ends at the end of standard input.
import { createServer } from "node:http";
import { webcrypto } from "node:crypto";
import { createInterface } from "node:readline";
import { WhatsAppAPI } from "whatsapp-api-js";
import {
  BodyComponent, BodyParameter, HeaderComponent, HeaderParameter, Language, Template,
} from "whatsapp-api-js/messages";

const { SIM, TOKEN, SECRET, VERIFY, PNID, TO } = process.env;
const say = (what) => console.log(JSON.stringify(what));

const api = new WhatsAppAPI({
  token: TOKEN, appSecret: SECRET, webhookVerifyToken: VERIFY, v: "v26.0",
  ponyfill: {
    fetch: (url, options) => fetch(String(url).replace("https://graph.facebook.com", SIM), options),
    subtle: webcrypto.subtle,
  },
});
api.on.message = ({ from, message, name }) => say({ message: message.type, from, name, text: message.text?.body, id: message.id });
api.on.status = ({ phone, status, id, error, biz_opaque_callback_data }) =>
  say({ status, phone, id, code: error?.code, callback: biz_opaque_callback_data });

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", async () => {
    const url = new URL(request.url, "http://localhost");
    try {
      if (request.method === "GET") {
        response.end(api.get(Object.fromEntries(url.searchParams)));
        return;
      }
      const raw = Buffer.concat(chunks).toString();
      await api.post(JSON.parse(raw), raw, request.headers["x-hub-signature-256"]);
      response.end();
    } catch (error) {
      say({ refused: error.httpStatus ?? String(error) });
      response.writeHead(error.httpStatus ?? 500).end();
    }
  });
});

server.listen(0, "127.0.0.1", () => say({ webhooks: `http://127.0.0.1:${server.address().port}/` }));

// For each line of standard input, send the template. The line is the callback id.
for await (const callback of createInterface({ input: process.stdin })) {
  const answer = await api.sendMessage(PNID, TO,
    new Template("siparis_hazir", new Language("tr"),
      new HeaderComponent(new HeaderParameter("Ayşe", "musteri_adi")),
      new BodyComponent(new BodyParameter("A-17", "siparis_no"), new BodyParameter("Ali Kaya", "temsilci_adi"))),
    undefined, callback);
  say({ sent: answer.messages?.[0]?.id ?? null, answer });
}
server.close();
server.closeAllConnections();
