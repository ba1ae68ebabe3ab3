// A receiver of webhooks that knows one secret at first. POST is a delivery, which it
// accepts if a secret verifies it; PUT tells it another secret; GET /N answers for each
// delivery, from number N on, which of the secrets verify it.
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
