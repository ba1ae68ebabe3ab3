// A program like that of a user, with the client that ogen generates from the API
// description. ogen refuses a description if there is a part that it can't generate. So
// this program also shows that ogen can generate every operation.
package main

import (
	"context"
	"fmt"
	"os"

	api "parley-ogen/generated"
)

type key string

// Bearer returns the key for each call.
func (k key) Bearer(context.Context, api.OperationName) (api.Bearer, error) {
	return api.Bearer{Token: string(k)}, nil
}

func main() {
	if err := run(context.Background(), os.Getenv("BASE"), os.Getenv("KEY")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, base, k string) error {
	c, err := api.NewClient(base, key(k))
	if err != nil {
		return err
	}
	ada := api.BatchUpsert{Op: api.BatchUpsertOpUpsert, Data: api.ContactFields{ExternalID: api.NewOptNilString("ogen-1"), Name: api.NewOptNilString("Ada")}}
	batch, err := c.BatchContacts(ctx, &api.BatchRequest{Operations: []api.BatchOperation{api.NewBatchUpsertBatchOperation(ada)}})
	rows, ok := batch.(*api.BatchAnswerHeaders)
	if err != nil || !ok || len(rows.Response.Results) != 1 {
		return fmt.Errorf("batch: %v %+v", err, batch)
	}
	list, err := c.ListContacts(ctx, api.ListContactsParams{ExternalID: api.NewOptString("ogen-1")})
	contacts, ok := list.(*api.ContactListHeaders)
	if err != nil || !ok || len(contacts.Response.Data) != 1 {
		return fmt.Errorf("list: %v %+v", err, list)
	}
	feed, err := c.ListEvents(ctx, api.ListEventsParams{Types: api.NewOptString("contact.created")})
	events, ok := feed.(*api.EventPageHeaders)
	if err != nil || !ok || len(events.Response.Data) == 0 {
		return fmt.Errorf("events: %v %+v", err, feed)
	}
	return nil
}
