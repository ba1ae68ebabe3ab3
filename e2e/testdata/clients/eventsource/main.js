// Prints the id of each event, as EventSource gets it.
import { EventSource } from 'eventsource'

const source = new EventSource(process.env.URL, {
  fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, Authorization: `Bearer ${process.env.KEY}` } }),
})
source.onmessage = (e) => {
  if (JSON.parse(e.data).id !== e.lastEventId) throw new Error(e.data)
  console.log(e.lastEventId)
}
