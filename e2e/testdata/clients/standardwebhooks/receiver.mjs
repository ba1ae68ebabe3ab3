// A receiver of webhooks. At first it knows one secret. POST is a delivery: it is accepted
// if one of the known secrets verifies it. PUT adds a secret. GET /N returns a list: for each
// delivery from number N, the secrets that verify it.
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const secrets = [new Webhook(process.env.WEBHOOK_SECRET)];
const deliveries = [];

function verifiedBy({ body, headers }) {
  return secrets.flatMap((secret, number) => {
    try {
      secret.verify(body, headers);
      return [number];
    } catch {
      return [];
    }
  });
}

createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray());
  if (request.method === "PUT") {
    secrets.push(new Webhook(body.toString()));
    response.writeHead(204).end();
  } else if (request.method === "GET") {
    const asked = deliveries.slice(Number(request.url.slice(1)));
    response.end(JSON.stringify(asked.map((d) => ({ id: d.headers["webhook-id"], by: verifiedBy(d) }))));
  } else {
    const delivery = { body, headers: request.headers };
    deliveries.push(delivery);
    response.writeHead(verifiedBy(delivery).length > 0 ? 204 : 401).end();
  }
}).listen(process.env.PORT, "127.0.0.1");
