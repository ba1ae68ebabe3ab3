// Schemas of every answer, by status; what a schema does not name is refused.
module.exports = {
  parley: {
    input: "./openapi.json",
    output: { client: "zod", target: "./zod.ts", override: { zod: { strict: { response: true }, generate: { response: true }, generateEachHttpStatus: true } } },
  },
};
